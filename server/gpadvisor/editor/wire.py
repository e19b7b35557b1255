# SPDX-License-Identifier: Apache-2.0
"""Analyses as JSON, between the worker that makes them and the server that shows them.

Reading is strict: a key too many, a value of another type, or more of anything than an editor could show is
an error. A speedup without bound, which JSON cannot say, is written as null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args, get_origin

from cattrs import Converter

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.finding import EditorAnalysis, SassView

T = TypeVar("T")

SCHEMA: Final = "gpadvisor.editor/1"
MAX_BYTES: Final = 256 << 20
MAX_ITEMS: Final = 1_000_000
"""Of one list; the largest are the lines of a file and the rows of a kernel's machine code."""


def write_analysis(analysis: EditorAnalysis) -> bytes:
    """The bytes of an analysis, ASCII."""
    return _write("analysis", analysis)


def read_analysis(data: bytes) -> EditorAnalysis:
    """An analysis from bytes.

    Raises:
        ProfileFormatError: they are not what `write_analysis` writes.
    """
    return _read("analysis", data, EditorAnalysis)


def write_sass(view: SassView) -> bytes:
    """The bytes of a kernel's machine code, ASCII."""
    return _write("sass", view)


def read_sass(data: bytes) -> SassView:
    """A kernel's machine code from bytes.

    Raises:
        ProfileFormatError: they are not what `write_sass` writes.
    """
    return _read("sass", data, SassView)


def _write(kind: str, value: object) -> bytes:
    document = {"schema": SCHEMA, "kind": kind, "value": _converter().unstructure(value)}
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _read(kind: str, data: bytes, wanted: type[T]) -> T:
    if len(data) > MAX_BYTES:
        raise ProfileFormatError(
            f"the {kind} has {len(data)} bytes, more than an editor shows; analyse again"
        )
    try:
        return _converter().structure(_opened(kind, json.loads(data)), wanted)
    except RecursionError as error:
        raise ProfileFormatError(f"the {kind} is nested too deeply; analyse again") from error
    except Exception as error:
        # cattrs raises whatever a constructor raises, under several names of its own.
        raise ProfileFormatError(
            f"the {kind} is not in form {SCHEMA} ({_short(error)}); analyse again"
        ) from error


def _opened(kind: str, document: object) -> object:
    if not isinstance(document, dict) or set(document) != {"schema", "kind", "value"}:
        raise ValueError("it has other parts")
    if document["schema"] != SCHEMA or document["kind"] != kind:
        raise ValueError(f"it is {document['kind']!r} of schema {document['schema']!r}")
    return document["value"]


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] if text else type(error).__name__


@lru_cache(maxsize=1)
def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=False)
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _checked(kind))
    converter.register_structure_hook(float, _number)
    converter.register_unstructure_hook(float, _finite)
    converter.register_structure_hook_factory(_is_tuple, lambda wanted: _tuple_hook(converter, wanted))
    return converter


def _checked(kind: type) -> Callable[[Any, Any], Any]:
    def structure(value: object, _: object) -> object:
        if type(value) is not kind:  # a bool is no number, a number no text
            raise TypeError(f"{kind.__name__} expected, found {type(value).__name__}")
        return value

    return structure


def _number(value: object, _: object) -> float:
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, found {type(value).__name__}")
    return float(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _is_tuple(wanted: Any) -> bool:
    return get_origin(wanted) is tuple


def _tuple_hook(converter: Converter, wanted: Any) -> Callable[[Any, Any], tuple[Any, ...]]:
    """Tuples from lists of the right length, and nothing else that one can walk over."""
    kinds = get_args(wanted)
    of_any_length = len(kinds) == 2 and kinds[1] is Ellipsis

    def structure(value: object, _: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            raise ValueError("no list of the length expected")
        if of_any_length:
            return tuple(converter.structure(item, kinds[0]) for item in value)
        return tuple(converter.structure(item, kind) for item, kind in zip(value, kinds, strict=True))

    return structure
