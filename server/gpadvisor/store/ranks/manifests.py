# SPDX-License-Identifier: Apache-2.0
"""Manifests of many snapshots: looked at, and what of them is needed to the end, once where it is alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.parts import TABLES, TYPES, JsonObject, Parts, put_together

_VALUES: Final = ("collector", "collector_version", "command", "host")


@dataclass(slots=True)
class Told:
    """What the manifests of all profiles say, in as much memory for thousands of them as for a few."""

    values: dict[str, set[str | None]] = field(default_factory=lambda: {name: set() for name in _VALUES})
    created: str | None = None  # the first
    problems: dict[str, JsonObject] = field(
        default_factory=dict
    )  # by code, of each the first in the alphabet
    sources: dict[str, JsonObject] = field(default_factory=dict)  # by path
    lines: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    timelines: int = 0  # profiles that have one
    alike: dict[Any, Any] = field(default_factory=dict)  # what many have, each once

    def note(self, manifest: JsonObject) -> None:
        """Add one that was checked."""
        profile = manifest["profile"]
        for name, values in self.values.items():
            values.add(profile[name])
        across = manifest.get("across") or {}
        self.timelines += int(across.get("timelines", 0)) + ("timeline" in manifest)
        if profile["created"]:
            self.created = min(self.created or profile["created"], profile["created"])
        for problem in manifest["problems"]:
            _first(self.problems, problem["code"], problem, lambda entry: str(entry["message"]))
        for entry in manifest["sources"]:
            _first(self.sources, entry["key"], entry, json.dumps)
        for line in manifest.get("lines", []):
            _first(self.lines, (line["binary"], line["kernel"]), line, json.dumps)

    def common(self, name: str) -> str | None:
        """What all say of something; None where they differ."""
        values = self.values[name]
        return next(iter(values)) if len(values) == 1 else None

    def once(self, value: Any) -> Any:
        """The same value, which is there once."""
        return self.alike.setdefault(value, value)


def _first(
    known: dict[Any, JsonObject], key: Any, entry: JsonObject, order: Callable[[JsonObject], str]
) -> None:
    """The same whatever the order is in which they come."""
    known[key] = min(known.get(key, entry), entry, key=order)


def check_manifest(manifest: JsonObject, names: Sequence[str]) -> None:
    """ProfileFormatError where it is not what a snapshot's says; its tables are looked at elsewhere."""
    texts = {name.partition("/")[2]: b"" for name in names if name.startswith("sources/")}
    nothing = {
        table: {name: np.zeros(0, TYPES[name]) for name in columns} for table, columns in TABLES.items()
    }
    try:
        document = {name: manifest[name] for name in ("profile", "sources", "problems")}
    except KeyError as error:
        raise ProfileFormatError(f"its manifest lacks {error}") from error
    document |= {"kernels": [], "lines": manifest.get("lines", [])}
    put_together(
        Parts(
            document=document,
            tables=nothing,
            blobs={"binaries": {}, "disassembly": {}, "sources": texts},
        )
    )
