# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of suggestions that survive edits elsewhere: no line number, address or sample goes in."""

from __future__ import annotations

import hashlib
from collections import Counter

from gpadvisor.model.advice import KernelAdvice, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.report.names import base_name
from gpadvisor.report.page import Page


class Fingerprints:
    """Fingerprints of one report; equal ones are numbered in the order they are asked for."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._seen: Counter[str] = Counter()

    def of(self, kernel: KernelAdvice, suggestion: Suggestion, primary: SourceLocation | None) -> str:
        """A digest of the rule, the kernel's base name, the file's name and the words on the line."""
        parts = [suggestion.code, base_name(kernel.name), suggestion.scope.kind.value]
        if primary is not None:
            parts.append(primary.file.replace("\\", "/").rpartition("/")[2])
        quoted = self._page.quote(primary)
        parts.append("".join(quoted.split()) if quoted is not None else _opcodes(suggestion))
        key = "\0".join(parts)
        number = self._seen[key]
        self._seen[key] += 1
        return hashlib.sha256(f"{key}\0{number}".encode()).hexdigest()


def _opcodes(suggestion: Suggestion) -> str:
    """Where the line's text is not known: what the leading hotspot does."""
    for hotspot in suggestion.hotspots[:1]:
        ends = (hotspot.definition, hotspot.use)
        return " ".join(code.opcode for code in ends if code is not None)
    return ""
