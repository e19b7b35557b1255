# SPDX-License-Identifier: Apache-2.0
"""Manifests of many snapshots: looked at, and what of them is needed to the end, once where it is alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.parts import TABLES, TYPES, Document, Parts, put_together


def wanted(manifest: Document, shared: dict[str, Any]) -> Document:
    """What of a manifest is needed to the end; of thousands, what is alike is there once."""

    def once(value: Any) -> Any:
        return shared.setdefault(json.dumps(value), value)

    profile = manifest["profile"]
    head = {key: once(profile[key]) for key in ("collector", "collector_version", "command", "host")}
    return {
        "profile": {**head, "created": profile["created"], "rank": profile.get("rank")},
        "sources": once(manifest["sources"]),
        "problems": once(manifest["problems"]),
        "lines": once(manifest.get("lines", [])),
    }


def check_manifest(manifest: Document, names: Sequence[str]) -> None:
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
