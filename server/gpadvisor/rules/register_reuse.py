# SPDX-License-Identifier: Apache-2.0
"""Register Reuse: values that live in local memory because registers ran out (GPA Table II).

## What it finds

Stalls that loads and stores of local memory cause. Two different things live there: *spills*, registers
that the compiler had to store to fixed places of the stack frame, and *indexed arrays*, arrays of a
thread that are indexed with a value known only at run time. The machine code tells them apart: a spill's
address is the stack pointer and a constant, and the place is both written and read. Without samples only
those in loops are named, where there are loops.

## Why warps stall

Local memory is memory. A spilled value is written through the L1 cache and comes back with the latency of
a load, and every spill takes a place in the load/store queue, although the program asked for a register.

## What to try

For spills: make fewer values live at once. Split a large loop or kernel, load a value where it is used
instead of long before, recompute what is cheap, narrow what is wide. If the compiler was given fewer
registers than the hardware allows (`__launch_bounds__`, `-maxrregcount`), raise that limit as far as the
occupancy that the kernel needs permits; the advice names the numbers. For indexed arrays: unroll the loop
over the index completely, so that each element becomes a register, or move the array to shared memory. One
that data index (a histogram of each thread) has no such loop: shared memory, where the block's fit.

## Example

```cuda
__global__ void __launch_bounds__(1024) kernel(...)   // 64 registers at most: spills
__global__ void __launch_bounds__(512)  kernel(...)   // 128 registers: no spills

float a[8];
for (int i = 0; i < n; ++i) s += a[index[i] & 7];     // indexed at run time: local memory
#pragma unroll
for (int i = 0; i < 8; ++i) s += a[i] * w[i];         // constant indices: registers
```

## When this advice is wrong

More registers for each thread can mean fewer warps on an SM. Where those warps hid latency, a few spills
that hit the L1 cache cost less. At 255 registers there is no limit left to raise. In a device function
that is called, some stores and loads of the frame keep the caller's registers, as the calling convention
asks: inlining it removes them.

## How the gain is estimated

GPA Eq. 2 with the samples of local memory accesses: stalls for their data, and stalls because their queue
was full. In the paper's Table III the one kernel of this kind gained half of what was matched. An
array that fits in the registers of a thread goes as a whole, with its traffic in L1, L2 and DRAM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.reliefs import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import DRAM, L1_DATA, L1_TO_L2, L2
from gpadvisor.evidence.accesses import is_local, is_stack_slot, one_way_slots, passes_stack_on
from gpadvisor.evidence.arrays import is_indexed_by_data
from gpadvisor.evidence.measured import metric, registers_per_thread, shared_bytes
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    causes,
    is_recursive,
    kernel_functions,
    percent,
    regions,
    samples,
    stalled,
    static_match,
)
from gpadvisor.evidence.traffic import SECTORS_PER_LINE, kernel_traffic
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, Relief, StaticSite
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.source.edits import SiteKind

_CODE: Final = "GPA101"
_LOCAL_SECTORS: Final = "memory_l2_theoretical_sectors_local"
_GLOBAL_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_REGISTER_STEP: Final = 8  # registers are given to a warp in units of 256, 8 for each thread
_REGISTER_BYTES: Final = 4
_WARP: Final = 32


class _Kind(Enum):
    """What lives in local memory; the value is the pattern's title."""

    SPILL = "registers spilled to local memory"
    ARRAY = "local array indexed at run time"
    BY_DATA = "local array indexed by data"
    CALL = "registers kept on the stack across calls"
    PASSED = "values passed on through local memory"


_WORDS: Final = {
    _Kind.SPILL: "a spilled register",
    _Kind.ARRAY: "an array of the thread",
    _Kind.BY_DATA: "an array of the thread",
    _Kind.CALL: "a register kept across a call",
    _Kind.PASSED: "a value whose address is passed on",
}
_Places = Mapping[tuple[FunctionId, int], _Kind]
_TABLE_III: Final = Adjustment(
    low=0.0,
    expected=constants.REUSED,
    high=1.0,
    reason="in the paper's Table III this change removed 51 % of the matched stalls (one kernel, "
    "Quicksilver)",
)


