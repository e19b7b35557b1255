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
    of_reason = rows.reason == reason
    if words is None or not rows.samples[of_reason].any():
        return ""
    units: Counter[str] = Counter()
    opcodes: dict[str, Counter[str]] = {}
    for function, cause, use, samples in zip(
        rows.function[of_reason],
        rows.def_index[of_reason],
        rows.use_index[of_reason],
        rows.samples[of_reason],
        strict=True,
    ):
        index = use if cause == NO_INDEX else cause
        if function == NO_FUNCTION or index == NO_INDEX:
            continue
        instruction = program.functions[function].instructions[index]
        if unit := _unit(instruction):
            units[unit] += int(samples)
            opcodes.setdefault(unit, Counter())[instruction.opcode] += int(samples)
    total, heaviest = int(rows.samples[of_reason].sum()), units.most_common(_NAMED)
    if heaviest and heaviest[0][1] > constants.MAJORITY * total:
        heaviest = heaviest[:1]
    if sum(samples for _, samples in heaviest) <= constants.MAJORITY * total:
        return ""
    return words.format(" and ".join(_with_opcodes(unit, opcodes[unit]) for unit, _ in heaviest))


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
