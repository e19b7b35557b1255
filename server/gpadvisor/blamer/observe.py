# SPDX-License-Identifier: Apache-2.0
"""Samples brought onto instructions: whose they are, and where those lie that are nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.blame import NO_FUNCTION, NO_INDEX, CodeArea
from gpadvisor.model.ids import INSTRUCTION_BYTES, FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import EXTERNAL, KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import StallClass, StallReason


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Samples summed by place and reason, sorted, so that the order of the profile's rows is of no matter."""

    function: NDArray[np.int64]  # FunctionId or NO_FUNCTION
    index: NDArray[np.int64]  # instruction index or NO_INDEX
    place: NDArray[np.int64]
    reason: NDArray[np.int64]
    samples: NDArray[np.int64]
    latency: NDArray[np.int64]
    last: NDArray[np.int64]  # the function whose code ended right before the sample, else -1


def observe(program: Program, profile: KernelProfile) -> Observed:
    """Find the instruction of every sample and add up what falls on the same place."""
    table = profile.samples
    function, index, place, last = locate(program, profile, table.section, table.pc)
    _drain_of_function_before(program, profile, (function, index, place, last))
    keys = np.stack([function, index, place, table.reason.astype(np.int64), last])
    order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    firsts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: len(order)])
    samples, latency = (
        np.add.reduceat(column.astype(np.int64)[order], firsts) for column in (table.total, table.latency)
    )
    unique = keys[:, firsts]
    return Observed(unique[0], unique[1], unique[2], unique[3], samples, latency, unique[4])


def _drain_of_function_before(
    program: Program,
    profile: KernelProfile,
    columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """A drain is charged to the instruction behind the EXIT, which may be the first of the next function."""
    function, index, place, last = columns
    drains = np.array(
        [stall_reason.stall_class is StallClass.DRAIN for stall_reason in profile.reasons], dtype=bool
    )
    if not drains.any():
        return
    ends = {
        (function.section, function.start + len(function.instructions) * INSTRUCTION_BYTES): function
        for function in program.functions
    }
    for row in np.flatnonzero(drains[profile.samples.reason] & (index == 0)).tolist():
        function_at = program.functions[int(function[row])]
        before = ends.get((function_at.section, int(function_at.start)))
        if before is not None and before.instructions[-1].info.opclass is OpcodeClass.EXIT:
            function[row], index[row] = NO_FUNCTION, NO_INDEX
            place[row], last[row] = CodeArea.AFTER_EXIT.value, before.id


def locate(
    program: Program, profile: KernelProfile, sections: NDArray[np.uint16], pcs: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Function, instruction index, place and preceding function of each (section, pc)."""
    count = len(pcs)
    function = np.full(count, NO_FUNCTION, dtype=np.int64)
    index = np.full(count, NO_INDEX, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    place = np.full(count, CodeArea.UNMAPPED.value, dtype=np.int64)
    place[sections == EXTERNAL] = CodeArea.EXTERNAL.value
    offsets = pcs.astype(np.int64)
    for number, name in enumerate(profile.sections):
        rows = np.flatnonzero(sections == number)
        if not len(rows):
            continue
        for candidate in program.functions:
            if candidate.section != name:
                continue
            size = len(candidate.instructions)
            indices = (offsets[rows] - candidate.start) // INSTRUCTION_BYTES
            inside = (indices >= 0) & (indices < size)
            function[rows[inside]] = candidate.id
            index[rows[inside]] = indices[inside]
            place[rows[inside]] = np.where(
                behind_exit(candidate)[indices[inside]], CodeArea.AFTER_EXIT.value, CodeArea.FUNCTION.value
            )
            behind = indices >= size
            last[rows[behind]] = np.maximum(last[rows[behind]], candidate.id)
        outside = rows[function[rows] == NO_FUNCTION]
        place[outside[last[outside] >= 0]] = CodeArea.AFTER_EXIT.value
        last[rows[function[rows] != NO_FUNCTION]] = -1
    return function, index, place, last


def behind_exit(function: Function) -> NDArray[np.bool_]:
    """Per instruction, whether it is filling behind the last one that runs: NOPs and a branch to itself."""
    count = len(function.instructions)
    result = np.zeros(count, dtype=bool)
    for index in range(count - 1, 0, -1):
        instruction = function.instructions[index]
        itself = instruction.info.opclass is OpcodeClass.BRANCH and instruction.target == instruction.pc
        if not itself and instruction.info.opclass is not OpcodeClass.NOP:
            break
        result[index] = True
    return result


def issues(
    program: Program, profile: KernelProfile, observed: Observed
) -> dict[FunctionId, NDArray[np.int64]]:
    """How often each instruction of a sampled function issued: executed counts, else its issued samples."""
    weights = {
        function.id: np.zeros(len(function.instructions), dtype=np.int64) for function in program.functions
    }
    if profile.counts is not None and len(profile.counts.pc):
        counts = profile.counts
        function, index, _, _ = locate(program, profile, counts.section, counts.pc)
        values = counts.warps.astype(np.int64)
    else:
        issued = np.array([reason.stall_class is StallClass.ISSUED for reason in profile.reasons], dtype=bool)
        function, index = observed.function, observed.index
        values = observed.samples * issued[observed.reason]
    for function_id, column in weights.items():
        rows = np.flatnonzero((function == function_id) & (index != NO_INDEX))
        np.add.at(column, index[rows], values[rows])
    return weights


def cycles_per_sample(
    observed: Observed, reasons: Sequence[StallReason], weights: Mapping[FunctionId, NDArray[np.int64]]
) -> float:
    """How many cycles of a warp one sample stands for; 0 where none issued.

    A warp issues for one cycle per instruction, so the samples of warps that issued stand for all issues.
    """
    issued = np.array([reason.stall_class is StallClass.ISSUED for reason in reasons], dtype=bool)
    samples = int(observed.samples[issued[observed.reason]].sum())
    return sum(int(column.sum()) for column in weights.values()) / samples if samples else 0.0
