# SPDX-License-Identifier: Apache-2.0
"""Loops that are a library's as a whole, inlined or called: callers cannot change what they access.

They can where the library does something to one element, as an intrinsic or a block load: they say to which.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.program import Function, is_launched_by_library


def in_library_loop(function: Function, index: int) -> bool:
    """Whether an instruction is in a loop of which all is a library's."""
    return not library_loops(function).isdisjoint(function.enclosing_loops(index))


def makes_random_numbers(function: Function, index: int) -> bool:
    """Whether an instruction is of cuRAND's device functions, with the states that they keep.

    Without a line all is that in a kernel which is given states.
    """
    if function.lines[index] is None:
        return "curandState" in function.demangled
    files = _library_files(function, index)
    return bool(files) and files[0] == "curand_kernel.h"


def is_curands(function: Function, index: int) -> bool:
    """Whether an instruction is of cuRAND's device functions, whatever header they are in."""
    return any(name.startswith("curand_") for name in _library_files(function, index))


def _library_files(function: Function, index: int) -> list[str]:
    """The names of the headers of libraries that an instruction is of, in the order of its line entry."""
    line = function.lines[index]
    return (
        [] if line is None else [place.file.replace("\\", "/").rpartition("/")[2] for place in line.library]
    )


def is_all_librarys(function: Function, indices: Iterable[int]) -> bool:
    """Whether every instruction is a library's; without a line that is all of its templates' kernels."""
    unknown = is_launched_by_library(function.demangled)
    lines = [function.lines[index] for index in indices]
    return all(unknown if line is None else bool(line.library) for line in lines)


@lru_cache(maxsize=64)
def library_loops(function: Function) -> frozenset[LoopId]:
    """The loops of which all is a library's."""
    return frozenset(
        loop.id for loop in function.loops if is_all_librarys(function, loop_indices(function, loop.id))
    )
