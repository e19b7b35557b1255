# SPDX-License-Identifier: Apache-2.0
"""What to do about values in local memory, in words."""

from __future__ import annotations

from gpadvisor.estimators import terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.local_memory import (
    LocalKind,
    LocalPlaces,
    becomes_registers,
    bounded_registers,
    fits_shared,
    frame_bytes,
    is_unlimited,
    largest_of,
    passes_to_own,
    registers_at_same_occupancy,
)
from gpadvisor.evidence.arrays import is_indexed_by_data
from gpadvisor.evidence.frames import is_indexed_by_table, is_indexed_by_threads
from gpadvisor.evidence.measured import registers_per_thread
from gpadvisor.evidence.queries import (
    is_recursive,
    kernel_functions,
)
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.model.sentence import uncapitalised


def local_advice(context: KernelContext, places: LocalPlaces) -> str:
    """What shows each kind, and what to do about it."""
    parts = []
    kinds = set(places.values())
    if LocalKind.SPILL in kinds:
        size = f" ({frame} bytes of stack per thread)" if (frame := frame_bytes(context)) else ""
        parts.append(f"Keep fewer values live at once, so that none is spilled{size}. {_cap_advice(context)}")
    if LocalKind.ARRAY in kinds:
        parts.append(
            "An array of the thread is indexed with a value known only at run time"
            f"{_or_passed_on(context)}: {uncapitalised(_array_cure(context, places))}"
        )
    if LocalKind.BY_DATA in kinds:
        parts.append(
            f"An array of the thread is indexed with values that "
            f"{'conditions move' if _conditions_move(context, places) else 'were loaded'}, so that no "
            f"unrolling makes registers of it. {_by_data_cure(context, places)}".rstrip()
        )
    if LocalKind.PARAMETER in kinds:
        parts.append(
            "A parameter of the kernel that is passed by value is indexed with a value known only at run "
            f"time, so that each thread copies it to local memory first. {_parameter_cure(context)}"
        )
    if LocalKind.NUMBERS in kinds:
        parts.append(
            "Each thread writes constants to an array that is indexed with a value known only at run time. "
            f"{_constants_cure(context, places)}"
        )
    if LocalKind.CALL in kinds:
        parts.append(_call_advice(context, places))
    if LocalKind.PASSED in kinds:
        parts.append(
            "Values go through the stack to or from a function that is called: let it be inlined, or call it "
            "less often."
            if _calls_own(context, places)
            else "The arguments of printf go through the stack: call it less often."
        )
    return " ".join(parts)


def local_cure(context: KernelContext, places: LocalPlaces) -> str:
    """What to do about each kind, without what shows it."""
    kinds = set(places.values())
    parts = []
    if LocalKind.SPILL in kinds:
        parts.append(f"Keep fewer values live at once, so that none is spilled{_cap_cure(context)}.")
    if LocalKind.ARRAY in kinds:
        parts.append(_array_cure(context, places))
    if LocalKind.BY_DATA in kinds:
        parts.append(_by_data_cure(context, places))
    if LocalKind.PARAMETER in kinds:
        parts.append(_parameter_cure(context))
    if LocalKind.NUMBERS in kinds:
        parts.append(_constants_cure(context, places))
    # What calls keep is little beside an array that no inlining makes registers of.
    if LocalKind.CALL in kinds and (LocalKind.ARRAY not in kinds or becomes_registers(context)):
        recursive, functions = _callees(context, places)
        inlined = terms.INLINED.of(context.language)
        parts += [f"Inline the functions that are called{inlined}."] if functions else []
        parts += [f"Write {recursive[0].demangled}, which calls itself, as a loop."] if recursive else []
    if LocalKind.PASSED in kinds:
        parts.append(
            "Let the function that values go to or come from through the stack be inlined, or call it less "
            "often."
            if _calls_own(context, places)
            else "Call printf less often: its arguments go through the stack, and it cannot be inlined."
        )
    return " ".join(part for part in parts if part)


def _array_cure(context: KernelContext, places: LocalPlaces) -> str:
    """What to do about an array whose index a loop counts, or a table tells."""
    arrays = [place for place, kind in places.items() if kind is LocalKind.ARRAY]
    told, frame = largest_of(context, arrays)
    if is_indexed_by_table(context.program, told):
        return f"{terms.CONSTANT_INDICES.of(context.language)}, so that the thread's array is in registers."
    shared = f"keep it in shared memory{_if_it_fits(context, frame)}" if fits_shared(context, frame) else ""
    if frame and not becomes_registers(context, frame):
        return (
            f"Keep the thread's array in shared memory{_if_it_fits(context, frame)}: {frame} bytes are more "
            "than a thread's registers have room for."
            if shared
            else "Make the array smaller, or let the threads of a warp or block work on one together in "
            f"shared memory: {frame} bytes of each thread fit neither in its registers nor there."
        )
    alternative = f", or {shared}" if shared else ""
    return (
        "Unroll the loops over the index of the thread's array completely, with bounds that the compiler "
        f"knows, so that the array is in registers{alternative}."
    )


def _constants_cure(context: KernelContext, places: LocalPlaces) -> str:
    """What to do about an array that each thread fills with the same numbers."""
    frame = frame_bytes(context)
    written = f"each thread writes {f'{frame} bytes of it' if frame else 'it'} to local memory first"
    if any(is_indexed_by_threads(context.program.functions[number], [index]) for number, index in places):
        return (
            f"{terms.CONSTANT_ARRAY_OF_LANES.of(context.language)}: {written}, and constant memory gives the "
            "threads of a warp different elements one after the other."
        )
    return f"{terms.CONSTANT_ARRAY.of(context.language)}: {written}."


