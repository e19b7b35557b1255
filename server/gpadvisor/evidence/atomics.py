# SPDX-License-Identifier: Apache-2.0
"""A kernel's atomic operations, and how many threads of a warp meet at a word there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.evidence.access_shapes import (
    AccessShape,
    Lie,
    access_shape,
    deciding_branches,
    is_for_one_thread,
)
from gpadvisor.evidence.accesses import is_atomic, is_shared
from gpadvisor.evidence.addresses import is_same_for_all
from gpadvisor.evidence.arrays import address_makers
from gpadvisor.evidence.histograms import is_result_used, words_chosen_by_data
from gpadvisor.evidence.lanes import (
    Choice,
    active_share,
    choice_of,
    comparisons,
    is_order,
    numbers_of,
    threads_per_warp,
)
from gpadvisor.evidence.loops import every_pass, measured_trips
from gpadvisor.evidence.measured import Floats, executed_warps, metric
from gpadvisor.evidence.queries import kernel_functions, loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import register_name
from gpadvisor.model.machine import SECTOR_BYTES, CodeForm
from gpadvisor.model.profile import KernelProfile, Launch
from gpadvisor.model.program import Function, Program
from gpadvisor.model.thread_use import CodePlace

_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_SENT: Final = tuple(
    f"lts__t_sectors_srcunit_tex_op_{kind}.sum" for kind in ("red", "atom_dot_alu", "atom_dot_cas")
)
_WORDS_PER_SECTOR: Final = SECTOR_BYTES // 4
_COMPARED: Final = frozenset({"CAS", "CAST"})
_ONE_BY_ONE: Final = frozenset({"EXCH", "INC", "DEC"})
FLOATS: Final = frozenset({"F16", "F32", "F64", "BF16", "F16x2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic:
    """One atomic instruction."""

    function: Function
    index: int
    warps: float = 0.0  # executions; 0 where not counted
    threads: float | None = None  # of a warp that take part; None where not counted
    meeting: float | None = (
        None  # of them for each word: as sectors were sent, else for all words of a sector
    )
    by_data: bool = False  # whether what was loaded chooses the word
    passes: float = 1.0  # of a loop in which its address stays, so that a thread can add up first
    words: int | None = None  # of a small array in device memory, of which it does

    @property
    def place(self) -> CodePlace:
        """Where it is."""
        return self.function.id, self.index

    @property
    def modifiers(self) -> frozenset[str]:
        """The modifiers of its opcode."""
        return frozenset(self.function.instructions[self.index].modifiers)

    @property
    def repeats(self) -> bool:
        """Whether threads that lose against another try again: a compare-and-swap, or what is made of one."""
        return not _COMPARED.isdisjoint(self.modifiers)

    @property
    def combines(self) -> bool:
        """Whether one can do the work of several: not an exchange, nor a count that wraps at a limit."""
        return _ONE_BY_ONE.isdisjoint(self.modifiers)

    @property
    def returns(self) -> bool:
        """Whether its result is used, so that no copies can be added up at the end."""
        return is_result_used(self.function, self.index)

    @property
    def in_loop(self) -> bool:
        """Whether a thread comes there again and again."""
        return self.function.innermost_loop(self.index) is not None

    def warps_of_block(self, profile: KernelProfile) -> float:
        """How many warps of a block come there, at most: one where a single thread sends for all."""
        warps = profile.launch.threads_per_block / threads_per_warp(profile)
        executed = self.warps / profile.launch.blocks if self.warps else warps
        return max(1.0, min(warps, executed))


def atomics_of(program: Program, kernel: str, profile: KernelProfile) -> list[Atomic]:
    """The atomic operations of a kernel that were executed, as far as that was counted."""
    collected = [
        _atomic(program, profile, function, index)
        for function in kernel_functions(program, kernel)
        for executed in (executed_warps(profile, function),)
        for index, instruction in enumerate(function.instructions)
        if is_atomic(instruction) and (executed is None or executed[index])
    ]
    turns = _turns(profile, collected)
    return [
        replace(atomic, meeting=max(atomic.meeting, min(turns, atomic.threads or turns)))
        if atomic.meeting is not None and not is_shared(atomic.function.instructions[atomic.index])
        else atomic
        for atomic in collected
    ]


def _turns(profile: KernelProfile, atomics: Sequence[Atomic]) -> float:
    """How often a sector was sent for each time it was addressed: once for each thread at a word."""
    addressed = 0.0
    for function in {atomic.function.id: atomic.function for atomic in atomics}.values():
        sectors = metric(profile, _SECTORS, function)
        addressed += (
            0.0
            if sectors is None
            else sum(sectors[atomic.index] for atomic in atomics if atomic.function is function)
        )
    return sum(profile.metric(name) or 0.0 for name in _SENT) / addressed if addressed else 0.0


def _passes(function: Function, index: int, executed: Floats | None) -> float:
    loop = function.innermost_loop(index)
    if loop is None or executed is None or not has_address_from_before(function, index, loop):
        return 1.0
    return measured_trips(function, loop, executed) or 1.0


def has_address_from_before(function: Function, index: int, loop: LoopId) -> bool:
    """Whether an access's address is made in front of a loop around it."""
    instruction = function.instructions[index]
    address = (used for used in instruction.uses if f"[{register_name(used)}." in instruction.operands)
    made = {definition for used in address for definition in function.reaching.definitions(index, used)}
    return not made.intersection(loop_indices(function, loop))


