# SPDX-License-Identifier: Apache-2.0
"""Asynchronous Copy: tiles that are waited for on their way to shared memory (beyond GPA Table II).

## What it finds

From sm_80 on: loops with a block barrier in which loads from device memory are stored to shared memory as
they are, and warps wait for the loads in front of those stores; and loops whose asynchronous copies are all
waited for before anything else is done.

## Why warps stall

A store to shared memory needs the loaded value in a register, so that each warp waits for device memory in
every pass, all warps then wait at the barrier, and nothing is computed meanwhile. An asynchronous copy goes
to shared memory by itself; the warp waits only when it needs the tile.

## What to try

- `cuda::memcpy_async` with a `cuda::pipeline`, or `__pipeline_memcpy_async`, for the next tile while this one
  is used: two buffers, and one wait a pass.
- Copies of 16 bytes per thread, which go past L1.
- Without the instructions: load the next tile into registers before this one is used, and store it after.

## Example

```cuda
for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = data[t * n + threadIdx.x];      // waits for device memory
    __syncthreads();
    use(tile);
    __syncthreads();
}

__pipeline_memcpy_async(&tile[0][threadIdx.x], &data[threadIdx.x], 4);
__pipeline_commit();
for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles)
        __pipeline_memcpy_async(&tile[(t + 1) % 2][threadIdx.x], &data[(t + 1) * n + threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);                           // this tile's copies only
    __syncthreads();
    use(tile[t % 2]);
    __syncthreads();
}
```

## When this advice is wrong

The second buffer takes shared memory: where fewer blocks would fit, the advice is registers in its place.
Where a unit is full, the suggestion is a note: copies that come in time are as many. Values that are
converted or checked on their way have to pass through registers. Kernels with many blocks on each SM hide the
same latency by other blocks.

## How the gain is estimated

GPA Eq. 4, where the loads' latency samples are filled by all that the loop does meanwhile, its other waits
included: a copy needs no instruction of the warp while it runs. Half of that is expected, none at the low
end: how much of a copy is there in time is not known before it is tried. The paper's value, by issued
instructions alone, stands beside it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.utilisation import measured_loads
from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.evidence.measured import shared_bytes
from gpadvisor.evidence.queries import (
    by_place,
    by_role,
    causes,
    counted,
    heaviest,
    kernel_functions,
    latency,
    line_text,
    regions,
    samples,
    share,
)
from gpadvisor.machine import code_form
from gpadvisor.model.advice import Adjustment, Category, Estimate, Match, Region, Rejection
from gpadvisor.model.blame import Blame, Role
from gpadvisor.model.figures import percent
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import Feature
from gpadvisor.model.program import Function, Program

_CODE: Final = "GPA204"
_WIDTHS: Final = frozenset({4, 8, 16})
"""Bytes that one asynchronous copy of a thread takes."""


def _match(context: KernelContext) -> Match | Rejection:
    blame = context.blame
    if blame is None:
        return Rejection(code=_CODE, reason="needs samples: machine code does not show who waits for a tile")
    if Feature.ASYNCHRONOUS_COPY not in code_form(context.machine.arch).features:
        return Rejection(
            code=_CODE, reason=f"{context.machine.arch} has no asynchronous copies; sm_80 is the first"
        )
    copies, loads = (
        {
            (function.id, index)
            for function in kernel_functions(context.program, context.kernel)
            for index in find(function)
        }
        for find in (_waited_at_once, _passed_on)
    )
    if not loads and not copies:
        return Rejection(
            code=_CODE, reason="no loop with a barrier stores to shared memory what it has just loaded"
        )
    rows = by_place(blame, causes(blame), loads | copies) & by_role(blame, Role.BLAMED)
    part = share(blame, rows)
    if part < constants.NOTABLE or not latency(blame, rows):
        return Rejection(
            code=_CODE, reason=f"waits for loads that go to shared memory have {percent(part)} of the samples"
        )
    full = busiest_after(measured_loads(context), ())
    row = heaviest(blame, np.flatnonzero(rows))
    function, index = context.program.functions[int(blame.rows.function[row])], int(causes(blame)[row])
    is_copy = (function.id, index) in copies
    cure, costs = _cure(context, is_copy=is_copy)
    how = "asynchronous copies" if is_copy else "loads"
    when = "are waited for at once" if is_copy else "go to shared memory as they are"
    return Match(
        title="tiles wait for device memory on their way to shared memory",
        advice=f"{percent(part)} of the samples wait for {how} such as {line_text(function, index)}, which "
        f"{when}: {cure}{costs}",
        cure=cure,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=(
            Adjustment(
                low=0.0,
                expected=constants.AHEAD,
                high=1.0,
                reason="how much of a copy is there when it is needed is not known before it is tried",
            ),
        ),
        # Waiting less takes no load from a full unit.
        actionable=full is None or full.unit.percent < constants.HIGH_PERCENT,
    )


def _estimate(context: KernelContext, match: Match) -> Estimate:
    """Eq. 4 with all that the loop does beside waiting for the copies.

    Differs from GPA: a wait is filled there by instructions of its own warp alone. A copy of the next tile
    runs by itself while this one is used, and so beside the other waits of the loop, too.
    """
    if context.blame is None:
        raise ValueError("waits for tiles need samples")
    beside = [_others(context.blame, context.program, region) for region in match.regions]
    return latency_hiding(context, match, beside)


def _others(blame: Blame, program: Program, region: Region) -> int:
    """Samples of a region's loop but those that wait for its copies."""
    function, loop = region.scope.function, region.scope.loop
    if function is None or loop is None:
        return region.active_samples
    inside = [(function, index) for index in loop_facts(program.functions[function], loop).indices]
    total = samples(blame, by_place(blame, blame.rows.use_index, inside))
    return max(region.active_samples, total - latency(blame, region.rows))