def _by_data_cure(context: KernelContext, places: LocalPlaces) -> str:
    """What to do about an array that data index; nothing where it has no other place."""
    arrays = [place for place, kind in places.items() if kind is LocalKind.BY_DATA]
    _, frame = largest_of(context, arrays)
    if not fits_shared(context, frame):
        return ""
    why = "conditions move its index" if _conditions_move(context, places) else "its index is data"
    return f"Keep the thread's array in shared memory{_if_it_fits(context, frame)}: {why}."


def _conditions_move(context: KernelContext, places: LocalPlaces) -> bool:
    """Whether nothing that was loaded is in an index: what else is indexed by data conditions move."""
    arrays = [
        (context.program.functions[number], index)
        for (number, index), kind in places.items()
        if kind is LocalKind.BY_DATA
    ]
    return bool(arrays) and not any(is_indexed_by_data(*place) for place in arrays)


def _parameter_cure(context: KernelContext) -> str:
    """What to do about a parameter that each thread has a copy of."""
    frame = frame_bytes(context)
    size = f"{frame} bytes" if frame else "it"
    return f"{terms.GRID_CONSTANT.of(context.language)}: each thread copies {size} to local memory."


def _if_it_fits(context: KernelContext, frame: int) -> str:
    if context.profile is not None:
        return ""
    return f" if it fits, {frame} bytes for each thread of a block" if frame else " if it fits"


def _cap_cure(context: KernelContext) -> str:
    """What to do about a limit on registers, where one is set."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    cap = context.machine.sm.max_registers_per_thread.value
    if registers is None or registers >= cap or is_unlimited(context):
        return ""
    source, cure = _register_limit(context, registers)
    room = registers_at_same_occupancy(context, registers)
    if room is None:
        return f"; or, for the limit of {registers} registers set by {source}, {cure}"
    if room <= registers:
        return ""
    return f"; or raise the limit of {registers} registers, set by {source}, to {room}"


def _callees(context: KernelContext, places: LocalPlaces) -> tuple[list[Function], list[Function]]:
    """Functions that keep registers of their callers: those that call themselves, and the others."""
    ids = dict.fromkeys(function for (function, _), kind in places.items() if kind is LocalKind.CALL)
    functions = [context.program.functions[id_] for id_ in ids]
    recursive = [function for function in functions if is_recursive(context.program, function)]
    return recursive, [function for function in functions if function not in recursive]


def _calls_own(context: KernelContext, places: LocalPlaces) -> bool:
    """Whether values are passed on to a function of the program."""
    ids = {function for (function, _), kind in places.items() if kind is LocalKind.PASSED}
    return any(passes_to_own(context, context.program.functions[id_]) for id_ in ids)


def _call_advice(context: KernelContext, places: LocalPlaces) -> str:
    """What keeps registers on the stack, and the cure: recursion cannot be inlined."""
    recursive, functions = _callees(context, places)
    parts = []
    if functions:
        parts.append(
            "Functions that are called keep registers of their caller (or spills of their own) on the stack: "
            f"inline them{terms.INLINED.of(context.language)}."
        )
    if recursive:
        parts.append(
            f"{recursive[0].demangled} calls itself and keeps its registers on the stack at every level: "
            "write it as a loop."
        )
    return " ".join(parts)


def _or_passed_on(context: KernelContext) -> str:
    functions = kernel_functions(context.program, context.kernel)
    called = next(
        (function.demangled for function in functions if function.kind is FunctionKind.DEVICE), None
    )
    return "" if called is None else f", or passed by address to a function that is called ({called})"


def _cap_advice(context: KernelContext) -> str:
    """What the limit on registers is, and how far it can be raised at the present occupancy."""
    cap = context.machine.sm.max_registers_per_thread.value
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return f"Check the limit on registers{terms.REGISTER_LIMITS.of(context.language)}."
    if registers >= cap:
        return f"All {cap} registers of a thread are in use: there is no limit to raise."
    if is_unlimited(context):
        return (
            f"The compiler stopped at {registers} of {cap} registers, of itself: there is no limit to raise."
        )
    source, cure = _register_limit(context, registers)
    room = registers_at_same_occupancy(context, registers)
    if room is None:
        return f"The compiler stopped at {registers} of {cap} registers, held there by {source}: {cure}."
    warps = context.occupancy.warps_per_sm
    if room > registers:
        return (
            f"The compiler stopped at {registers} registers, held there by {source}; up to {room} keep the "
            f"{warps} warps per SM of today."
        )
    return (
        f"The compiler stopped at {registers} registers, held there by {source}; more would cost some of the "
        f"{warps} warps per SM."
    )


def _register_limit(context: KernelContext, registers: int) -> tuple[str, str]:
    """What keeps the compiler from more registers, and what to do about that."""
    facts = context.program.facts.get(context.kernel)
    threads = None if facts is None else facts.max_threads_per_block
    blocks = None if facts is None else facts.min_blocks_per_sm
    bounded = threads is not None and registers >= bounded_registers(context) - 2
    if bounded and blocks is not None and blocks > 1:
        bounds = terms.LAUNCH_BOUNDS_OF.of(context.language, bounds=f"{threads}, {blocks}")
        return bounds, "lower the second number"
    if bounded:
        bounds = terms.LAUNCH_BOUNDS_OF.of(context.language, bounds=threads)
        return bounds, "lower it to the threads that are launched"
    if threads is not None and blocks is None:
        return terms.BOUNDS_OR_CAP.of(context.language), "give it more"
    return terms.REGISTER_CAP.of(context.language), "raise it"