def _atomic(program: Program, profile: KernelProfile, function: Function, index: int) -> Atomic:
    active, executed = active_share(profile, function), executed_warps(profile, function)
    sectors = metric(profile, _SECTORS, function)
    threads = None if active is None else float(active[index]) * threads_per_warp(profile)
    meeting = None
    lie = access_shape(function, index, program.form, profile.launch).lie
    if threads is not None and executed is not None and sectors is not None and sectors[index]:
        per_warp = float(sectors[index] / executed[index])
        one_word = lie is Lie.SAME and round(per_warp) == 1
        meeting = threads / (1.0 if one_word else per_warp * _WORDS_PER_SECTOR)
    return Atomic(
        function=function,
        index=index,
        warps=0.0 if executed is None else float(executed[index]),
        threads=threads,
        meeting=meeting,
        by_data=lie is Lie.BY_DATA,
        passes=_passes(function, index, executed),
        words=words_chosen_by_data(function, index),
    )


def met_by_code(function: Function, form: CodeForm, launch: Launch) -> Atomic | None:
    """An operation in which all threads of a warp go to one address, as the machine code alone shows.

    In every pass of a loop; or, where a kernel has no loop, on one word of the whole grid, to which each
    thread adds a float: integers the compiler adds up in the warp.
    """
    for index, instruction in enumerate(function.instructions):
        atomic = Atomic(function=function, index=index)
        if (
            is_atomic(instruction)
            and atomic.combines
            and not atomic.repeats
            and (_is_of_each_pass(function, index) or _is_of_each_thread(function, index, form, launch))
            and not atomic.returns
            and access_shape(function, index, form, launch) == AccessShape(Lie.SAME)
            and not is_for_one_thread(function, index, form, launch)
            and not _is_chosen_by_data(function, index, form, launch)
        ):
            return atomic
    return None


def _is_chosen_by_data(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether comparisons of data decide which of several addresses each thread goes to."""
    makers, common = address_makers(function, index), {*deciding_branches(function, index)}
    ways = {branch for maker in makers for branch in deciding_branches(function, maker)} - common
    chosen = comparisons(function, {*makers, *ways})
    return any(choice_of(function, compare, form, launch) is Choice.DATA for compare in chosen)


def _is_of_each_pass(function: Function, index: int) -> bool:
    loop = function.innermost_loop(index)
    return (
        function.instructions[index].guard is None and loop is not None and every_pass(function, loop, index)
    )


def _is_of_each_thread(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether every thread sends a float to the same word, but those behind the end of the data."""
    instruction = function.instructions[index]
    if function.loops or FLOATS.isdisjoint(instruction.modifiers) or not is_same_for_all(function, index):
        return False
    conditions = [*deciding_branches(function, index), *([] if instruction.guard is None else [index])]
    return all(
        is_order(function, compare)
        and len(numbers_of(function, compare)) > 1
        and choice_of(function, compare, form, launch) in {Choice.BOUND, Choice.UNKNOWN}
        for compare in comparisons(function, conditions)
    )
