# SPDX-License-Identifier: Apache-2.0
"""Analyses and fixes as JSON values between a worker and the server."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from cattrs.preconf.json import make_converter

T = TypeVar("T")

_converter: Final = make_converter()


def to_json(value: object) -> Any:
    """A frozen value as JSON values."""
    return _converter.unstructure(value)


def from_json(data: Any, kind: type[T]) -> T:
    """The value again; tuples and enums as they were."""
    return _converter.structure(data, kind)