def _match(context: KernelContext) -> Match | Rejection:
    kinds = _kinds(context)
    sites = _sites(context, kinds)
    if context.blame is None:
        looped = {
            place: kind
            for place, kind in kinds.items()
            if _runs_often(context, place, kind) and (kind is not _Kind.BY_DATA or _fits_shared(context))
        }
        counts = Counter(looped.values())
        return static_match(
            _CODE,
            title=_heaviest(counts).value,
            advice=_advice(context, looped),
            cure=_cure(context, looped),
            sites=_sites(context, looped),
            missing=_nothing(context, len(kinds)),
        )
    blame = context.blame
    local = _local_rows(context, blame, kinds)
    if not samples(blame, local):
        where = f"{len(sites)} in the code, none with samples" if sites else "none in the code"
        return Rejection(code=_CODE, reason=f"no stall due to local memory accesses: {where}")
    weights = Counter({kind: samples(blame, local & _rows_of(blame, kinds, kind)) for kind in _Kind})
    weighty = {place: kind for place, kind in kinds.items() if weights[kind]}
    whole = _becomes_registers(context)
    return Match(
        title=_heaviest(weights).value,
        advice=_advice(context, weighty),
        cure=_cure(context, weighty),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(local)),
        adjustments=(_adjustment(weights, whole=whole),),
        static_sites=sites,
        # As many accesses go as the expected share of the stalls, at best all.
        relieves=(
            *freed(context, _gone(kinds, whole=whole), dict.fromkeys(kinds, 1.0)),
            *_traffic_gone(context, kinds, whole=whole),
        ),
        actionable=bool(_cure(context, weighty)),
    )


def _becomes_registers(context: KernelContext) -> bool:
    """Whether a thread's registers have room for the arrays of its frame beside what they hold now."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    frame = _frame_bytes(context)
    return 0 < frame <= _REGISTER_BYTES * (_allowed_registers(context) - (registers or 0))


def _fits_shared(context: KernelContext) -> bool:
    """Whether the frames of a block fit in shared memory with as many blocks on an SM as now.

    Where no launch is known it is said with the condition.
    """
    if context.profile is None:
        return True
    launch = context.profile.launch
    shared = shared_bytes(context.program, context.kernel, context.profile) or 0
    found = occupancy(
        context.machine.sm,
        threads_per_block=launch.threads_per_block,
        registers_per_thread=launch.registers_per_thread or 1,
        shared_bytes=shared + _frame_bytes(context) * max(launch.threads_per_block, _WARP),
    )
    return (found.blocks_per_sm or 0) >= (context.occupancy.blocks_per_sm or 1)


def _gone(kinds: _Places, *, whole: bool) -> dict[tuple[FunctionId, int], float]:
    """By access the share that goes: all of an array that becomes registers, else as in Table III."""
    return {one: 1.0 if whole and kind is _Kind.ARRAY else constants.REUSED for one, kind in kinds.items()}


def _adjustment(weights: Counter[_Kind], *, whole: bool) -> Adjustment:
    """The paper's Table III, but for arrays that become registers: of those no access is left."""
    part = weights[_Kind.ARRAY] / max(1, weights.total()) if whole else 0.0
    if not part:
        return _TABLE_III
    return Adjustment(
        low=constants.MIDDLE * part,
        expected=part + constants.REUSED * (1 - part),
        high=1.0,
        reason=f"{percent(part)} of the matched stalls are due to an array that fits in registers: with "
        "constant indices all of them go, at the low end half. Of others 51 % went in the paper's Table III "
        "(one kernel, Quicksilver)",
    )


def _traffic_gone(context: KernelContext, kinds: _Places, *, whole: bool) -> tuple[Relief, ...]:
    """Of what L1 and the memory behind it move, the part of local memory that goes."""
    if context.profile is None:
        return ()
    sums = dict.fromkeys((_LOCAL_SECTORS, _GLOBAL_SECTORS), 0.0)
    for function in kernel_functions(context.program, context.kernel):
        for name in sums:
            found = metric(context.profile, name, function)
            sums[name] += 0.0 if found is None else float(found.sum())
    local = sums[_LOCAL_SECTORS]
    if not local:
        return ()
    share = local / sum(sums.values())
    traffic = kernel_traffic(context.program, context.kernel, context.profile)
    lines = local / SECTORS_PER_LINE
    in_l1 = lines / (lines + (0.0 if traffic is None else traffic.l1_wavefronts))
    gone = _gone(kinds, whole=whole).values()
    expected = sum(gone) / max(1, len(gone))
    return tuple(
        Relief(resource=resource, remaining=1 - expected * part, remaining_best=1 - part)
        for resource, part in ((L1_DATA, in_l1), (L1_TO_L2, share), (L2, share), (DRAM, share))
    )


