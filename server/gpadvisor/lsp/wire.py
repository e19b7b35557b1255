# SPDX-License-Identifier: Apache-2.0
"""The values of ``protocol`` as JSON, in camelCase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import TypeVar, get_args, get_origin, get_type_hints

from gpadvisor.errors import UsageError

T = TypeVar("T")


def camel(name: str) -> str:
    """``waits_for`` as ``waitsFor``."""
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


def to_wire(value: object) -> object:
    """A value of ``protocol``, with everything in it, as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(entry.name): to_wire(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_wire(entry) for entry in value]
    return value


def from_wire(data: object, kind: type[T]) -> T:
    """Parameters that a client sent; what it left out has its default.

    Raises:
        UsageError: a field is missing or of the wrong type.
    """
    members = data if isinstance(data, Mapping) else {}
    hints = get_type_hints(kind)
    values: dict[str, object] = {}
    for entry in fields(kind):  # type: ignore[arg-type] # every kind here is a dataclass
        name = camel(entry.name)
        if name not in members:
            if entry.default is MISSING and entry.default_factory is MISSING:
                raise UsageError(f"{kind.__name__} needs '{name}'")
            continue
        if not _fits(members[name], hints[entry.name]):
            raise UsageError(f"{kind.__name__}: '{name}' is of the wrong type")
        values[entry.name] = members[name]
    return kind(**values)


def _fits(value: object, hint: object) -> bool:
    origin = get_origin(hint)
    kinds = get_args(hint) if origin is UnionType else (origin or hint,)
    return any(isinstance(value, kind) and not (kind is int and isinstance(value, bool)) for kind in kinds)
