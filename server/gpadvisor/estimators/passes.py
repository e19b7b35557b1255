# SPDX-License-Identifier: Apache-2.0
"""What counters prove of a kernel's accesses, where nobody sampled them.

A request of a warp takes L1 one pass for each 128-byte line that its threads go to, and shared memory one for
each turn on its banks. Where L1 is full while requests are few, each takes many passes, and the machine code
shows which accesses do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators.caps import L1, L1_DATA, L1_REQUESTS, L1_TO_L2, TEXTURE, utilisations
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.access_shapes import AccessShape, Conflict, Lie, access_shape, conflict
from gpadvisor.evidence.lane_values import WARP
from gpadvisor.evidence.patterns import is_global, is_memory, is_shared
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import CodeForm
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_FULL_PERCENT: Final = 80.0
_LINE_BYTES: Final = 128
_WORD_BYTES: Final = 4
_TIMES: Final = 2.0
"""More passes than an access needs, from which it is told."""
_KNOWN: Final = frozenset({Lie.ROWS, Lie.APART, Lie.NEIGHBOURS})
_ATOMIC: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True)
class CrowdedL1:
    """A full L1 with few requests, and the accesses that can be why, those in the innermost loops first."""

    percent: float  # of L1's peak
    requests: float  # of the peak rate of requests
    scattered: tuple[int, ...]  # instructions of the kernel's own function, to global memory
    conflicting: tuple[int, ...]  # to shared memory

    @property
    def words(self) -> str:
        """What was counted."""
        return (
            f"L1 is at {self.percent:.0f} % of its peak and requests at {self.requests:.0f} %, so that each "
            f"takes {self.percent / self.requests:.0f} passes"
        )


def passes(context: KernelContext) -> CrowdedL1 | None:
    """None where L1 is not full, something else fills it, or no access is known to take many passes."""
    profile, function = context.profile, kernel_function(context.program, context.kernel)
    if profile is None or function is None:
        return None
    loads = {entry.name: entry.percent for entry in utilisations(profile)}
    full, requests = max(loads.get(L1, 0.0), loads.get(L1_DATA, 0.0)), loads.get(L1_REQUESTS, 0.0)
    accesses = [one for one in function.instructions if is_memory(one)]
    widest = max((one.width_bytes or 0 for one in accesses), default=0)
    if (
        full < _FULL_PERCENT
        or not requests
        or full < _TIMES * requests * max(1, widest // _WORD_BYTES)
        or max(loads.get(L1_TO_L2, 0.0), loads.get(TEXTURE, 0.0)) > full / 2
        or any(one.info.opclass in _ATOMIC for one in accesses)
    ):
        return None
    form, depth = context.program.form, _depths(function)
    order = sorted(range(len(function.instructions)), key=lambda index: (-depth[index], index))
    scattered = tuple(index for index in order if _is_scattered(function, index, form, profile))
    conflicting = tuple(
        index
        for index in order
        if is_shared(function.instructions[index])
        and isinstance(conflict(function, index, form, profile.launch), Conflict)
    )
    return CrowdedL1(full, requests, scattered, conflicting) if scattered or conflicting else None


def _depths(function: Function) -> list[int]:
    """Loops around each instruction."""
    return [
        sum(block in loop.blocks for loop in function.loops) for block in map(int, function.block_of.tolist())
    ]


def _is_scattered(function: Function, index: int, form: CodeForm, profile: KernelProfile) -> bool:
    instruction = function.instructions[index]
    if not is_global(instruction):
        return False
    width, shape = (
        instruction.width_bytes or _WORD_BYTES,
        access_shape(function, index, form, profile.launch),
    )
    return shape.lie in _KNOWN and _lines(shape, width) >= _TIMES * max(1, WARP * width // _LINE_BYTES)


def _lines(shape: AccessShape, width: int) -> int:
    """128-byte lines that the threads of a warp go to; runs of threads are in rows of their own."""
    span = (shape.run - 1) * shape.distance + width
    return WARP // shape.run * min(shape.run, -(-span // _LINE_BYTES))
