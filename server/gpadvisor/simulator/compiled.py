# SPDX-License-Identifier: Apache-2.0
"""Compilation of the inner loop: numba's, cached on disk, with the types of the plain function kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba

Plain = TypeVar("Plain", bound=Callable[..., Any])

# Nothing is allocated in compiled code, so that reference counts and C wrappers are only a cost: without
# them, small functions compile and run several times faster.
_COMMON: Final[dict[str, Any]] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_INNER: Final[dict[str, Any]] = {**_COMMON, "no_cpython_wrapper": True}


def compiled(function: Plain) -> Plain:
    """A function that becomes part of the compiled functions that call it."""
    return cast("Plain", numba.njit(**_INNER, forceinline=True)(function))


def seldom(function: Plain) -> Plain:
    """A function that is called by compiled ones, but is not made part of them."""
    return cast("Plain", numba.njit(**_INNER)(function))


def entry(function: Plain) -> Plain:
    """A function that Python calls; the first call of a fresh installation compiles, later ones load."""
    return cast("Plain", numba.njit(**_COMMON)(function))
