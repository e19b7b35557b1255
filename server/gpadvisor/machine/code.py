# SPDX-License-Identifier: Apache-2.0
"""The machine code of each architecture: what constant bank 0 has where, branches, what there is."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any, Final

from gpadvisor.errors import MachineModelError
from gpadvisor.machine.schema import STATUSES
from gpadvisor.model.machine import CodeForm, Feature, sm_number

_KEYS: Final = {field.name for field in fields(CodeForm)}


@cache
def code_form(arch: str) -> CodeForm:
    """The form of an architecture's code: of the newest row not newer; of the first before all rows."""
    rows = _rows()
    number = sm_number(arch)
    return next((form for first, form in reversed(rows) if first <= number), rows[0][1])


def read_as(arch: str) -> str:
    """The architecture that code is disassembled as, where tools have dropped its own; else empty."""
    first, _ = _rows()[0]
    return code_form(arch).read_as if sm_number(arch) >= first else ""


@cache
def _rows() -> tuple[tuple[int, CodeForm], ...]:
    text = (resources.files("gpadvisor.machine") / "data" / "code.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    for key, source in document["sources"].items():
        if source["status"] not in STATUSES:
            raise MachineModelError(f"code.toml: sources.{key} has the unknown status {source['status']!r}")
    merged: dict[str, Any] = {}
    rows = []
    for row in document["from"]:
        first, sources = sm_number(row.pop("arch")), row.pop("source")
        if unknown := [*(set(sources) - document["sources"].keys()), *(row.keys() - _KEYS)]:
            raise MachineModelError(f"code.toml: sm_{first}: {unknown[0]!r} is not known")
        if "features" in row:
            row["features"] = frozenset(map(Feature, row["features"]))
        merged |= row
        rows.append((first, CodeForm(**merged)))
    return tuple(rows)
