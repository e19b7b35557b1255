# SPDX-License-Identifier: Apache-2.0
"""What every answer has: as many items as fit, where to go on, what was skipped, how to verify it.

Strings come from reports and sources that anybody can have written: they are cut, and nothing in them
moves a cursor or reorders letters.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gpadvisor.report.words import clean

Json: TypeAlias = dict[str, Any]

DEFAULT_BYTES: Final = 4096
LEAST_BYTES: Final = 2048
MOST_BYTES: Final = 65_536
NAME: Final = 120
TEXT: Final = 400
_SKIPPED: Final = 5
_SKIPPED_LETTERS: Final = 140
_STEPS: Final = (200, 80, 30)
"""Letters that strings of an item are cut to where it does not fit alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All of an answer, before it is cut into pages."""

    items: Sequence[Json]
    evidence: str  # what the numbers stand on
    source: str  # where they come from
    verify: Sequence[str]  # words of a command that shows the same
    skipped: Sequence[str] = ()  # what was not looked at, and why

    def page(self, start: int = 0, limit: int = DEFAULT_BYTES) -> Json:
        """The items from ``start`` that fit into ``limit`` bytes of JSON, and the number of the next one."""
        value: Json = {
            "items": [],
            "start": start,
            "total": len(self.items),
            "next": None,
            "evidence": short(self.evidence, TEXT),
            "source": short(self.source, TEXT),
            "skipped": _skipped(self.skipped),
            "verify": shlex.join(self.verify),
        }
        used = size({**value, "next": len(self.items)})
        for number, item in enumerate(self.items[start:], start):
            fitting = item
            for letters in _STEPS if not value["items"] else ():
                if used + size(fitting) + 1 <= limit:
                    break
                fitting = {key: _cut(entry, letters) for key, entry in item.items()}
            used += size(fitting) + 1
            if used > limit and value["items"]:
                value["next"] = number
                break
            value["items"].append(fitting)
        return value


def size(value: object) -> int:
    """Bytes of a value as JSON."""
    return len(dumps(value).encode())


def dumps(value: object) -> str:
    """JSON as it is sent."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def short(text: str | None, letters: int) -> str:
    """A string of a report or a source as data: one line, nothing invisible, not longer than that."""
    return clean(text or "", letters)


def number(value: float | None) -> float | None:
    """A number with four digits; None where there is none."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")


def _cut(value: object, letters: int) -> object:
    if isinstance(value, str):
        return short(value, letters)
    if isinstance(value, Mapping):
        return {key: _cut(entry, letters) for key, entry in value.items()}
    return value


def _skipped(reasons: Sequence[str]) -> list[str]:
    distinct = list(dict.fromkeys(short(reason, _SKIPPED_LETTERS) for reason in reasons))
    more = len(distinct) - _SKIPPED
    return distinct[:_SKIPPED] + ([f"and {more} more"] if more > 0 else [])