def _runs_often(context: KernelContext, place: tuple[FunctionId, int], kind: _Kind) -> bool:
    """Whether an instruction runs more than once by the code alone, or the kernel has no loop to run in."""
    function = context.program.functions[place[0]]
    if kind is _Kind.PASSED and not _passes_to_own(context, function):
        return False
    if function.kind is not FunctionKind.KERNEL or (not function.loops and kind is not _Kind.PASSED):
        return True
    return function.innermost_loop(place[1]) is not None


def _passes_to_own(context: KernelContext, function: Function) -> bool:
    """Whether a function of the program is called, not printf or an assertion and library math alone."""
    called = (call.callee for call in function.calls if call.callee is not None)
    return any(context.program.functions[one].kind is not FunctionKind.MATH_HELPER for one in called)


def _nothing(context: KernelContext, outside: int) -> str:
    frame = f"stack frame: {_frame_bytes(context)} bytes"
    if outside:
        return f"{outside} local memory accesses, none of them in a loop ({frame})"
    return f"no local memory access outside of library math ({frame})"


def _heaviest(weights: Counter[_Kind]) -> _Kind:
    return max(_Kind, key=lambda kind: weights[kind])


def _rows_of(blame: Blame, kinds: _Places, kind: _Kind) -> Mask:
    return by_place(blame, causes(blame), [place for place, other in kinds.items() if other is kind])


def _local_rows(context: KernelContext, blame: Blame, kinds: _Places) -> Mask:
    """Stalls for local data, and stalls that a local load or store has or causes in other ways."""
    own = by_place(blame, causes(blame), list(kinds))
    elsewhere = by_instruction(blame, context.program, causes(blame), is_local) & ~own
    local = by_class(blame, {DependencyClass.LOCAL_MEMORY}) & ~elsewhere
    return local | (own & stalled(blame))


def _kinds(context: KernelContext) -> _Places:
    """Local accesses of the program's own code; the library keeps an array of its own (see Fast Math).

    A kernel that also indexes its frame at run time has arrays in it, and one that passes its address on has
    variables; there, fixed places are spills only if the compiler had no registers left, and both written and
    read.
    """
    own: dict[Function, list[int]] = {}
    for function in kernel_functions(context.program, context.kernel):
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        local = [index for index, one in enumerate(function.instructions) if is_local(one)]
        library = {index for one in math_sequences(function) for index in one.indices} if local else set()
        own[function] = [index for index in local if index not in library]
    arrays = {
        (function.id, index)
        for function, indices in own.items()
        for index in indices
        if not is_stack_slot(function.instructions[index])
    }
    # Of several arrays nobody can say which access belongs to which.
    by_data = any(is_indexed_by_data(context.program.functions[at], index) for at, index in arrays)
    array = _Kind.BY_DATA if by_data else _Kind.ARRAY
    full = _registers_full(context)
    found = {}
    for function, indices in own.items():
        if function.kind is not FunctionKind.KERNEL:
            fixed, one_way = _Kind.CALL, set[int]()
        elif arrays:
            fixed, one_way = _Kind.SPILL if full else array, set()
        else:
            fixed = _Kind.SPILL if full or not passes_stack_on(function) else _Kind.PASSED
            one_way = one_way_slots(function, indices)
        for index in indices:
            kind = _Kind.PASSED if index in one_way else fixed
            found[function.id, index] = array if (function.id, index) in arrays else kind
    return found


def _sites(context: KernelContext, kinds: _Places) -> tuple[StaticSite, ...]:
    found = []
    for (function, index), kind in kinds.items():
        instruction = context.program.functions[function].instructions[index]
        verb = "stores" if instruction.info.opclass is OpcodeClass.STORE else "loads"
        found.append(StaticSite(function=function, index=index, detail=f"{verb} {_WORDS[kind]}"))
    return tuple(found)


