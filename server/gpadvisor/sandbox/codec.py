# SPDX-License-Identifier: Apache-2.0
"""Values as JSON, for what crosses the border of a process; only the very type is taken back.

What a field must be is said by its annotation: ``Annotated[str, MaxLength(60)]`` is no longer than that.
Every process of ours imports this, so that it is made of little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from gpadvisor.errors import ToolError
from gpadvisor.model.sentence import Sentence, marked

T = TypeVar("T")
_Change: TypeAlias = Callable[[Any], Any]
_PLAIN: Final = frozenset({str, int, float, bool, NoneType})
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")


class CodecError(ToolError, ValueError):
    """JSON values that are not of the type that is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error, as a function in a child answers it."""

    error: str  # name of its class
    message: str


def failure(error: Exception) -> Failure:
    """An error as it is answered."""
    return Failure(error=type(error).__name__, message=str(error))


class MaxLength(NamedTuple):
    """How long a text or a list may be."""

    length: int


def to_json(value: object, *, with_marks: bool = True) -> Any:
    """A value as JSON values: an object by its fields, an enum by its value, a sentence with its marks."""
    kind: Any = type(value)
    return value if kind in _PLAIN else _writer(kind, with_marks=with_marks)(value)


def to_bytes(value: object) -> bytes:
    """The text of that."""
    return json.dumps(to_json(value), separators=(",", ":")).encode()


def from_json(data: Any, kind: type[T]) -> T:
    """The value again; tuples and enums as they were.

    Raises:
        CodecError: a field is missing, unknown or of another type.
    """
    try:
        return cast("T", _reader(cast("Any", kind))(data))
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"no {getattr(kind, '__name__', kind)}: {error}") from error


@overload
def from_bytes(data: bytes, kind: type[T]) -> T: ...
@overload
def from_bytes(data: bytes, kind: UnionType) -> Any: ...
def from_bytes(data: bytes, kind: Any) -> Any:
    """The value of a text.

    Raises:
        CodecError: it is no JSON, or another value.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"no JSON: {error}") from error
    return from_json(document, kind)


def from_answer(data: bytes, kind: type[T]) -> T | Failure:
    """What a child answers: such a value, or an error.

    Raises:
        CodecError: neither.
    """
    return cast("T | Failure", from_bytes(data, Failure | kind))


@cache
def _writer(kind: Any, *, with_marks: bool) -> _Change:
    """How values of a class are written; where a field is no sentence, it is words alone that are read."""
    write = partial(to_json, with_marks=with_marks)
    if issubclass(kind, Sentence):
        return marked if with_marks else str
    if issubclass(kind, Enum):
        return lambda value: value.value
    for plain in (str, int, float):  # numbers of numpy
        if issubclass(kind, plain):
            return plain
    if issubclass(kind, tuple | list):
        return lambda value: list(map(write, value))
    if issubclass(kind, Mapping):
        return lambda value: {key: write(item) for key, item in value.items()}
    hints = get_type_hints(kind)  # nothing else than objects with fields is written
    marks = {name: _names_lines(hints[name]) for name in kind.__dataclass_fields__}
    return lambda value: {
        name: to_json(getattr(value, name), with_marks=with_marks) for name, with_marks in marks.items()
    }


def _names_lines(hint: Any) -> bool:
    """Whether a value of this type may be a sentence."""
    return hint is Sentence or any(map(_names_lines, get_args(hint)))


@cache
def _reader(kind: Any) -> _Change:
    """How values of a type are read: a function that raises TypeError or ValueError at any other."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bounded(*arguments)
    if origin in {Union, UnionType}:
        return _one_of(arguments)
    if origin is tuple and arguments[1:] != (...,):
        return _row(arguments)
    if origin in {tuple, list}:
        items = _reader(arguments[0])
        return lambda data: origin(map(items, _exactly(list, data)))
    if origin in {dict, Mapping}:
        keys, values = (_number if arguments[0] is int else _reader(arguments[0])), _reader(arguments[1])
        return lambda data: {keys(key): values(item) for key, item in _exactly(dict, data).items()}
    if kind is Any:
        return lambda data: data
    if kind is float:
        return _real
    if kind is Sentence:
        return lambda data: Sentence(_exactly(str, data))
    if issubclass(kind, Enum):
        return kind  # type: ignore[no-any-return]  # of its value
    if hasattr(kind, "__dataclass_fields__"):
        return partial(_object, kind)
    return partial(_exactly, kind)


def _exactly(kind: type[T], data: object) -> T:
    if type(data) is not kind:
        raise TypeError(f"{kind.__name__} expected, {type(data).__name__} found")
    return data


def _real(data: object) -> float:
    if type(data) is int or type(data) is float:
        return float(data)
    raise TypeError(f"a number expected, {type(data).__name__} found")


def _number(key: object) -> int:
    """JSON has numbers as keys in quotes."""
    if type(key) is not str or not _INTEGER.fullmatch(key):
        raise TypeError(f"a number in quotes expected, {key!r} found")
    return int(key)


def _bounded(kind: Any, most: MaxLength) -> _Change:
    read = _reader(kind)

    def bounded(data: Any) -> Any:
        if isinstance(data, str | list) and len(data) > most.length:
            raise ValueError(f"{len(data)} of at most {most.length} found")
        return read(data)

    return bounded


def _one_of(kinds: tuple[Any, ...]) -> _Change:
    """The first of several types that a value is of; a whole number is a float, if nothing else."""
    optional = NoneType in kinds
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    readers = [_reader(kind) for kind in sorted(kinds, key=lambda kind: kind is float)]

    def one_of(data: Any) -> Any:
        if data is None and optional:
            return None
        for read in readers[:-1]:
            try:
                return read(data)
            except (TypeError, ValueError):
                continue
        return readers[-1](data)

    return one_of


def _row(kinds: tuple[Any, ...]) -> _Change:
    readers = [_reader(kind) for kind in kinds]
    return lambda data: tuple(read(item) for read, item in zip(readers, _exactly(list, data), strict=True))


@cache
def _fields(kind: Any) -> dict[str, _Change]:
    """How each field of a class is read; asked for with its first value, as it may have others of it."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _reader(hints[name]) for name in kind.__dataclass_fields__}


def _object(kind: type[T], data: object) -> T:
    readers = _fields(cast("Any", kind))
    try:
        values = {name: readers[name](item) for name, item in _exactly(dict, data).items()}
    except KeyError as error:
        raise TypeError(f"{kind.__name__} has no {error}") from error
    return kind(**values)  # without a field that has to be there: a TypeError
