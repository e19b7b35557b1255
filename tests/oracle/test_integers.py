# SPDX-License-Identifier: Apache-2.0
"""Integer code has two readers: `model/integers.py`, for who follows names, and the simulator, which runs it.

Each is the other's oracle: with any words in registers and constants both have the same results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from random import Random

import numpy as np
import pytest
from tests.kernels import KERNELS, compile_kernel, nvdisasm_json

from gpadvisor.model.instruction import Instruction
from gpadvisor.model.integers import (
    BITS,
    MASK,
    Addend,
    Computation,
    IntegerOperand,
    IntegerOperation,
    computation,
    signed,
)
from gpadvisor.sass import decode, parse_json
from gpadvisor.simulator import evaluate
from gpadvisor.simulator.lowered import empty_slice
from gpadvisor.simulator.meanings import NOT_KNOWN, REGISTER, TRUE, Op
from gpadvisor.simulator.semantics import meaning_of
from gpadvisor.simulator.values import Values


class Words:
    """Any word for each register and each constant, the same one each time."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.of_register = cache(lambda _: self._any(random))
        self.of_constant = cache(lambda _: self._any(random))

    @staticmethod
    def _any(random: Random) -> int:
        return random.choice((random.getrandbits(BITS), random.getrandbits(5), MASK - random.getrandbits(4)))

    def of(self, operand: IntegerOperand) -> int:
        """What an operand is worth.

        Raises:
            KeyError: nobody knows.
        """
        if operand.number is not None:
            return operand.number
        if operand.register is not None:
            return self.of_register(int(operand.register)) * operand.sign + operand.offset
        if operand.constant is not None and operand.constant[0] == 0:
            return self.of_constant(operand.constant[1]) * operand.sign + operand.offset
        raise KeyError(operand.name)


def _shifted(value: int, count: int) -> int | None:
    """To the right; by more than a word is not followed."""
    return value >> count if 0 <= count < BITS else None


def _by_bits(first: int, second: int, third: int, table: int) -> int:
    places = ((first >> bit & 1) << 2 | (second >> bit & 1) << 1 | third >> bit & 1 for bit in range(BITS))
    return sum((table >> place & 1) << bit for bit, place in enumerate(places))


def _bytes(first: int, selector: int, second: int) -> int:
    both = (first & MASK | (second & MASK) << BITS).to_bytes(8, "little")
    chosen = (selector >> 4 * place & 15 for place in range(4))
    return int.from_bytes(
        bytes(both[one & 7] if one < 8 else 0xFF * (both[one & 7] >> 7) for one in chosen), "little"
    )


_RESULTS: dict[IntegerOperation, Callable[..., int | None]] = {
    IntegerOperation.MINIMUM: lambda wide, *words: min(wide(sum(words[:-1])), wide(words[-1])),
    IntegerOperation.MAXIMUM: lambda wide, *words: max(wide(sum(words[:-1])), wide(words[-1])),
    IntegerOperation.HIGH_PRODUCT: lambda wide, left, right: wide(left) * wide(right) >> BITS,
    IntegerOperation.HIGH_SUM: lambda _, low, other, high, count: (
        (((high & MASK) << BITS | low & MASK) << count >> BITS) + other
    ),
    IntegerOperation.RIGHT: lambda wide, value, count: _shifted(wide(value), count),
    IntegerOperation.FUNNEL: lambda _, low, count, high: _shifted((high & MASK) << BITS | low & MASK, count),
    IntegerOperation.LOGIC: lambda _, *words: _by_bits(*words),
    IntegerOperation.BYTES: lambda _, *words: _bytes(*words),
    IntegerOperation.ABSOLUTE: lambda _, value: abs(signed(value)),
}


def _sum(terms: Iterable[Addend], words: Words) -> int | None:
    total = 0
    for term in terms:
        times = 1 if term.times is None else words.of(term.times)
        count = 0 if term.shift is None else words.of(term.shift)
        if not 0 <= count < BITS:
            return None
        total += words.of(term.operand) * term.factor * times << count
    return total


def _told(computed: Computation, words: Words) -> int | None:
    """The result that a computation describes; None where it is one of several."""
    if computed.operation is IntegerOperation.SUM:
        result = _sum(computed.terms, words)
    else:
        wide = signed if computed.signed else (lambda value: value & MASK)
        rule = _RESULTS.get(computed.operation)
        result = None if rule is None else rule(wide, *map(words.of, computed.operands))
    return None if result is None else result & MASK


def _run(instruction: Instruction, words: Words) -> int | None:
    """What the simulator has in the result's low word, of one lane; None where it does not follow it."""
    meaning = meaning_of(instruction, words.of_constant)
    if meaning.op in {Op.UNKNOWN, Op.SPECIAL, Op.SELECT} or meaning.results[:1] in ([], [-1]):
        return None
    code, places = empty_slice(1, 2), {}
    code = code._replace(source_value=code.source_value.astype(object))  # no limit to what is computed
    code.op[0], code.mode[0], code.table[0], code.signed[0] = (
        meaning.op, meaning.mode, meaning.table, meaning.signed
    )  # fmt: skip
    for at, source in enumerate(meaning.sources):
        if source.kind == NOT_KNOWN:
            return None
        code.source_kind[0, at], code.source_how[0, at] = source.kind, source.how
        place = places.setdefault(source.value, len(places)) if source.kind == REGISTER else source.value
        code.source_value[0, at] = place
    for at, (which, negated) in enumerate(meaning.predicates):
        code.read[0, at], code.read_negated[0, at] = -1 if which == TRUE else 0, negated
    code.result[0, 0] = len(places)
    slots = len(places) + 1
    values = Values(
        word=np.zeros((1, slots, 32), dtype=object),
        known=np.zeros((1, slots), dtype=object),
        known_low=np.zeros((1, slots), dtype=object),
        axes=np.zeros((1, slots), dtype=object),
        flag=np.zeros((1, 1), dtype=object),
        flag_known=np.full((1, 1), MASK, dtype=object),
        special=np.zeros((1, 16, 32), dtype=object),
        draws=np.zeros(1, dtype=object),
        scratch=np.zeros((6, 32), dtype=object),
    )
    for register, place in places.items():
        values.word[0, place, 0] = words.of_register(register)
        values.known[0, place] = values.known_low[0, place] = MASK
    evaluate.evaluate(code, values, 0, 0, 1)
    return int(values.word[0, len(places), 0]) & MASK if values.known[0, len(places)] & 1 else None


def _forms(arch: str) -> Iterator[Instruction]:
    """Instructions of our kernels, one of each form and number."""
    seen = set()
    for name in [name for name, kernel in KERNELS.items() if arch in kernel.architectures][::4]:
        for lines in parse_json(nvdisasm_json(compile_kernel(name, arch=arch))).values():
            for instruction in decode(arch, bytes(16 * len(lines)), lines)[0]:
                form = re.sub(r"R\d+", "R", instruction.operands)
                key = (instruction.opcode, instruction.modifiers, form)
                if key not in seen:
                    seen.add(key)
                    yield instruction


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_both_readers_of_integer_code_have_the_same_result(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "WARP", 1)
    words = Words(seed=1)
    compared, differ = 0, []
    for instruction in _forms(arch):
        computed, told = computation(instruction), None
        with suppress(KeyError):
            told = None if computed is None else _told(computed, words)
        run = None if told is None else _run(instruction, words)
        if told is not None and run is not None:
            compared += 1
            if told != run:
                differ.append(f"{instruction.opcode} {instruction.operands}: {told:#x}, {run:#x}")
    assert not differ
    assert compared > 200
