# SPDX-License-Identifier: Apache-2.0
"""Values of a profile from their JSON documents: the annotations of a class say what each field must be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from gpadvisor.model.profile import CallFrame, MetricValue

_T = TypeVar("_T")


def text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"text expected, found {type(value).__name__}")
    return value


def optional_text(value: object) -> str | None:
    """A text or nothing."""
    return None if value is None else text(value)


def integer(value: object) -> int:
    """A whole number, which a truth value is not."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a whole number expected, found {type(value).__name__}")
    return value


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number expected, found {type(value).__name__}")
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false expected, found {type(value).__name__}")
    return value


def _three(value: object) -> tuple[int, int, int]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise TypeError("three whole numbers expected")
    return (integer(value[0]), integer(value[1]), integer(value[2]))


def metric_value(value: object) -> MetricValue:
    """A number or a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"a metric value expected, found {type(value).__name__}")
    return value


def _frames(value: object) -> tuple[CallFrame, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"frames expected, found {type(value).__name__}")
    return tuple(fill(CallFrame, frame) for frame in value)


_CHECKS: Final[Mapping[str, Callable[[object], object]]] = {
    "str": text,
    "int": integer,
    "float": _real,
    "bool": _boolean,
    "tuple[int, int, int]": _three,
    "tuple[CallFrame, ...]": _frames,
}


def fill(kind: Callable[..., _T], document: Mapping[str, Any]) -> _T:
    """A value from its document.

    Raises:
        KeyError: a field is not there.
        TypeError: one is something else.
    """
    values: dict[str, object] = {}
    for item in dataclasses.fields(kind):  # type: ignore[arg-type] # every kind given is a dataclass
        annotation = str(item.type)
        content = document[item.name]
        if content is None and annotation.endswith(" | None"):
            values[item.name] = None
        else:
            values[item.name] = _CHECKS[annotation.removesuffix(" | None")](content)
    return kind(**values)
