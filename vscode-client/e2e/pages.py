# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that the browser is to show, of a report, hostile names, very many rows; and data."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpadvisor
from gpadvisor.editor.contents.page import page_contents
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sandbox.codec import from_json
from gpadvisor.views.page.html import render_page
from gpadvisor.views.potential.model import ModelInputs
from gpadvisor.views.potential.what_if import InputChange, what_if

HOSTILE = "</script><img src=x onerror=\"stolen=1\"><b onclick='stolen=1'>&lt;"
KERNELS, INSTRUCTIONS = 1000, 100_000
LINES, PROBLEMS = 900_000, 150_000
DEMO = Path(gpadvisor.__file__).parent / "cli" / "data" / "demo"
_NAMES = frozenset(
    {
        "name", "title", "cure", "advice", "verdict", "limited_by", "text", "message", "reason", "plain",
        "path", "equation", "evidence_reason", "next_limit", "launch", "function",
    }
)  # fmt: skip


def main(report: Path, folder: Path) -> None:
    """Write ``*.html`` and ``*.json`` of each."""
    folder.mkdir(parents=True)
    document, demo = _document(report), _document(DEMO)
    both = report.parents[1]
    compared = _document(both / "better.ncu-rep", before=both / "second" / "run.ncu-rep")
    pages = {
        "run": document,
        "compared": compared,
        "demo": demo,
        "hostile": _hostile(document),
        "large": _large(document),
        "long": _long(document),
    }
    (folder / "empty.html").write_text("<!doctype html><title>empty</title>-", encoding="utf-8")
    for name, one in pages.items():
        (folder / f"{name}.html").write_text(
            render_page(one, f"{name}.ncu-rep - gpadvisor"), encoding="utf-8"
        )
        (folder / f"{name}.json").write_text(json.dumps(one), encoding="utf-8")
    potential = demo["kernels"][0]["potential"]
    inputs = from_json(potential["inputs"], ModelInputs)
    speedup = what_if(inputs, potential["cycles"], InputChange(transactions=(1 / 32) ** 0.5)).speedup
    (folder / "what_if.json").write_text(json.dumps(speedup), encoding="utf-8")


def _document(path: Path, *, before: Path | None = None) -> Any:
    request = Request(settings=Settings(), root=path.parent)
    first = None if before is None else (before, request)
    made = page_contents(path, request, lambda _: None, Cache(None), before=first)
    return json.loads(json.dumps(made.document))


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
    code_less = {**first["code"], **empty, "executed": None, "blame": None}
    small = {**first, "code": code_less, "roofline": None, "potential": None, "tree": None}
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


def _long(document: dict[str, Any]) -> dict[str, Any]:
    """A source and a list of problems that are longer than browsers like, and a lowered estimate."""
    advice = document["advice"]["kernels"][0]
    first, *rest = advice["suggestions"]
    cap = {"limit": "L2", "speedup": 1.25, "before": 2.0, "reason": "L2 is at 80.0 % of its peak"}
    lowered = {**first, "speedup": {**first["speedup"], "cap": cap}}
    text = "\n".join(f"// {line}" for line in range(LINES))
    code = {**document["kernels"][0]["code"]}
    code["file"] = [0 for _ in code["file"]]
    problems = [{"code": "other", "message": f"problem {number}"} for number in range(PROBLEMS)]
    return {
        **document,
        "files": [{**document["files"][0], "text": text}],
        "kernels": [
            {**document["kernels"][0], "code": code, "roofline": None, "potential": None, "tree": None}
        ],
        "advice": {
            **document["advice"],
            "problems": problems,
            "kernels": [{**advice, "suggestions": [lowered, *rest]}],
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
