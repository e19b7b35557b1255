# SPDX-License-Identifier: Apache-2.0
"""What of a kernel's launch may change without breaking the kernel, and why the rest may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.evidence.access_shapes import sectors_of_a_warp
from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.loops import measured_trips
from gpadvisor.evidence.measured import executed_warps, shared_bytes
from gpadvisor.evidence.queries import kernel_function, line_text
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.model.thread_use import CodePlace, ThreadUse


@dataclass(frozen=True, slots=True)
class Freedom:
    """What a launch may change; a reason where it may not, None where it may."""

    block: str | None  # why a block must keep its threads
    grid: str | None  # why the blocks may not become more or fewer by themselves
    any_total: bool  # threads loop with the grid's size as step: any number of blocks does the work
    guarded: bool  # threads beyond the last element are turned away
    axes: str  # of threadIdx in use
    code: bool  # whether there was machine code to look at
    tile: bool = False  # nothing but a tile of the block's shape binds the block: both may grow together
    per_block: bool = False  # something is addressed by a block's number alone, such as its result
    compiled: bool = False  # the block's size is a constant in the code, which must change with it
    split: str | None = None  # why blocks may not become smaller, as those that only add up may
    single: bool = (
        False  # a block is one thread, whose element is the block's number: threads can take its place
    )


def freedom(program: Program, kernel: str, profile: KernelProfile, use: ThreadUse) -> Freedom:
    """What may change of a launch; without machine code nothing is known to forbid it."""
    if not any(function.name == kernel for function in program.functions):
        axes = "".join(axis for axis, size in zip("xyz", profile.launch.block, strict=True) if size > 1)
        return Freedom(block=None, grid=None, any_total=False, guarded=False, axes=axes or "x", code=False)
    apart = next(_together(program, use, profile), None)
    grid = apart
    if grid is None and use.grid_stride is None:
        grid = "each thread has its own elements, no loop steps by the size of the grid"
    if grid is None and use.grid_stride is not None and runs_once(program, use.grid_stride, profile):
        place = _at(program, use.grid_stride)
        grid = (
            f"the loop at {place} that steps by the size of the grid runs once: no element waits for a thread"
        )
    bound = next(_bound(program, kernel, use, profile), None)
    shared = shared_bytes(program, kernel, profile)
    single = profile.launch.threads_per_block == 1 and apart is None and not (use.axes or use.sized or shared)
    return Freedom(
        block=apart or (None if single else bound),
        grid=grid,
        any_total=grid is None,
        guarded=use.guarded or use.grid_stride is not None or single,
        axes=use.axes or "x",
        code=True,
        per_block=not use.flat,
        compiled=bool(use.sizes),
        single=single,
        split=apart or (None if single or _only_adds_up(program, kernel, use) else bound),
        tile=not single
        and apart is None
        and bound is not None
        and bound == _tile(program, kernel, use, profile),
    )


_ONCE: Final = 1.5
"""Passes per entry below which most threads have one element."""


def runs_once(program: Program, place: CodePlace, profile: KernelProfile | None) -> bool:
    """Whether the innermost loop around an instruction has one pass for each entry, as counted.

    Where this run did not come to it, as to the way of a compiler for an empty inner loop, every outermost
    loop that it came to.
    """
    function = program.functions[place[0]]
    loop, executed = function.innermost_loop(place[1]), executed_warps(profile, function)
    if loop is None or executed is None:
        return False
    ran = [candidate for candidate in function.loops if executed[function.blocks[candidate.header].start]]
    loops = (
        [loop]
        if any(candidate.id == loop for candidate in ran)
        else [candidate.id for candidate in ran if candidate.parent is None]
    )
    trips = [measured_trips(function, loop_id, executed) for loop_id in loops]
    return bool(trips) and all(trip is not None and trip < _ONCE for trip in trips)


_WIDTHS: Final = (WARP, 16, 8, 4, 2, 1)


def row_width(program: Program, kernel: str, profile: KernelProfile, axes: str) -> int:
    """Threads along x of blocks of two axes: 32, or fewer where memory runs along y.

    That is where most of what a warp's row of 32 would fetch is not asked for; then the width with the fewest
    sectors. Accesses whose addresses do not follow from the machine code say nothing.
    """
    function = kernel_function(program, kernel)
    if function is None or set(axes) != {"x", "y"}:
        return WARP
    executed = executed_warps(profile, function)
    accesses = [index for index, instruction in enumerate(function.instructions) if is_global(instruction)]

    def sectors(width: int) -> tuple[float, float]:
        launch = replace(profile.launch, block=(width, WARP * WARP // width, 1))
        moved = filled = 0.0
        for access in accesses:
            sectors, many = sectors_of_a_warp(function, access, program.form, launch), 1.0
            if executed is not None:
                many = float(executed[access])
            if sectors is not None:
                moved, filled = moved + many * sectors[0], filled + many * sectors[1]
        return moved, filled

    moved, filled = sectors(WARP)
    return min(_WIDTHS, key=lambda width: sectors(width)[0]) if moved > 2 * filled else WARP


def _together(program: Program, use: ThreadUse, profile: KernelProfile) -> Iterator[str]:
    """Why the blocks must stay as many as they are."""
    if use.waits_for_blocks is not None:
        place = _at(program, use.waits_for_blocks)
        yield f"its blocks wait for one another at {place}, so all must fit at once"
    cluster = profile.launch.cluster
    if cluster is not None and cluster != (1, 1, 1):
        yield f"it is launched in clusters of {' x '.join(map(str, cluster))} blocks"
    if use.cluster is not None:
        yield f"its blocks work together in clusters ({_at(program, use.cluster)})"


def _bound(program: Program, kernel: str, use: ThreadUse, profile: KernelProfile) -> Iterator[str]:
    """Why a block must keep its threads."""
    facts = program.facts.get(kernel)
    if facts is not None and facts.required_block is not None:
        yield f"it is compiled for blocks of {' x '.join(map(str, facts.required_block))} alone"
    if use.teamwork is not None:
        yield f"its warps have set parts of the work ({_at(program, use.teamwork)})"
    tile = _tile(program, kernel, use, profile)
    if tile is not None:
        yield tile
    if not use.sized and not use.sizes:
        yield "its code does not read the block's size"
    if not use.sizes <= set(zip("xyz", profile.launch.block, strict=True)):
        counts = " and ".join(f"{size} elements along {axis}" for axis, size in sorted(use.sizes))
        yield f"{counts} for each block are a constant in its code"
    if use.roles is not None:
        yield f"what its threads do goes by threadIdx alone at {_at(program, use.roles)}"
    if not use.flat:
        yield "a block's number stands for more than its place in blockIdx * blockDim"
    if not use.known:
        yield "its code could not be followed whole"


def _only_adds_up(program: Program, kernel: str, use: ThreadUse) -> bool:
    """Whether smaller blocks do the same: each adds up what its threads have, and has a place for it."""
    facts = program.facts.get(kernel)
    sized = use.sized and not use.sizes and (facts is None or facts.required_block is None)
    return sized and use.known and use.sums and use.teamwork is None


def _tile(program: Program, kernel: str, use: ThreadUse, profile: KernelProfile) -> str | None:
    if use.tile is None or not shared_bytes(program, kernel, profile):
        return None
    place = _at(program, use.tile)
    return f"its shared memory is indexed by threadIdx ({place}): tile and block are one size"


def _at(program: Program, place: CodePlace) -> str:
    function = program.functions[place[0]]
    text = line_text(function, place[1])
    return f"{function.instructions[place[1]].opcode} {text}" if text.startswith("0x") else text
