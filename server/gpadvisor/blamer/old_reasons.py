# SPDX-License-Identifier: Apache-2.0
"""Stall reasons of CUPTI's activity API brought to those of today where the machine code leaves one.

Each of the old ones was several of today's (``OLD_REASONS``). What the sampled instruction waits on, and what
it is, often rules out all but one of them; where it does not, the old reason stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.analyzer.scoreboards import Waits, outstanding_at, waits_for
from gpadvisor.blamer.classify import Scoreboard, is_l1tex, is_memory, stalls_as
from gpadvisor.blamer.observe import locate
from gpadvisor.model.blame import NO_FUNCTION, NO_INDEX
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.profile import KernelProfile, PcSamples
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import OLD_REASONS, StallReason, stall_reason

_MATH: Final = frozenset({Pipe.ALU, Pipe.FMA, Pipe.FP16, Pipe.FP64, Pipe.TENSOR})
_SHARED: Final = frozenset({MemorySpace.SHARED, MemorySpace.DISTRIBUTED_SHARED})


def refined(program: Program, profile: KernelProfile) -> KernelProfile:
    """A kernel whose old reasons are today's where that is certain; as many samples at each instruction."""
    old = {number for number, reason in enumerate(profile.reasons) if reason.name in OLD_REASONS}
    samples = profile.samples
    if not old or not len(samples.total):
        return profile
    function, index, _, _ = locate(program, profile, samples.section, samples.pc)
    is_known = (function != NO_FUNCTION) & (index != NO_INDEX)
    rows = np.flatnonzero(is_known & np.isin(samples.reason, sorted(old))).tolist()
    waits = _waits(program, {(int(function[row]), int(index[row])) for row in rows})
    numbers: dict[StallReason, int] = {reason: number for number, reason in enumerate(profile.reasons)}
    reasons = samples.reason.astype(np.int64)
    for row in rows:
        at = program.functions[int(function[row])]
        today = _today(profile.reasons[int(reasons[row])], at, int(index[row]), waits[at.id])
        if today is not None:
            reasons[row] = numbers.setdefault(today, len(numbers))
    return replace(profile, reasons=tuple(numbers), samples=_merged(samples, reasons))


def _waits(program: Program, sampled: set[tuple[int, int]]) -> Mapping[int, Waits]:
    """What the sampled instructions may be waiting for, by function."""
    by_function: dict[int, list[int]] = {}
    for function, index in sorted(sampled):
        by_function.setdefault(function, []).append(index)
    return {
        function: outstanding_at(program.functions[function], places)
        for function, places in by_function.items()
    }


def _today(reason: StallReason, function: Function, index: int, waits: Waits) -> StallReason | None:
    """The one reason of today that an old one can be at an instruction; None where there are several."""
    instruction = function.instructions[index]
    match reason.name:
        case "execution_dependency" | "memory_dependency":
            name = _dependency(reason.name, function, index, waits)
        case "memory_throttle":
            name = _throttle(instruction)
        case "pipe_busy":
            name = "math_pipe_throttle" if instruction.info.pipe in _MATH else None
        case "synchronization":
            name = _synchronization(instruction.info.opclass)
        case _:
            name = None
    return None if name is None else stall_reason(name)


def _dependency(old: str, function: Function, index: int, waits: Waits) -> str | None:
    instruction = function.instructions[index]
    execution = old == "execution_dependency"
    if not waits_for(instruction):
        if execution:
            return "wait"
        return "drain" if instruction.info.opclass is OpcodeClass.EXIT else None
    producers = {operation.producer for operation in waits.outstanding.get(index, ())}
    if not waits.complete or not producers:
        return None
    possible = Scoreboard(0)
    for producer in producers:
        # Operands may be all that is waited for, which any scoreboard stall can be.
        reads = function.instructions[producer].control.read_barrier is not None
        possible |= stalls_as(function.instructions[producer], reads_only=reads)
    if execution:
        return None if Scoreboard.SHORT in possible else "wait"
    return {Scoreboard.LONG: "long_scoreboard", Scoreboard.SHORT: "short_scoreboard"}.get(possible)


def _throttle(instruction: Instruction) -> str | None:
    if instruction.info.pipe is Pipe.TEX:
        return None
    if is_l1tex(instruction):
        return "lg_throttle"
    return "mio_throttle" if is_memory(instruction) and instruction.info.space in _SHARED else None


def _synchronization(opclass: OpcodeClass) -> str | None:
    return {OpcodeClass.BARRIER: "barrier", OpcodeClass.MEMORY_BARRIER: "membar"}.get(opclass)


def _merged(samples: PcSamples, reasons: np.ndarray) -> PcSamples:
    """The samples with other reasons: one row by place and reason."""
    keys = np.stack([samples.section.astype(np.int64), samples.pc.astype(np.int64), reasons], axis=1)
    unique, index = np.unique(keys, axis=0, return_inverse=True)
    total, latency = np.zeros(len(unique), np.uint64), np.zeros(len(unique), np.uint64)
    np.add.at(total, index.ravel(), samples.total)
    np.add.at(latency, index.ravel(), samples.latency)
    return PcSamples(
        section=unique[:, 0].astype(np.uint16),
        pc=unique[:, 1].astype(np.uint64),
        reason=unique[:, 2].astype(np.uint8),
        total=total,
        latency=latency,
    )
