# SPDX-License-Identifier: Apache-2.0
"""Stall reasons: what a sampled warp was waiting for, and which of them have a cause elsewhere.

The mapping follows GPA section IV (memory, execution and synchronization stalls are caused by another
instruction; all others by the sampled one) with the finer reasons of CUPTI's PC Sampling API.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gpadvisor.model.kind import Kind


class StallClass(Kind):
    """Where the cause of a stall is looked for."""

    MEMORY = "memory"  # a scoreboard of the L1TEX pipe: global, local, texture, surface
    EXECUTION = "execution"  # a scoreboard of another pipe
    FIXED_LATENCY = "fixed_latency"  # stall count of the control code
    SYNCHRONIZATION = "synchronization"  # a barrier, and the warp that came last
    MEMORY_BARRIER = "memory_barrier"  # MEMBAR: outstanding accesses
    DRAIN = "drain"  # stores in flight at EXIT
    MEMORY_THROTTLE = "memory_throttle"  # LSU queue full
    SHARED_THROTTLE = "shared_throttle"  # MIO queue full
    TEXTURE_THROTTLE = "texture_throttle"
    PIPE_THROTTLE = "pipe_throttle"
    CONSTANT_MISS = "constant_miss"  # immediate-constant cache
    INSTRUCTION_FETCH = "instruction_fetch"
    BRANCH = "branch"
    NOT_SELECTED = "not_selected"
    ISSUED = "issued"  # no stall: the warp issued
    NOT_RECORDED = "not_recorded"  # sampled while the scheduler issued, for this warp or another one
    SLEEP = "sleep"
    OTHER = "other"

    @property
    def is_dependency(self) -> bool:
        """Whether the cause is another instruction, so that a missing one leaves it unattributed."""
        return self in _DEPENDENCY


_DEPENDENCY: Final = frozenset(
    {
        StallClass.MEMORY,
        StallClass.EXECUTION,
        StallClass.FIXED_LATENCY,
        StallClass.SYNCHRONIZATION,
        StallClass.MEMORY_BARRIER,
        StallClass.DRAIN,
    }
)


@dataclass(frozen=True, slots=True)
class StallReason:
    """One stall reason of one report; unknown names keep their name with class OTHER."""

    name: str  # as CUPTI has it, "long_scoreboard"
    stall_class: StallClass
    plain: str  # a few plain words, "waiting for a global, local or texture load"


def _table(*rows: tuple[str, StallClass, str]) -> MappingProxyType[str, StallReason]:
    return MappingProxyType({name: StallReason(name, cls, plain) for name, cls, plain in rows})


KNOWN_REASONS: Final = _table(
    ("long_scoreboard", StallClass.MEMORY, "waiting for data from global, local or texture memory"),
    ("short_scoreboard", StallClass.EXECUTION, "waiting for shared memory or a slow arithmetic unit"),
    ("wait", StallClass.FIXED_LATENCY, "waiting out the fixed latency of the previous instruction"),
    ("barrier", StallClass.SYNCHRONIZATION, "waiting for other warps at a barrier"),
    ("membar", StallClass.MEMORY_BARRIER, "waiting for outstanding memory accesses at a fence"),
    ("warpgroup_arrive", StallClass.SYNCHRONIZATION, "waiting for the warps of a warpgroup"),
    ("gmma", StallClass.EXECUTION, "waiting for a warpgroup matrix instruction"),
    ("drain", StallClass.DRAIN, "waiting at exit for stores in flight"),
    ("lg_throttle", StallClass.MEMORY_THROTTLE, "queue of the load/store unit is full"),
    (
        "mio_throttle",
        StallClass.SHARED_THROTTLE,
        "queue of shared memory, shuffles and slow arithmetic is full",
    ),
    ("tex_throttle", StallClass.TEXTURE_THROTTLE, "queue of the texture unit is full"),
    ("math_pipe_throttle", StallClass.PIPE_THROTTLE, "arithmetic pipe is busy"),
    ("imc_miss", StallClass.CONSTANT_MISS, "constant cache miss"),
    ("no_instructions", StallClass.INSTRUCTION_FETCH, "waiting for instruction fetch"),
    ("branch_resolving", StallClass.BRANCH, "waiting for a branch target"),
    ("not_selected", StallClass.NOT_SELECTED, "ready, but another warp was chosen"),
    ("selected", StallClass.ISSUED, "issued an instruction"),
    ("sleeping", StallClass.SLEEP, "asleep"),
    ("dispatch_stall", StallClass.OTHER, "dispatcher held the instruction back"),
    ("misc", StallClass.OTHER, "other reasons"),
)


OLD_REASONS: Final = _table(
    ("instruction_fetch", StallClass.INSTRUCTION_FETCH, "waiting for instruction fetch or a branch target"),
    ("execution_dependency", StallClass.EXECUTION, "waiting for an earlier instruction"),
    ("memory_dependency", StallClass.MEMORY, "waiting for a memory access"),
    ("synchronization", StallClass.SYNCHRONIZATION, "waiting at a barrier or a fence"),
    ("pipe_busy", StallClass.PIPE_THROTTLE, "unit of the instruction is busy"),
    ("memory_throttle", StallClass.MEMORY_THROTTLE, "queue of memory accesses is full"),
)
"""Of CUPTI's activity API, each for several of today."""

NO_WAIT: Final = frozenset({"selected", "not_selected", "not_recorded"})
"""Reasons of warps that do not wait for anything but their turn, or of which nobody knows."""


def stall_reason(name: str) -> StallReason:
    """The reason of that name; a name not known here is kept, with class OTHER."""
    return KNOWN_REASONS.get(name) or StallReason(name, StallClass.OTHER, name.replace("_", " "))
