# SPDX-License-Identifier: Apache-2.0
"""What lives in local memory, and what room registers and shared memory have for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.accesses import is_local, one_way_slots, passes_stack_on
from gpadvisor.evidence.arrays import copies_parameters, is_indexed_by_data, is_moved_by_conditions
from gpadvisor.evidence.frames import holds_constants, is_indexed, largest_array
from gpadvisor.evidence.library_code import in_library_loop, makes_random_numbers
from gpadvisor.evidence.measured import registers_per_thread, shared_bytes
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import (
    kernel_functions,
)
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.model.thread_use import CodePlace

_REGISTER_BYTES: Final = 4
_FEWEST_WARPS: Final = 2  # for each scheduler, so that one can wait


class LocalKind(Kind):
    """What lives in local memory; the value is the pattern's title."""

    SPILL = "registers spilled to local memory"
    ARRAY = "local array indexed at run time"
    BY_DATA = "local array indexed by data"
    PARAMETER = "kernel parameter copied to local memory"
    NUMBERS = "array of constants in local memory"
    CALL = "registers kept on the stack across calls"
    PASSED = "values passed on through local memory"


LOCAL_WORDS: Final = {
    LocalKind.SPILL: "a spilled register",
    LocalKind.ARRAY: "an array of the thread",
    LocalKind.BY_DATA: "an array of the thread",
    LocalKind.PARAMETER: "a copy of a kernel parameter",
    LocalKind.NUMBERS: "an array of constants",
    LocalKind.CALL: "a register kept across a call",
    LocalKind.PASSED: "a value whose address is passed on",
}


LocalPlaces = Mapping[tuple[FunctionId, int], LocalKind]


def largest_of(context: KernelContext, arrays: Collection[CodePlace]) -> tuple[Collection[CodePlace], int]:
    """Of the accesses to a thread's arrays those to the largest, and its bytes; else all, and its frame's."""
    frame, numbers = frame_bytes(context), {number for number, _ in arrays}
    for number in numbers if len(numbers) == 1 else ():
        function = context.program.functions[number]
        found = largest_array(function, sorted(index for _, index in arrays), frame)
        if found is not None:
            return {(number, index) for index in found[0]}, found[1]
    return arrays, frame


def becomes_registers(context: KernelContext, size: int | None = None) -> bool:
    """Whether a thread's registers have room for its frame, or so many bytes, beside what they hold now."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    frame = frame_bytes(context) if size is None else size
    return 0 < frame <= _REGISTER_BYTES * (allowed_registers(context) - (registers or 0))


def registers_have_room(context: KernelContext) -> float:
    """Of a thread's frame the share that more registers hold with as many blocks on an SM as now."""
    registers, frame = (
        registers_per_thread(context.program, context.kernel, context.profile),
        frame_bytes(context),
    )
    room = None if registers is None else registers_at_same_occupancy(context, registers)
    if room is None or registers is None or not frame:
        return 0.0
    return min(1.0, _REGISTER_BYTES * (room - registers) / frame)


def registers_at_same_occupancy(context: KernelContext, registers: int) -> int | None:
    """The most registers for each thread that leave as many blocks on an SM as now."""
    if context.profile is None or context.occupancy.blocks_per_sm is None:
        return None
    launch = context.profile.launch
    shared = shared_bytes(context.program, context.kernel, context.profile) or 0
    best, sm = registers, context.machine.sm
    for more in range(registers, sm.max_registers_per_thread.value + 1, sm.register_step):
        resident = occupancy(
            sm,
            threads_per_block=launch.threads_per_block,
            registers_per_thread=more,
            shared_bytes=shared,
        )
        if resident.blocks < context.occupancy.blocks_per_sm:
            break
        best = more
    return best


def fits_shared(context: KernelContext, size: int | None = None) -> bool:
    """Whether the frames of a block, or so many bytes of each thread, leave shared memory for as many blocks.

    Where no launch is known, those of two warps for each scheduler must, and the condition is said.
    """
    frame = frame_bytes(context) if size is None else size
    shared = shared_bytes(context.program, context.kernel, context.profile) or 0
    if context.profile is None:
        sm = context.machine.sm
        threads = _FEWEST_WARPS * sm.schedulers.value * WARP
        return shared + frame * threads <= sm.shared_bytes.value
    launch = context.profile.launch
    resident = occupancy(
        context.machine.sm,
        threads_per_block=launch.threads_per_block,
        registers_per_thread=launch.registers_per_thread or 1,
        shared_bytes=shared + frame * max(launch.threads_per_block, WARP),
    )
    return resident.blocks >= (context.occupancy.blocks_per_sm or 1)


def passes_to_own(context: KernelContext, function: Function) -> bool:
    """Whether a function of the program is called, not printf or an assertion and library math alone."""
    called = (call.callee for call in function.calls if call.callee is not None)
    return any(
        context.program.functions[function_id].kind is not FunctionKind.MATH_HELPER for function_id in called
    )


