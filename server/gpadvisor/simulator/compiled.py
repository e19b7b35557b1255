# SPDX-License-Identifier: Apache-2.0
"""Compilation of the inner loop: numba's, cached on disk, with the types of the plain function kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from gpadvisor.files import is_ours

Plain = TypeVar("Plain", bound=Callable[..., Any])

# Nothing is allocated in compiled code, so that reference counts and C wrappers are only a cost: without
# them, small functions compile and run several times faster.
_COMMON: Final[dict[str, Any]] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_INNER: Final[dict[str, Any]] = {**_COMMON, "no_cpython_wrapper": True}


@cache
def _sources_digest() -> str:
    """Of all files here: compiled functions, the constants that they share, the classes that they take."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Cache(FunctionCache):
    """Compiled code on disk that belongs to the sources of the whole inner loop.

    Numba itself looks at a function's own file only. Others hold the places of columns that are compiled in:
    code from before a change to them would write where nothing is. The index has the digest in its first
    record, too: what follows names classes, and is not even read where they may have moved.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call] # numba ships no types
        # What is loaded from there is run: beside the package it is the package's owner's, else ours alone.
        place = Path(self.cache_path)
        if not place.is_relative_to(Path(__file__).parent) and not is_ours(place):
            raise RuntimeError("others can write to the folder of compiled code")
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call] # as above
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_sources_digest(),
        )
        self._cache_file._version = f"{numba.__version__} {_sources_digest()}"  # noqa: SLF001 - as below


def _jitted(function: Plain, options: dict[str, Any]) -> Plain:
    dispatcher = numba.njit(**options)(function)
    try:
        dispatcher._cache = _Cache(function)  # noqa: SLF001 - numba takes a cache of one's own in no other way
    except RuntimeError:
        # No folder can be written to: compiled anew in each process.
        return cast("Plain", dispatcher)
    return cast("Plain", dispatcher)


def compiled(function: Plain) -> Plain:
    """A function that becomes part of the compiled functions that call it."""
    return _jitted(function, {**_INNER, "forceinline": True})


def seldom(function: Plain) -> Plain:
    """A function that is called by compiled ones, but is not made part of them."""
    return _jitted(function, _INNER)


def entry(function: Plain) -> Plain:
    """A function that Python calls; the first call of a fresh installation compiles, later ones load."""
    return _jitted(function, _COMMON)
