# SPDX-License-Identifier: Apache-2.0
"""Colour with a meaning, for terminals: every colour stands beside words that say the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """SGR sequences, or nothing at all; texts are padded before they are coloured."""

    enabled: bool

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text.strip() else text

    def heading(self, text: str) -> str:
        """Names of kernels, sections and suggestions."""
        return self._sgr("1", text)

    def quiet(self, text: str) -> str:
        """What a second look needs: units, explanations, column titles."""
        return self._sgr("2", text)

    def gain(self, text: str) -> str:
        """An estimated gain."""
        return self._sgr("32", text)

    def caution(self, text: str) -> str:
        """What lowers trust in the numbers."""
        return self._sgr("33", text)

    def alarm(self, text: str) -> str:
        """What makes the numbers wrong if it is not read."""
        return self._sgr("31", text)

    def code(self, text: str) -> str:
        """Source places."""
        return self._sgr("36", text)
