# SPDX-License-Identifier: Apache-2.0
"""Values from the process that parses sources, which reads hostile text: each is checked before it is used.

Every function raises ``ValueError`` where a value is not of the type, the length or the range expected.
"""

from __future__ import annotations


def flag(value: object) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise ValueError("no truth value")  # noqa: TRY004 - one kind of damage, one error
    return value


def integer(value: object, first: int, highest: int) -> int:
    """A whole number from ``first`` to ``last``; a truth value is none."""
    if type(value) is not int or not first <= value <= highest:
        raise ValueError("no number of the range expected")
    return value


def text(value: object, limit: int) -> str:
    """A text of at most ``limit`` characters."""
    if not isinstance(value, str) or len(value) > limit:
        raise ValueError("no text of the length expected")
    return value


def items(value: object, limit: int) -> list[object]:
    """A list of at most ``limit`` values."""
    if not isinstance(value, list) or len(value) > limit:
        raise ValueError("no list of the length expected")
    return value


def row(value: object, width: int) -> list[object]:
    """A list of exactly ``width`` values."""
    values = items(value, width)
    if len(values) != width:
        raise ValueError("a list is too short")
    return values


def rows(value: object, width: int, limit: int) -> list[list[object]]:
    """At most ``limit`` rows."""
    return [row(item, width) for item in items(value, limit)]
