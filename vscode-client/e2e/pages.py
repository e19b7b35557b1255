# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that the browser is to show, of a report, hostile names, very many rows; and data."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpadvisor.editor.contents.page import page_contents
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.views.page.html import render_page

HOSTILE = "</script><img src=x onerror=\"stolen=1\"><b onclick='stolen=1'>&lt;"
KERNELS, INSTRUCTIONS = 1000, 100_000
_NAMES = frozenset(
    {
        "name", "title", "cure", "advice", "verdict", "limited_by", "text", "message", "reason", "plain",
        "path", "equation", "evidence_reason", "next_limit", "launch", "function",
    }
)  # fmt: skip


def main(report: Path, folder: Path) -> None:
    """Write ``*.html`` and ``*.json`` of each."""
    folder.mkdir(parents=True)
    request = Request(settings=Settings(), root=report.parent)
    contents = page_contents(report, request, lambda _: None, Cache(None))
    document = json.loads(json.dumps(contents.document))
    for name, one in {"run": document, "hostile": _hostile(document), "large": _large(document)}.items():
        (folder / f"{name}.html").write_text(
            render_page(one, f"{name}.ncu-rep - gpadvisor"), encoding="utf-8"
        )
        (folder / f"{name}.json").write_text(json.dumps(one), encoding="utf-8")


def _hostile(value: Any, key: str = "") -> Any:
    """The same with markup in all names and texts."""
    if isinstance(value, Mapping):
        return {name: _hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_hostile(one, key) for one in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and key in _NAMES else value


def _large(document: dict[str, Any]) -> dict[str, Any]:
    """As many kernels, the first of as many instructions; samples on every row."""
    first, advice = document["kernels"][0], document["advice"]["kernels"][0]
    rows = range(INSTRUCTIONS)
    code = {
        **first["code"],
        "functions": [{"name": advice["name"], "row": 0}],
        "address": [16 * row for row in rows],
        "text": [f"FFMA R{row % 255}, R1, R2, R3" for row in rows],
        "file": [0 for _ in rows],
        "line": [1 + row // 5 for row in rows],
        "executed": None,
        "blame": {
            "row": list(rows),
            "cause": [max(0, row - 3) for row in rows],
            "reason": [row % len(first["code"]["reasons"]) for row in rows],
            "samples": [1 + row % 7 for row in rows],
        },
    }
    text = "\n".join(f"line {row}" for row in range(INSTRUCTIONS // 5))
    empty = {name: [] for name in ("functions", "address", "text", "file", "line")}
    small = {**first, "code": {**first["code"], **empty, "executed": None, "blame": None}}
    return {
        **document,
        "files": [{**document["files"][0], "text": text}],
        "kernels": [
            {**first, "code": code},
            *({**small, "name": f"kernel_{number}"} for number in range(1, KERNELS)),
        ],
        "advice": {
            **document["advice"],
            "kernels": [
                {**advice, "name": f"kernel_{number}", "time_share": 2 * (KERNELS - number) / KERNELS**2}
                for number in range(KERNELS)
            ],
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
