# SPDX-License-Identifier: Apache-2.0
"""What counters prove of a kernel's accesses, where nobody sampled them.

A request of a warp takes L1 one pass for each 128-byte line that its threads go to, and shared memory one for
each turn on its banks. Counters say how many a request took on the mean; the machine code says how many its
accesses need, and which of them take that many. Where both agree, those are proven.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.utilisation import (
    L1,
    L1_DATA,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    MEMORY_RESOURCES,
    TEXTURE,
    utilisations,
)
from gpadvisor.evidence.access_shapes import AccessShape, Lie, access_shape
from gpadvisor.evidence.accesses import is_global, is_memory, is_shared
from gpadvisor.evidence.banks import shared_passes
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.model.machine import LINE_BYTES, SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_STORE_COUNTERS: Final = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
)
WORD_BYTES: Final = 4
_KNOWN: Final = frozenset({Lie.ROWS, Lie.APART, Lie.NEIGHBOURS})
_ATOMIC: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True)
class ManyPasses:
    """Requests that took more passes than they need, and the accesses that did, innermost loops first."""

    counted: float  # for each request
    needed: float  # at most, by what the code accesses
    banks: bool  # whether most of them are due to banks
    scattered: tuple[int, ...]  # instructions of the kernel's own function, to global memory
    conflicting: tuple[int, ...]  # to shared memory
    words: str  # what was counted
    passes: bool = True  # of L1; else sectors that stores wrote to L2


@dataclass(frozen=True, slots=True)
class _Access:
    takes: float
    needs: float

    @property
    def wasted(self) -> float:
        return self.takes - self.needs


def passes(context: KernelContext) -> ManyPasses | None:
    """None where they are as few as they can be, or no access is known to take many."""
    profile, function = context.profile, kernel_function(context.program, context.kernel)
    if profile is None or function is None:
        return None
    counted = passes_of_a_request(profile, context.machine.sm.load_store_lanes.value)
    if counted is None:
        return None
    accesses = {
        index: _access(function, index, context.program.form, profile)
        for index, instruction in enumerate(function.instructions)
        if is_memory(instruction) and instruction.info.space is not MemorySpace.CONSTANT
    }
    depth = {index: len(function.enclosing_loops(index)) for index in accesses}
    wasting = sorted(
        (index for index, access in accesses.items() if access.takes >= constants.TWICE * access.needs),
        key=lambda index: (-depth[index], index),
    )
    inside = _by_loop(function, accesses)
    needed = max((_mean([access.needs for access in group]) for group in inside.values()), default=0.0)
    takes = max((_mean([access.takes for access in group]) for group in inside.values()), default=0.0)
    if (
        not wasting
        or counted < constants.PROVEN * needed
        or counted > constants.PROVEN * takes
        or any(
            function.instructions[index].info.opclass in _ATOMIC and depth[index] >= depth[wasting[0]]
            for index in accesses
        )
    ):
        return None
    scattered = tuple(index for index in wasting if is_global(function.instructions[index]))
    conflicting = tuple(index for index in wasting if is_shared(function.instructions[index]))
    innermost = {index for index in wasting if depth[index] == depth[wasting[0]]}
    banks = sum(accesses[index].wasted for index in innermost.intersection(conflicting)) > sum(
        accesses[index].wasted for index in innermost.intersection(scattered)
    )
    if not _limits(profile, banks=banks):
        return None
    words = f"L1 takes {counted:.1f} passes for a request of a warp, {needed:.1f} are needed"
    return ManyPasses(counted, needed, banks, scattered, conflicting, words)


def scattered_stores(context: KernelContext) -> ManyPasses | None:
    """Stores that wrote many sectors to L2, where the code shows that the threads of a warp lie apart.

    All stores go there. None where a unit that computes is busy, or local memory is stored, too.
    """
    profile, function = context.profile, kernel_function(context.program, context.kernel)
    if profile is None or function is None:
        return None
    stores, local, sectors = (profile.metrics.get(name) for name in _STORE_COUNTERS)
    if not _is_number(stores) or local or not _is_number(sectors):
        return None
    busiest = next(iter(utilisations(profile)), None)
    if busiest and busiest.name not in MEMORY_RESOURCES and busiest.percent >= constants.BUSY_PERCENT:
        return None
    written = [
        index
        for index, instruction in enumerate(function.instructions)
        if is_global(instruction) and instruction.info.opclass is OpcodeClass.STORE
    ]
    widths = [function.instructions[index].width_bytes or WORD_BYTES for index in written]
    needed = max((max(1.0, WARP * width / SECTOR_BYTES) for width in widths), default=1.0)
    apart = tuple(
        index
        for index in written
        if access_shape(function, index, context.program.form, profile.launch).lie in {Lie.APART, Lie.ROWS}
    )
    counted = float(sectors) / float(stores)
    if not apart or counted < constants.TWICE * needed:
        return None
    words = f"a store of a warp writes {counted:.0f} sectors, {needed:.0f} are needed"
    return ManyPasses(
        counted, needed, banks=False, scattered=apart, conflicting=(), words=words, passes=False
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and value > 0


def passes_of_a_request(profile: KernelProfile, lanes: int) -> float | None:
    """Passes of L1 for each request of a warp; None where the report does not say.

    The peak of requests is a warp in as many cycles as lanes need.
    """
    loads = {entry.name: entry.percent for entry in utilisations(profile)}
    requests = loads.get(L1_REQUESTS, 0.0) * lanes / WARP
    wavefronts = loads.get(L1_DATA)
    if (
        wavefronts is None
        and max(loads.get(L1_TO_L2, 0.0), loads.get(TEXTURE, 0.0)) <= loads.get(L1, 0.0) / 2
    ):
        wavefronts = loads.get(L1)  # it is none of its other parts
    return wavefronts / requests if wavefronts is not None and requests else None


def _limits(profile: KernelProfile, *, banks: bool) -> bool:
    """Whether nothing is busier than a unit that such accesses load."""
    busiest = utilisations(profile)[0]
    if banks:
        return busiest.name in {L1, L1_DATA} and busiest.percent >= constants.BUSY_PERCENT
    return busiest.name in {L1, L1_DATA, L1_TO_L2, L2} and busiest.percent >= constants.SPREAD_PERCENT


def _by_loop(function: Function, accesses: Mapping[int, _Access]) -> dict[LoopId | None, list[_Access]]:
    """Accesses that are executed about as often as each other."""
    result: dict[LoopId | None, list[_Access]] = defaultdict(list)
    for index, access in accesses.items():
        result[function.innermost_loop(index)].append(access)
    return result


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _access(function: Function, index: int, form: CodeForm, profile: KernelProfile) -> _Access:
    """Of addresses that are not known, as few as their bytes need."""
    instruction = function.instructions[index]
    width = instruction.width_bytes or WORD_BYTES
    fewest = max(1, WARP * width // LINE_BYTES)
    if is_shared(instruction):
        takes, needs = shared_passes(function, index, form, profile.launch) or (fewest, fewest)
        return _Access(takes, needs)
    if not is_global(instruction):
        return _Access(fewest, fewest)
    shape = access_shape(function, index, form, profile.launch)
    if shape.lie is Lie.SAME:
        return _Access(WARP // shape.run, WARP // shape.run)
    return _Access(max(fewest, _lines(shape, width)) if shape.lie in _KNOWN else fewest, fewest)


def _lines(shape: AccessShape, width: int) -> int:
    """128-byte lines that the threads of a warp go to; runs of threads are in rows of their own."""
    span = (shape.run - 1) * shape.distance + width
    return WARP // shape.run * min(shape.run, -(-span // LINE_BYTES))
