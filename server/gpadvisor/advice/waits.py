# SPDX-License-Identifier: Apache-2.0
"""What warps of one kernel wait for, where the name of a stall covers several units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.model.blame import NO_FUNCTION, NO_INDEX, Blame
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.program import Program

_WORDS: Final[Mapping[str, str]] = {
    "mio_throttle": "queue of {} is full",
    "short_scoreboard": "waiting for {}",
}
_SPACES: Final[Mapping[MemorySpace | None, str]] = {
    MemorySpace.SHARED: "shared memory",
    MemorySpace.DISTRIBUTED_SHARED: "shared memory of the cluster",
    MemorySpace.GLOBAL: "global memory",
    MemorySpace.LOCAL: "local memory",
    MemorySpace.CONSTANT: "constants",
}
_NAMED: Final = 2


def named_wait(program: Program, blame: Blame, reason: int) -> str:
    """The wait by the units that most of its causes go through; empty where two do not make up most of it.

    Args:
        program: With the instructions.
        blame: With the causes of the samples.
        reason: Index of the stall reason.
    """
    words = _WORDS.get(blame.reasons[reason].name)
    rows = blame.rows
    here = rows.reason == reason
    if words is None or not rows.samples[here].any():
        return ""
    units: Counter[str] = Counter()
    opcodes: dict[str, Counter[str]] = {}
    for function, cause, use, samples in zip(
        rows.function[here], rows.def_index[here], rows.use_index[here], rows.samples[here], strict=True
    ):
        index = use if cause == NO_INDEX else cause
        if function == NO_FUNCTION or index == NO_INDEX:
            continue
        one = program.functions[function].instructions[index]
        if unit := _unit(one):
            units[unit] += int(samples)
            opcodes.setdefault(unit, Counter())[one.opcode] += int(samples)
    total, told = int(rows.samples[here].sum()), units.most_common(_NAMED)
    if told and told[0][1] > constants.MAJORITY * total:
        told = told[:1]
    if sum(samples for _, samples in told) <= constants.MAJORITY * total:
        return ""
    return words.format(" and ".join(_with_opcodes(unit, opcodes[unit]) for unit, _ in told))


def _unit(instruction: Instruction) -> str:
    """The unit of an instruction in a reader's words; empty for those that no such wait is about."""
    if instruction.info.space in _SPACES:
        return _SPACES[instruction.info.space]
    if instruction.info.opclass is OpcodeClass.SHUFFLE:
        return "shuffles"
    if instruction.info.opclass is OpcodeClass.SPECIAL_REGISTER:
        return "special registers"
    if instruction.info.pipe is Pipe.FP64:
        return "double precision"
    return "slow arithmetic" if instruction.info.pipe is Pipe.XU else ""


def _with_opcodes(unit: str, opcodes: Counter[str]) -> str:
    """``slow arithmetic (I2F, MUFU)``."""
    if unit not in {"slow arithmetic", "special registers"}:
        return unit
    return f"{unit} ({', '.join(name for name, _ in opcodes.most_common(_NAMED))})"
