# SPDX-License-Identifier: Apache-2.0
"""What would part the threads of a warp that share banks of shared memory."""

from __future__ import annotations

from math import ceil
from typing import Final

from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.access_shapes import Lie
from gpadvisor.evidence.accesses import is_atomic
from gpadvisor.evidence.banks import Conflict, conflict, widest_shared
from gpadvisor.evidence.measured import shared_bytes
from gpadvisor.evidence.queries import counted, line_text
from gpadvisor.model.machine import BANK_ROW_BYTES
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.thread_use import CodePlace

_WORD_BYTES: Final = 4


def cure_of_conflict(context: KernelContext, profile: KernelProfile, place: CodePlace) -> str:
    """What to do where threads of a warp share banks of shared memory; empty where the data decide."""
    function, index = context.program.functions[place[0]], place[1]
    if is_atomic(function.instructions[index]):
        return ""  # the data decide
    bank_conflict = conflict(function, index, context.program.form, profile.launch)
    if bank_conflict is Lie.BY_DATA:
        return ""
    where = line_text(function, index)
    if bank_conflict is None or isinstance(bank_conflict, Lie):
        widest = widest_shared(function)
        lost = _lost_blocks(context, profile, widest / BANK_ROW_BYTES)
        return f"pad the rows of the array at {where} by {widest} bytes or swizzle the index{lost}"
    if bank_conflict.pad is not None and bank_conflict.row is None:
        return (
            f"pad the rows of the array at {where} by {bank_conflict.pad} bytes: neighbouring threads are in "
            "different rows"
        )
    if bank_conflict.pad is not None and bank_conflict.row is not None:
        lost = _lost_blocks(context, profile, bank_conflict.pad / bank_conflict.row)
        return f"{_padding(bank_conflict, bank_conflict.row, bank_conflict.pad, where)}{lost}"
    width = function.instructions[index].width_bytes or _WORD_BYTES
    if bank_conflict.distance is not None:
        return (
            f"let neighbouring threads take neighbouring elements of {width} bytes at {where}: they are "
            f"{bank_conflict.distance} bytes apart within a row, where padding does not help"
        )
    why = (
        "of the distances between threads, which a loop halves, no one padding cures most"
        if bank_conflict.halved
        else "no one padding parts the banks of most accesses to that array"
    )
    return f"swizzle the index at {where}: {why}"


def _padding(found: Conflict, row: int, pad: int, where: str) -> str:
    """Where padding goes, and what it brings."""
    of_warp = f"{found.turns} turns of a warp"
    if found.flat:
        over = ", over all distances that the loop halves," if found.halved else ""
        return (
            f"insert {pad} bytes after every {row} of the array at {where}, so that{over} {of_warp} become "
            f"{found.after}"
        )
    array = (
        f"pad the array at {where} by {pad} bytes after each {row}, a row or several,"
        if found.several
        else f"pad each row of {row} bytes of the array at {where} by {pad} bytes,"
    )
    return f"{array} so that {of_warp} become {found.after}"


def _lost_blocks(context: KernelContext, profile: KernelProfile, share: float) -> str:
    """What padding all of shared memory by a share would cost; empty where as many blocks fit on an SM."""
    allocated = shared_bytes(context.program, context.kernel, profile)
    facts = context.program.facts.get(context.kernel)
    if not allocated:
        return ""
    before, after = (
        kernel_occupancy(context.machine, facts, profile, more_shared_bytes=more).blocks
        for more in (0, ceil(allocated * share))
    )
    if after >= before:
        return ""
    return f"; with all of shared memory padded, {after} of {counted(before, 'block')} still fit on an SM"
