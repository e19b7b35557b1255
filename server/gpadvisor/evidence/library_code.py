# SPDX-License-Identifier: Apache-2.0
"""Loops that are a library's as a whole, inlined or called: callers cannot change what they access.

They can where the library does something to one element, as an intrinsic or a block load: they say to which.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.program import Function


def in_library_loop(function: Function, index: int) -> bool:
    """Whether an instruction is in a loop of which every line is a library's."""
    return not library_loops(function).isdisjoint(function.enclosing_loops(index))


def makes_random_numbers(function: Function, index: int) -> bool:
    """Whether an instruction is of cuRAND's device functions, with the states that they keep."""
    line = function.lines[index]
    return (
        line is not None
        and bool(line.library)
        and f"/{line.library[0].file}".replace("\\", "/").endswith("/curand_kernel.h")
    )


def is_curands(function: Function, index: int) -> bool:
    """Whether an instruction is of cuRAND's device functions, whatever header they are in."""
    line = function.lines[index]
    return line is not None and any(
        "/curand_" in f"/{place.file}".replace("\\", "/") for place in line.library
    )


def is_all_librarys(function: Function, indices: Iterable[int]) -> bool:
    """Whether every instruction has a line of a library's code."""
    lines = [function.lines[index] for index in indices]
    return all(line is not None and bool(line.library) for line in lines)


@lru_cache(maxsize=64)
def library_loops(function: Function) -> frozenset[LoopId]:
    """The loops of which every line is a library's."""
    return frozenset(
        loop.id for loop in function.loops if is_all_librarys(function, loop_indices(function, loop.id))
    )