def _passed_on(function: Function) -> set[int]:
    """Loads in loops with a barrier whose results are stored to shared memory and used for nothing else."""
    candidates = {
        index
        for loop in function.loops
        if loop_facts(function, loop.id).barriers
        for index in loop_facts(function, loop.id).indices
        if _may_copy(function, index)
    }
    if not candidates:
        return set()
    reaching = function.reaching
    result = set()
    for index in candidates:
        written = function.instructions[index].defs
        readers = {
            use
            for use, instruction in enumerate(function.instructions)
            for register in written
            if register in instruction.uses and index in reaching.definitions(use, register)
        }
        width = function.instructions[index].width_bytes
        if readers and all(
            _stores(function, use) and function.instructions[use].width_bytes == width for use in readers
        ):
            result.add(index)
    return result


def _may_copy(function: Function, index: int) -> bool:
    instruction = function.instructions[index]
    return (
        instruction.info.opclass is OpcodeClass.LOAD
        and is_global(instruction)
        and instruction.width_bytes in _WIDTHS
    )


def _stores(function: Function, index: int) -> bool:
    instruction = function.instructions[index]
    return instruction.info.opclass is OpcodeClass.STORE and is_shared(instruction)


def _waited_at_once(function: Function) -> set[int]:
    """Asynchronous copies of a loop with a barrier that it waits for, all of them, before it uses any tile.

    A wait that leaves the newest copies under way has its number; where the tile of the pass before is read
    in front of the wait, the copies run meanwhile.
    """
    result = set()
    for loop in function.loops:
        facts = loop_facts(function, loop.id)
        pending: set[int] = set()
        for index in sorted(facts.indices) if facts.barriers else ():
            instruction = function.instructions[index]
            if instruction.opcode == "LDGSTS":
                pending.add(index)
            elif instruction.partial_wait is not None and not instruction.partial_wait.keep:
                result.update(pending)
            elif is_shared(instruction) and "RZ" not in instruction.operands:
                pending.clear()
    return result


def _cure(context: KernelContext, *, is_copy: bool) -> tuple[str, str]:
    """The change, and what another one would cost."""
    shared = shared_bytes(context.program, context.kernel, context.profile) or 0
    facts = context.program.facts.get(context.kernel)
    doubled = kernel_occupancy(context.machine, facts, context.profile, more_shared_bytes=shared)
    blocks_now, then = context.occupancy.blocks_per_sm, doubled.blocks_per_sm
    if blocks_now is not None and then is not None and then < blocks_now:
        blocks_left = counted(then, "block") if then else "no block"
        return (
            (
                "load the next tile into registers before this one is used, and store it behind the barrier "
                "that follows."
            ),
            (
                f" A second buffer for asynchronous copies ({shared:,} bytes more per block) would leave "
                f"{blocks_left} of {blocks_now} per SM."
            ),
        )
    if is_copy:
        newest = f"wait for all but the newest copy{terms.NEWEST_COPY.of(context.language)}"
        return f"copy the next tile into a second buffer before this one is used, and {newest}.", ""
    copy = terms.ASYNCHRONOUSLY.of(context.language)
    return f"copy the next tile into a second buffer{copy} while this one is used.", ""


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="asynchronous-copy",
    name="Asynchronous Copy",
    category=Category.LATENCY_HIDING,
    match=_match,
    estimate=_estimate,
    document=__doc__ or "",
)
