# SPDX-License-Identifier: Apache-2.0
"""Register Reuse: values that live in local memory because registers ran out (GPA Table II).

## What it finds

Stalls that loads and stores of local memory cause. Two different things live there: *spills*, registers
that the compiler had to store to fixed places of the stack frame, and *indexed arrays*, arrays of a
thread that are indexed with a value known only at run time. The machine code tells them apart: a spill's
address is the stack pointer and a constant.

## Why warps stall

Local memory is memory. A spilled value is written through the L1 cache and comes back with the latency of
a load, and every spill takes a place in the load/store queue, although the program asked for a register.

## What to try

For spills: make fewer values live at once. Split a large loop or kernel, load a value where it is used
instead of long before, recompute what is cheap, narrow what is wide. If the compiler was given fewer
registers than the hardware allows (`__launch_bounds__`, `-maxrregcount`), raise that limit as far as the
occupancy that the kernel needs permits; the advice names the numbers. For indexed arrays: unroll the loop
over the index completely, so that each element becomes a register, or move the array to shared memory.

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
was full. In the paper's Table III the one kernel of this kind gained half of what was matched.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.blamer.measured import registers_per_thread, shared_bytes
from gpadvisor.blamer.patterns import is_local, is_stack_slot, math_sequences
from gpadvisor.blamer.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    by_stall,
    causes,
    kernel_functions,
    percent,
    regions,
    samples,
    static_match,
)
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, StaticSite
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA101"
_SPILLS: Final = "registers spilled to local memory"
_ARRAYS: Final = "local array indexed at run time"
_REGISTER_STEP: Final = 8  # registers are given to a warp in units of 256, 8 for each thread
_NOT_STALLS: Final = frozenset({StallClass.ISSUED, StallClass.NOT_SELECTED})
_TABLE_III: Final = Adjustment(
    low=0.0,
    expected=0.5,
    high=1.0,
    reason="in the paper's Table III this change removed 51 % of the matched stalls (one kernel, "
    "Quicksilver)",
)


def _match(context: KernelContext) -> Match | Rejection:
    sites = _sites(context)
    frame = _frame_bytes(context)
    if context.blame is None:
        spills = _spills(context, sites)
        return static_match(
            _CODE,
            title=_SPILLS if spills else _ARRAYS,
            advice=_advice(context, spilled=bool(spills), indexed=len(spills) < len(sites)),
            sites=sites,
            missing=f"no local memory access outside of library math (stack frame: {frame} bytes)",
        )
    blame = context.blame
    local = _local_rows(context, blame, sites)
    if not samples(blame, local):
        where = f"{len(sites)} in the code, none with samples" if sites else "none in the code"
        return Rejection(code=_CODE, reason=f"no stall due to local memory accesses: {where}")
    spilled = local & by_place(blame, causes(blame), _spills(context, sites))
    indexed = local & ~spilled
    most_spilled = samples(blame, spilled) >= samples(blame, indexed)
    return Match(
        title=_SPILLS if most_spilled else _ARRAYS,
        advice=_advice(context, spilled=bool(spilled.any()), indexed=bool(indexed.any())),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(local)),
        adjustments=_adjustments(context, blame, spilled, indexed),
        static_sites=sites,
    )


def _local_rows(context: KernelContext, blame: Blame, sites: tuple[StaticSite, ...]) -> Mask:
    """Stalls for local data, and stalls that a local load or store has or causes in other ways."""
    own = by_place(blame, causes(blame), {(site.function, site.index) for site in sites})
    elsewhere = by_instruction(blame, context.program, causes(blame), is_local) & ~own
    local = by_class(blame, {DependencyClass.LOCAL_MEMORY}) & ~elsewhere
    return local | (own & ~by_stall(blame, _NOT_STALLS))


def _sites(context: KernelContext) -> tuple[StaticSite, ...]:
    """Local accesses of the program's own code; the library keeps an array of its own (see Fast Math)."""
    found = []
    for function in kernel_functions(context.program, context.kernel):
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        for index, instruction in enumerate(function.instructions):
            if is_local(instruction) and index not in library:
                what = "a place of the stack frame" if is_stack_slot(instruction) else "an indexed array"
                verb = "stores to" if instruction.info.opclass is OpcodeClass.STORE else "loads from"
                found.append(StaticSite(function=function.id, index=index, detail=f"{verb} {what}"))
    return tuple(found)


def _spills(context: KernelContext, sites: tuple[StaticSite, ...]) -> frozenset[tuple[FunctionId, int]]:
    """Accesses to fixed places of the frame that keep registers rather than elements of an array.

    A function that also indexes its frame at run time has arrays in it; there, fixed places are spills only
    if the compiler had no registers left.
    """
    instructions = {
        (site.function, site.index): context.program.functions[site.function].instructions[site.index]
        for site in sites
    }
    indexed = {place[0] for place, instruction in instructions.items() if not is_stack_slot(instruction)}
    full = _registers_full(context)
    return frozenset(
        place
        for place, instruction in instructions.items()
        if is_stack_slot(instruction) and (full or place[0] not in indexed)
    )


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
    """Whether the compiler used all registers it may have: a limit is a multiple of the allocation step."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return True
    return registers % _REGISTER_STEP == 0 or registers >= _allowed_registers(context) - 2


def _frame_bytes(context: KernelContext) -> int:
    facts = context.program.facts.get(context.kernel)
    return 0 if facts is None or facts.stack_bytes is None else facts.stack_bytes


def _adjustments(
    context: KernelContext, blame: Blame, spilled: Mask, indexed: Mask
) -> tuple[Adjustment, ...]:
    cap = context.machine.sm.max_registers_per_thread.value
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    part = samples(blame, spilled) / max(1, samples(blame, spilled | indexed))
    if registers is not None and registers >= cap and part > 0:
        return (
            Adjustment(
                low=0.0,
                expected=1 - 0.7 * part,
                high=1.0,
                reason=f"the kernel already uses {registers} registers, the most there are, and "
                f"{percent(part)} of the matched samples are spills: only shorter live ranges help",
            ),
        )
    return (_TABLE_III,)


def _advice(context: KernelContext, *, spilled: bool, indexed: bool) -> str:
    parts = []
    if spilled:
        frame = _frame_bytes(context)
        size = f" ({frame} bytes of stack per thread)" if frame else ""
        parts.append(f"Keep fewer values live at once, so that none is spilled{size}. {_cap_advice(context)}")
    if indexed:
        parts.append(
            "An array of the thread is indexed with a value known only at run time: unroll the loop over the "
            "index completely, or keep the array in shared memory."
        )
    return " ".join(parts)


def _cap_advice(context: KernelContext) -> str:
    """What the limit on registers is, and how far it can be raised at the present occupancy."""
    cap = context.machine.sm.max_registers_per_thread.value
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return "Check the limit on registers (__launch_bounds__, -maxrregcount)."
    if registers >= cap:
        return f"All {cap} registers of a thread are in use: there is no limit to raise."
    facts = context.program.facts.get(context.kernel)
    threads = None if facts is None else facts.max_threads_per_block
    bounded = threads is not None and registers >= _allowed_registers(context) - 2
    source = f"__launch_bounds__({threads})" if bounded else "-maxrregcount or maxnreg"
    room = _registers_at_same_occupancy(context, registers)
    if room is None:
        return f"The compiler stopped at {registers} of {cap} registers, held there by {source}: raise it."
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
)