def _allowed_registers(context: KernelContext) -> int:
    """Registers that __launch_bounds__ leaves for each thread, else what the hardware has."""
    sm = context.machine.sm
    facts = context.program.facts.get(context.kernel)
    cap = sm.max_registers_per_thread.value
    if facts is None or not facts.max_threads_per_block:
        return cap
    warps = -(-facts.max_threads_per_block // sm.warp_size.value) * (facts.min_blocks_per_sm or 1)
    each = sm.registers.value // (warps * sm.warp_size.value)
    return min(cap, max(_REGISTER_STEP, each // _REGISTER_STEP * _REGISTER_STEP))


def _registers_full(context: KernelContext) -> bool:
    """Whether the compiler used all registers that the launch bounds and the hardware leave it."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    return registers is None or registers >= _allowed_registers(context) - 2


def _frame_bytes(context: KernelContext) -> int:
    facts = context.program.facts.get(context.kernel)
    return 0 if facts is None or facts.stack_bytes is None else facts.stack_bytes


def _advice(context: KernelContext, places: _Places) -> str:
    parts = []
    kinds = set(places.values())
    if _Kind.SPILL in kinds:
        size = f" ({frame} bytes of stack per thread)" if (frame := _frame_bytes(context)) else ""
        parts.append(f"Keep fewer values live at once, so that none is spilled{size}. {_cap_advice(context)}")
    if _Kind.ARRAY in kinds:
        parts.append(
            "An array of the thread is indexed with a value known only at run time"
            f"{_or_passed_on(context)}: {_array_cure(context)[0].lower()}{_array_cure(context)[1:]}"
        )
    if _Kind.BY_DATA in kinds:
        parts.append(
            "An array of the thread is indexed with values that were loaded, so that no unrolling makes "
            f"registers of it. {_by_data_cure(context)}"
        )
    if _Kind.CALL in kinds:
        parts.append(_call_advice(context, places))
    if _Kind.PASSED in kinds:
        parts.append(
            "Values go through the stack to or from a function that is called: let it be inlined, or call it "
            "less often."
            if _calls_own(context, places)
            else "The arguments of printf go through the stack: call it less often."
        )
    return " ".join(parts)


def _cure(context: KernelContext, places: _Places) -> str:
    """What to do about each kind, without what shows it."""
    kinds = set(places.values())
    parts = []
    if _Kind.SPILL in kinds:
        parts.append(f"Keep fewer values live at once, so that none is spilled{_cap_cure(context)}.")
    if _Kind.ARRAY in kinds:
        parts.append(_array_cure(context))
    if _Kind.BY_DATA in kinds:
        parts.append(_by_data_cure(context))
    if _Kind.CALL in kinds:
        recursive, others = _callees(context, places)
        parts += ["Inline the functions that are called (__forceinline__)."] if others else []
        parts += [f"Write {recursive[0].demangled}, which calls itself, as a loop."] if recursive else []
    if _Kind.PASSED in kinds:
        parts.append(
            "Let the function that values go to or come from through the stack be inlined, or call it less "
            "often."
            if _calls_own(context, places)
            else "Call printf less often: its arguments go through the stack, and it cannot be inlined."
        )
    return " ".join(part for part in parts if part)


def _array_cure(context: KernelContext) -> str:
    """What to do about an array whose index a loop counts."""
    shared = f"keep it in shared memory{_if_it_fits(context)}" if _fits_shared(context) else ""
    frame = _frame_bytes(context)
    if frame and not _becomes_registers(context):
        return (
            f"{shared[0].upper()}{shared[1:]}: {frame} bytes are more than the registers of a thread hold."
            if shared
            else f"Make the array smaller: {frame} bytes of each thread fit neither in its registers nor in "
            "shared memory beside what is there."
        )
    other = f", or {shared}" if shared else ""
    return (
        "Unroll the loops over the index of the thread's array completely, with bounds that the compiler "
        f"knows, so that the array is in registers{other}."
    )


def _by_data_cure(context: KernelContext) -> str:
    """What to do about an array that data index; nothing where it has no other place."""
    if not _fits_shared(context):
        return ""
    return f"Keep the thread's array in shared memory{_if_it_fits(context)}: its index is data."


def _if_it_fits(context: KernelContext) -> str:
    if context.profile is not None:
        return ""
    frame = _frame_bytes(context)
    return f" if it fits, {frame} bytes for each thread of a block" if frame else " if it fits"


def _cap_cure(context: KernelContext) -> str:
    """What to do about a limit on registers, where one is set."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None or registers >= context.machine.sm.max_registers_per_thread.value:
        return ""
    source, cure = _register_limit(context, registers)
    room = _registers_at_same_occupancy(context, registers)
    if room is None:
        return f"; or, for the limit of {registers} registers set by {source}, {cure}"
    if room <= registers:
        return ""
    return f"; or raise the limit of {registers} registers, set by {source}, to {room}"


def _callees(context: KernelContext, places: _Places) -> tuple[list[Function], list[Function]]:
    """Functions that keep registers of their callers: those that call themselves, and the others."""
    ids = dict.fromkeys(function for (function, _), kind in places.items() if kind is _Kind.CALL)
    functions = [context.program.functions[one] for one in ids]
    recursive = [one for one in functions if is_recursive(context.program, one)]
    return recursive, [one for one in functions if one not in recursive]


def _calls_own(context: KernelContext, places: _Places) -> bool:
    """Whether values are passed on to a function of the program."""
    ids = {function for (function, _), kind in places.items() if kind is _Kind.PASSED}
    return any(_passes_to_own(context, context.program.functions[one]) for one in ids)


def _call_advice(context: KernelContext, places: _Places) -> str:
    """What keeps registers on the stack, and the cure: recursion cannot be inlined."""
    recursive, others = _callees(context, places)
    parts = []
    if others:
        parts.append(
            "Functions that are called keep registers of their caller (or spills of their own) on the stack: "
            "inline them (__forceinline__)."
        )
    if recursive:
        parts.append(
            f"{recursive[0].demangled} calls itself and keeps its registers on the stack at every level: "
            "write it as a loop."
        )
    return " ".join(parts)


def _or_passed_on(context: KernelContext) -> str:
    functions = kernel_functions(context.program, context.kernel)
    called = next((one.demangled for one in functions if one.kind is FunctionKind.DEVICE), None)
    return "" if called is None else f", or passed by address to a function that is called ({called})"


def _cap_advice(context: KernelContext) -> str:
    """What the limit on registers is, and how far it can be raised at the present occupancy."""
    cap = context.machine.sm.max_registers_per_thread.value
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return "Check the limit on registers (__launch_bounds__, -maxrregcount)."
    if registers >= cap:
        return f"All {cap} registers of a thread are in use: there is no limit to raise."
    source, cure = _register_limit(context, registers)
    room = _registers_at_same_occupancy(context, registers)
    if room is None:
        return f"The compiler stopped at {registers} of {cap} registers, held there by {source}: {cure}."
    now = context.occupancy.warps_per_sm
    if room > registers:
        return (
            f"The compiler stopped at {registers} registers, held there by {source}; up to {room} keep the "
            f"{now} warps per SM of today."
        )
    return (
        f"The compiler stopped at {registers} registers, held there by {source}; more would cost some of the "
        f"{now} warps per SM."
    )


def _register_limit(context: KernelContext, registers: int) -> tuple[str, str]:
    """What keeps the compiler from more registers, and what to do about that."""
    facts = context.program.facts.get(context.kernel)
    threads = None if facts is None else facts.max_threads_per_block
    blocks = None if facts is None else facts.min_blocks_per_sm
    bounded = threads is not None and registers >= _allowed_registers(context) - 2
    if bounded and blocks is not None and blocks > 1:
        return f"__launch_bounds__({threads}, {blocks})", "lower the second number"
    if bounded:
        return f"__launch_bounds__({threads})", "lower it to the threads that are launched"
    if threads is not None and blocks is None:
        return "the second number of __launch_bounds__, -maxrregcount or maxnreg", "give it more"
    return "-maxrregcount or maxnreg", "raise it"


def _registers_at_same_occupancy(context: KernelContext, registers: int) -> int | None:
    """The most registers for each thread that leave as many blocks on an SM as now."""
    if context.profile is None or context.occupancy.blocks_per_sm is None:
        return None
    launch = context.profile.launch
    shared = shared_bytes(context.program, context.kernel, context.profile) or 0
    best = registers
    for more in range(registers, context.machine.sm.max_registers_per_thread.value + 1, _REGISTER_STEP):
        found = occupancy(
            context.machine.sm,
            threads_per_block=launch.threads_per_block,
            registers_per_thread=more,
            shared_bytes=shared,
        )
        if (found.blocks_per_sm or 0) < context.occupancy.blocks_per_sm:
            break
        best = more
    return best


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="register-reuse",
    name="Register Reuse",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.LAUNCH_BOUNDS,),
    twins=("LocalMemoryUsage", "RegisterSpilling"),
    what_if=WhatIf.EDITED,
)
