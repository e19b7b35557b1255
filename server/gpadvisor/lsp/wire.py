# SPDX-License-Identifier: Apache-2.0
"""The values of ``protocol`` as JSON, in camelCase."""

from __future__ import annotations

from dataclasses import fields, is_dataclass


def camel(name: str) -> str:
    """``waits_for`` as ``waitsFor``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def to_wire(value: object) -> object:
    """A value of ``protocol``, with everything in it, as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(entry.name): to_wire(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_wire(entry) for entry in value]
    return value
