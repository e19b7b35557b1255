# SPDX-License-Identifier: Apache-2.0
"""What a run had to assume, in sentences."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from gpadvisor.model.figures import percent
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.machine import LINE_BYTES
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.sentence import Sentence, marked, sentences
from gpadvisor.simulator import state
from gpadvisor.simulator.by_data import ByData
from gpadvisor.simulator.configuration import ASSUMED_HIT_RATE, BY_DATA_L1_HITS, BY_DATA_L2_HITS
from gpadvisor.simulator.control import line_words, together
from gpadvisor.simulator.outcome import Outcome
from gpadvisor.simulator.state import Results

_ACCESSING: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION}
)
_OPERATIONS: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
_SHOWN_ASSUMPTIONS: Final = 40


def list_assumptions(outcome: Outcome) -> tuple[Sentence, ...]:
    """Each once, those of the launch first."""
    share = outcome.share
    texts = [
        f"modelled: one SM of {share.sms}, {len(share.blocks)} of its {share.total} blocks simulated"
        + (f", {share.repeats} more full waves taken to be like these" if share.repeats else ""),
    ]
    texts += _cache_assumptions(outcome)
    if _lacks_shared(outcome):
        texts.append("no size is stated for the dynamic shared memory that the code uses")
    texts += _address_assumptions(outcome)
    if _unknown_operations(outcome):
        texts.append("lanes of atomic operations whose addresses are not known work on different lines")
    undecided = np.flatnonzero(outcome.results.undecided)
    decided = outcome.lowered.decisions
    texts += together(decided[place] for place in undecided.tolist() if place in decided)
    texts += outcome.lowered.notes
    if outcome.sm.number[state.FORCED]:
        texts.append(
            "warps that waited for each other for ever were let go "
            f"{int(outcome.sm.number[state.FORCED])} times"
        )
    deep = int(outcome.sm.number[state.TOO_DEEP])
    if deep:
        texts.append(f"{deep} calls deeper than {state.CALLS} inside one another returned at once")
    return sentences(*dict.fromkeys(texts))


def _cache_assumptions(outcome: Outcome) -> list[str]:
    """What is taken for granted of hits, and of which share of the accesses."""
    config, level = outcome.config, outcome.results.level.sum(axis=1)
    l1, l2 = (ASSUMED_HIT_RATE if rate is None else rate for rate in (config.l1_hit_rate, config.l2_hit_rate))
    shares = f"hit L1 with {percent(l1, 0)}, L2 with {percent(l2, 0)}"
    local = f"local loads hit L1 with {percent(config.local_hit_rate, 0)}, stores go to L2"
    found, unknown = int(level[state.REQUESTS]), int(level[state.UNKNOWN_REQUESTS])
    if not found:
        return [f"global accesses {shares}; {local}"]
    l1_kib = int(outcome.sm.whole[state.L1_SETS]) * state.L1_WAYS * LINE_BYTES >> 10
    share = found / (found + unknown)
    which = (
        f"addresses of {percent(share, 0)} of the global accesses"
        if unknown
        else "addresses of global accesses"
    )
    text = (
        f"{which} follow from the launch: they hit what is in {l1_kib} KiB of L1 and in "
        f"{outcome.device.l2_bytes >> 20} MiB of L2, both empty at first"
    )
    return [text, f"the other global accesses {shares}; {local}" if unknown else local]


def _lacks_shared(outcome: Outcome) -> bool:
    return not (outcome.share.static_shared or outcome.config.dynamic_shared_bytes) and any(
        instruction.info.space is MemorySpace.SHARED and instruction.info.opclass in _ACCESSING
        for instruction in outcome.lowered.instructions.values()
    )


def _unknown_operations(outcome: Outcome) -> bool:
    return any(
        instruction.info.opclass in _OPERATIONS and outcome.results.level[state.UNKNOWN_REQUESTS, place]
        for place, instruction in outcome.lowered.instructions.items()
    )


def _address_assumptions(outcome: Outcome) -> list[str]:
    """What is taken for granted of addresses that do not follow from the launch, with the lines."""
    executed, by_data = outcome.results.executed.sum(axis=0), outcome.lowered.code.by_data
    lines: dict[int, set[Sentence]] = {}
    for function in outcome.lowered.functions:
        first = function.start // INSTRUCTION_BYTES
        for index, instruction in enumerate(function.instructions):
            place = first + index
            if executed[place] and _guessed(instruction, outcome.results, place):
                entry = function.lines[index]
                text = Sentence(line_words(entry) if entry else f"{int(instruction.pc):#x}")
                lines.setdefault(int(by_data[place]), set()).add(text)
    return [f"{text}: {_listed(lines[kind])}" for kind, text in _ADDRESSES.items() if kind in lines]


_ADDRESSES: Final = {
    ByData.NO: "neighbouring lanes access neighbouring words where addresses do not follow from the launch",
    ByData.APART: "lanes access a sector each, which hits L1 with "
    f"{percent(BY_DATA_L1_HITS, 0)} and L2 with {percent(BY_DATA_L2_HITS, 0)}, where loaded words decide the "
    "address",
    ByData.DRAWN: "loaded words that decide an address are drawn evenly",
}


def _listed(lines: Collection[Sentence]) -> str:
    shortest = sorted(lines, key=lambda text: (len(text), text))[:8]
    return ", ".join(map(marked, shortest)) + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")


def _loops_not_known(outcome: Outcome) -> set[Sentence]:
    """Where loops end whose length was guessed."""
    decisions = outcome.lowered.decisions
    guessed = (place for place in np.flatnonzero(outcome.results.undecided).tolist() if place in decisions)
    return {
        Sentence(decisions[place].place.partition(" (")[0]) for place in guessed if decisions[place].guessed
    }


def list_problems(outcome: Outcome, assumptions: tuple[Sentence, ...]) -> tuple[Problem, ...]:
    """The assumptions as problems, and what else a reader of the profile has to know."""
    first_texts = assumptions[:_SHOWN_ASSUMPTIONS]
    problems = [Problem(ProblemCode.COMPILE_ASSUMPTION, text) for text in first_texts]
    if len(assumptions) > len(first_texts):
        text = f"{len(assumptions) - len(first_texts)} further assumptions are not listed"
        problems.append(Problem(ProblemCode.COMPILE_ASSUMPTION, text))
    if lines := _loops_not_known(outcome):
        text = f"how often loops run is a guess ({_listed(lines)}): --arguments or --loop states it"
        problems.append(Problem(ProblemCode.LOOP_NOT_KNOWN, text))
    if not outcome.finished:
        text = f"{outcome.cut()} under these assumptions: what it did until then is shown, and no duration"
        problems.append(Problem(ProblemCode.TRUNCATED_SAMPLES, text))
    for opcode, count in outcome.lowered.unknown.items():
        text = f"opcode {opcode} is not known ({count} instructions): it is simulated as an ALU instruction"
        problems.append(Problem(ProblemCode.UNKNOWN_OPCODE, text))
    return tuple(problems)


def _guessed(instruction: Instruction, results: Results, place: int) -> bool:
    """Whether the pattern of an access had to be guessed."""
    info = instruction.info
    if info.opclass not in _ACCESSING or info.space is None:
        return False
    return info.space.value in {"global", "generic", "shared"} and not results.sectors[:, place].any()
