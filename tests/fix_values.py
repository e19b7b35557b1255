# SPDX-License-Identifier: Apache-2.0
"""Findings built by hand, for tests of quick fixes."""

from __future__ import annotations

from typing import Any

from gpadvisor.model.finding import Finding, Place
from gpadvisor.model.profile import Evidence


def finding(code: str, line: int, kernel: str = "k", *, scope: int | None = None, **more: Any) -> Finding:
    """A static finding on a line; ``scope`` is the head of its loop."""
    values: dict[str, Any] = {
        "id": f"{code}-{line}",
        "code": code,
        "slug": "a-rule",
        "name": "A Rule",
        "title": "a pattern",
        "message": "a pattern stands here",
        "advice": "change it",
        "line": line,
        "token": None,
        "kernel": kernel,
        "kernel_name": kernel,
        "evidence": Evidence.STATIC,
        "samples": 0,
        "importance": None,
        "matched": None,
        "speedup": None,
        "parts": (),
        "related": (),
        "leads": False,
        "scope": None if scope is None else Place(file="kernel.cu", line=scope),
        **more,
    }
    return Finding(**values)
