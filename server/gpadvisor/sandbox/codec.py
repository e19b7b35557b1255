# SPDX-License-Identifier: Apache-2.0
"""Frozen values as JSON, for what crosses the border of a process; only the very type is taken back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args, get_origin

from cattrs import BaseConverter
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from gpadvisor.errors import ToolError
from gpadvisor.model.sentence import Sentence, marked

T = TypeVar("T")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")


class CodecError(ToolError, ValueError):
    """JSON values that are not of the type that is asked for."""


def _exactly(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected, {type(value).__name__} found")
    return value


def _number(value: Any, _: type) -> float:
    if type(value) is int or type(value) is float:
        return float(value)
    raise TypeError(f"a number expected, {type(value).__name__} found")


_converter: Final = make_converter(forbid_extra_keys=True)
for _kind in (int, str, bool):
    _converter.register_structure_hook(_kind, _exactly)
_converter.register_structure_hook(float, _number)
_converter.register_unstructure_hook(Sentence, marked)
_converter.register_structure_hook(Sentence, lambda value, _: Sentence(_exactly(value, str)))


def _holds_many(kind: Any) -> bool:
    return get_args(kind)[1:] == (...,)


@_converter.register_structure_hook_factory(_holds_many)
def _tuple_of(kind: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    read = homogenous_tuple_structure_factory(kind, converter)
    return lambda value, kind: read(_exactly(value, list), kind)


def _by_number(kind: Any) -> bool:
    return get_origin(kind) in {dict, Mapping} and get_args(kind)[0] is int


@_converter.register_structure_hook_factory(_by_number)
def _mapping_of(kind: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    values = get_args(kind)[1]
    return lambda value, _: {
        _key(key): converter.structure(item, values) for key, item in _exactly(value, dict).items()
    }


def _key(text: Any) -> int:
    """JSON has numbers as keys in quotes."""
    if type(text) is not str or not _INTEGER.fullmatch(text):
        raise TypeError(f"a number in quotes expected, {text!r} found")
    return int(text)


def to_json(value: object) -> Any:
    """A frozen value as JSON values."""
    return _converter.unstructure(value)


def from_json(data: Any, kind: type[T]) -> T:
    """The value again; tuples and enums as they were.

    Raises:
        CodecError: a field is missing, unknown or of another type.
    """
    try:
        return _converter.structure(data, kind)
    except (BaseValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise CodecError(f"no {getattr(kind, '__name__', kind)}: {error}") from error