def kinds_of_accesses(context: KernelContext) -> LocalPlaces:
    """Local accesses of the program's own code; the library keeps an array of its own (see Fast Math).

    What is spilled a cubin of CUDA 13 says. Elsewhere a kernel that also indexes its frame at run time has
    arrays in it, and one that passes its address on has variables; there, fixed places are spills only if the
    compiler had no registers left, and both written and read.
    """
    facts = context.program.facts.get(context.kernel)
    spills = None if facts is None else facts.spills
    own_slots: dict[Function, list[int]] = {}
    for function in kernel_functions(context.program, context.kernel):
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        local = [index for index, instruction in enumerate(function.instructions) if is_local(instruction)]
        library = (
            {index for sequence in math_sequences(function) for index in sequence.indices} if local else set()
        )
        own_slots[function] = [index for index in local if index not in library]
    arrays = {
        (function.id, index)
        for function, indices in own_slots.items()
        for index in indices
        if is_indexed(function, index)
    }
    full = _registers_full(context) if spills is None else bool(spills)
    functions = context.program.functions
    librarys = [
        in_library_loop(functions[function_id], index) or makes_random_numbers(functions[function_id], index)
        for function_id, index in arrays
    ]
    if not full and librarys and all(librarys):
        return {}  # those of curand_init, or a state of quasi-random numbers
    copied = None if full or not arrays else _copied(own_slots)
    if copied is not None:
        return {(function.id, index): copied for function in own_slots for index in own_slots[function]}
    told, _ = largest_of(context, arrays)
    by_data = any(is_indexed_by_data(functions[function_id], index) for function_id, index in told)
    array = LocalKind.BY_DATA if by_data or _conditions_move(functions, told) else LocalKind.ARRAY
    kinds = {}
    for function, indices in own_slots.items():
        fixed = _fixed_places(function, indices, array if arrays else None, full=full, spills=spills)
        for index in indices:
            kinds[function.id, index] = array if (function.id, index) in arrays else fixed[index]
    return kinds


def _fixed_places(
    function: Function,
    indices: Sequence[int],
    array: LocalKind | None,
    *,
    full: bool,
    spills: frozenset[int] | None,
) -> dict[int, LocalKind]:
    """What accesses to fixed places are, beside those to an array, if there is one."""
    if function.kind is not FunctionKind.KERNEL:
        return dict.fromkeys(indices, LocalKind.CALL)
    if spills is not None:
        other = array or LocalKind.PASSED
        return {
            index: LocalKind.SPILL if function.instructions[index].pc in spills else other
            for index in indices
        }
    if array is not None:
        return dict.fromkeys(indices, LocalKind.SPILL if full else array)
    kind = LocalKind.SPILL if full or not passes_stack_on(function) else LocalKind.PASSED
    one_way = one_way_slots(function, indices)
    return {index: LocalKind.PASSED if index in one_way else kind for index in indices}


def _conditions_move(functions: Sequence[Function], arrays: Collection[tuple[FunctionId, int]]) -> bool:
    """Whether conditions move the index that an array is filled by, or that is read most often, by loops."""
    if not arrays:
        return False
    read = max(sorted(arrays), key=lambda place: len(functions[place[0]].enclosing_loops(place[1])))
    filled = [
        (number, index)
        for number, index in arrays
        if functions[number].instructions[index].info.opclass is OpcodeClass.STORE
    ]
    return any(is_moved_by_conditions(functions[number], index) for number, index in (read, *filled))


def _copied(own: Mapping[Function, Sequence[int]]) -> LocalKind | None:
    """What local memory holds where that is a copy of the kernel's parameters, or of constants, alone."""
    owners = [function for function, indices in own.items() if indices]
    if len(owners) != 1:
        return None
    code = owners[0].instructions
    stores = [index for index in own[owners[0]] if code[index].info.opclass is OpcodeClass.STORE]
    if copies_parameters(owners[0], stores):
        return LocalKind.PARAMETER
    return LocalKind.NUMBERS if holds_constants(owners[0], stores) else None


def allowed_registers(context: KernelContext) -> int:
    """Registers that the compiler could give each thread: by the cubin, else by __launch_bounds__."""
    facts = context.program.facts.get(context.kernel)
    limit = None if facts is None else facts.register_limit
    return bounded_registers(context) if limit is None else min(limit, _hardware_limit(context))


def is_unlimited(context: KernelContext) -> bool:
    """Whether nothing but the hardware was to keep the compiler from more registers, as the cubin says."""
    facts = context.program.facts.get(context.kernel)
    limit = None if facts is None else facts.register_limit
    return limit is not None and limit >= _hardware_limit(context)


def _hardware_limit(context: KernelContext) -> int:
    return context.machine.sm.max_registers_per_thread.value


def bounded_registers(context: KernelContext) -> int:
    """Registers that __launch_bounds__ leaves for each thread, else what the hardware has."""
    sm = context.machine.sm
    facts = context.program.facts.get(context.kernel)
    cap = _hardware_limit(context)
    if facts is None or not facts.max_threads_per_block:
        return cap
    warps = -(-facts.max_threads_per_block // sm.warp_size.value) * (facts.min_blocks_per_sm or 1)
    registers_per_thread = sm.registers.value // (warps * sm.warp_size.value)
    step = sm.register_step
    return min(cap, max(step, registers_per_thread // step * step))


def _registers_full(context: KernelContext) -> bool:
    """Whether the compiler used all registers that the launch bounds and the hardware leave it."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    return registers is None or registers >= allowed_registers(context) - 2


def frame_bytes(context: KernelContext) -> int:
    """Of the stack frame of a thread."""
    facts = context.program.facts.get(context.kernel)
    return 0 if facts is None or facts.stack_bytes is None else facts.stack_bytes
