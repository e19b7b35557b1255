# SPDX-License-Identifier: Apache-2.0
"""Whether two simulated runs do the same work, so that their times can be compared."""

from __future__ import annotations

from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program

_RESULTS: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
_SPACES: Final = _RESULTS | {MemorySpace.SHARED}


def same_work(before: tuple[Program, KernelProfile], after: tuple[Program, KernelProfile]) -> bool:
    """Whether two runs store about as many results, and the changed one loads no more than it did.

    Where loops have no told or known number of passes, changed code may be taken through them more often or
    less, and the times of two such runs say nothing of the change. Loads and shared memory may go with it.
    """
    stored, loaded = (
        [_moved_bytes(*side, opclass, spaces) for side in (before, after)]
        for opclass, spaces in ((OpcodeClass.STORE, _RESULTS), (OpcodeClass.LOAD, _SPACES))
    )
    return max(stored) <= constants.SAME_WORK * min(stored) and loaded[1] <= constants.SAME_WORK * loaded[0]


def _moved_bytes(
    program: Program, profile: KernelProfile, opclass: OpcodeClass, spaces: frozenset[MemorySpace]
) -> int:
    """Bytes that the threads of a launch load, or store."""
    if profile.counts is None:
        return 0
    threads = dict(zip(profile.counts.pc.tolist(), profile.counts.threads.tolist(), strict=True))
    return sum(
        threads.get(int(instruction.pc), 0) * (instruction.width_bytes or 4)
        for function in program.functions
        for instruction in function.instructions
        if instruction.info.opclass is opclass and instruction.info.space in spaces
    )
