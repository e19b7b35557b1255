# SPDX-License-Identifier: Apache-2.0
"""What the 32 threads of a block's first warp hold in a register, as far as their numbers decide it.

Integer instructions are followed backwards through the machine code, loops in their first pass. Arguments and
whatever else all threads share stand for a number that tells a row's length from a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.evidence.divisions import division_steps
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Register
from gpadvisor.model.integers import (
    MASK,
    Computation,
    IntegerOperand,
    IntegerOperation,
    address,
    computation,
    operand,
    sources,
)
from gpadvisor.model.machine import WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_DEEPEST: Final = 200  # instructions behind each other; the recursion of Python ends not far above
_LOADS: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.ATOMIC, OpcodeClass.SHUFFLE, OpcodeClass.TENSOR})

LaneArray = NDArray[np.int64]
Carried = tuple[frozenset[tuple[int, Register]], int]  # what writes it from pass to pass, and the value


@dataclass(frozen=True, slots=True, eq=False)
class LaneValue:
    """A 32-bit value of each thread."""

    lanes: LaneArray | None  # unsigned; None where the threads' values differ and are not known
    loaded: bool = False  # it was computed from what differing addresses in memory hold
    stands: bool = False  # it holds a number that stands for what is not known
    vague: bool = False  # not even whether that is an argument: no length of a row, and no constant

    @property
    def differs(self) -> bool:
        """Whether threads hold different values."""
        return self.lanes is None or bool((self.lanes != self.lanes[0]).any())


_UNKNOWN: Final = LaneValue(None)
_LOADED: Final = LaneValue(None, loaded=True)


@lru_cache(maxsize=4096)
def _same(value: int, *, stands: bool = False, vague: bool = False) -> LaneValue:
    return LaneValue(np.full(WARP, value & MASK, dtype=np.int64), stands=stands, vague=vague)


_SPECIAL: Final = ("SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_LANEID")


@lru_cache(maxsize=16)
def _writers_by_read(_: Function) -> dict[tuple[int, Register], tuple[int, ...]]:
    """Filled while values of a function are looked up: the same whatever its arguments stand for."""
    return {}


class LaneValues:
    """The values of one function's registers in the first warp of a block."""

    def __init__(
        self,
        function: Function,
        form: CodeForm,
        launch: Launch,
        argument: int,
        *,
        swapped: bool = False,
        carried: Carried | None = None,
        block: int = 0,
    ) -> None:
        """Look nothing up yet.

        Args:
            function: the code.
            form: of the code.
            launch: its blocks.
            argument: stands for whatever all threads share and nobody knows.
            swapped: whether threadIdx.x and threadIdx.y have changed places in the source.
            carried: a value to look at in place of that of the first pass.
            block: the number of the block along x.
        """
        self._function = function
        self._block = block
        self._argument = argument
        self._standing: dict[object, int] = {}
        self._reaching = function.reaching
        self._divisions = division_steps(function)
        self._writers = _writers_by_read(function)
        carriers, value = carried or ((), 0)
        self._known: dict[tuple[int, Register], LaneValue | None] = dict.fromkeys(carriers, _same(value))
        self._depth = 0
        lane = np.arange(WARP, dtype=np.int64)
        x, y, z = (max(1, size) for size in launch.block)
        along_x, along_y = lane % x, lane // x % y
        axes = (along_y, along_x) if swapped else (along_x, along_y)
        self._special = dict(zip(_SPECIAL, (*axes, lane // (x * y) % z, lane), strict=True))
        block, grid = form.block_size_at, form.grid_size_at
        self._constants = dict(zip((block + 4 * axis for axis in range(3)), launch.block, strict=True))
        self._constants.update(zip((grid + 4 * axis for axis in range(3)), launch.grid, strict=True))

    def operand(self, index: int, text: str) -> LaneValue:
        """What an operand of an instruction holds before it."""
        return self._read(index, operand(text))

    def _read(self, index: int, source: IntegerOperand) -> LaneValue:
        if source.number is not None:
            return _same(source.number)
        if source.register is not None:
            value = self.register(index, source.register)
        elif source.constant is not None and source.constant[0] == 0:
            value = self._constant(source.constant[1])
        else:
            value = self._any(source.name)
        if source.sign == 1 or value.lanes is None:
            return value
        return replace(value, lanes=value.lanes * source.sign + source.offset & MASK)

    def _constant(self, offset: int) -> LaneValue:
        value = self._constants.get(offset)
        return self._any(offset) if value is None else _same(value)

    def _any(self, origin: object, *, vague: bool = False) -> LaneValue:
        """A value that all threads share and nobody knows; two of them are not the same."""
        order = self._standing.setdefault(origin, len(self._standing))
        return _same(self._argument * (2 * order + 1), stands=True, vague=vague)

    def register(self, index: int, target: Register) -> LaneValue:
        """What a register holds before an instruction: of several writers, what one without a guard does."""
        key = index, target
        writers = self._writers.get(key)
        if writers is None:
            definitions = sorted(self._reaching.definitions(index, target))
            guarded = [self._function.instructions[writer].guard is not None for writer in definitions]
            writers = self._writers[key] = (
                *(writer for writer, under in zip(definitions, guarded, strict=True) if not under),
                *(writer for writer, under in zip(definitions, guarded, strict=True) if under),
            )
        lane_value: LaneValue | None = None
        for writer in writers:
            value = self._written(writer, target)
            if value is not None and value.lanes is None and value.loaded:
                return value  # in some pass the data decide
            if lane_value is not None and self._function.instructions[writer].guard is not None:
                break
            if value is not None and (
                lane_value is None or (lane_value.lanes is None and value.lanes is not None)
            ):
                lane_value = value
        return self._any((index, target)) if lane_value is None else lane_value

    def _written(self, index: int, target: Register) -> LaneValue | None:
        """What an instruction writes; None while that is being found out, as of a loop's next pass."""
        key = index, target
        if key in self._known:
            return self._known[key]
        if self._depth >= _DEEPEST:
            return _UNKNOWN
        self._known[key] = None
        self._depth += 1
        value = self._computed(index, self._function.instructions[index], target)
        self._depth -= 1
        self._known[key] = value
        return value

    def _computed(self, index: int, instruction: Instruction, target: Register) -> LaneValue:
        special = next((name for name in _SPECIAL if name in instruction.operands), None)
        if special is not None:
            return LaneValue(self._special[special])
        opclass = instruction.info.opclass
        if opclass is OpcodeClass.SPECIAL_REGISTER:
            return _same(self._block if "SR_CTAID.X" in instruction.operands else 0)
        if opclass in _LOADS and instruction.info.space is not MemorySpace.CONSTANT:
            return self._loaded(index, target)
        if index in self._divisions.reciprocals:
            return self._reciprocal(self._divisions.reciprocals[index])
        computed = computation(instruction, target - min(instruction.defs))
        operands = sources(instruction.operands) if computed is None else computed.operands
        values = [self._read(index, operand) for operand in operands]
        stands, vague = any(value.stands for value in values), any(value.vague for value in values)
        differs = any(value.differs for value in values)
        lanes = [value.lanes for value in values if value.lanes is not None]
        # What stands for another number has neither its high half nor its bits; as a divisor it is larger
        # than a warp, as sizes are that indices are divided by.
        if (
            computed is not None
            and computed.operation in _COMPUTE
            and len(lanes) == len(values)
            and (computed.operation in _LINEAR or not stands or index in self._divisions.quotients)
            and not (vague and differs and any(term.times is not None for term in computed.terms))
        ):
            result = _COMPUTE[computed.operation](computed, lanes)
            if result is not None:
                return LaneValue(result & MASK, stands=stands, vague=vague)
        if differs:
            return _LOADED if any(value.loaded for value in values) else _UNKNOWN
        return self._any((index, target), vague=vague or not stands)

    def _reciprocal(self, conversion: int) -> LaneValue:
        """2^32 / divisor, rounded up: what is no larger than that by far is divided without a correction."""
        divisor = self.operand(conversion, self._function.instructions[conversion].operand_texts[1])
        if divisor.lanes is None or not divisor.lanes.all():
            return _UNKNOWN
        return replace(divisor, lanes=-(-(1 << 32) // divisor.lanes) & MASK)

    def _loaded(self, index: int, target: Register) -> LaneValue:
        address = self.address(index)
        if address is not None and not address.differs:
            return self._any((index, target))  # one value for all threads
        return _LOADED

    def address(self, index: int, *, first: bool = False) -> LaneValue | None:
        """The low words of an access's addresses, in its last brackets or its first; None without any."""
        terms = address(self._function.instructions[index].operands, first=first)
        if terms is None:
            return None
        total, stands = np.zeros(WARP, dtype=np.int64), False
        for term in terms:
            value = self._read(index, term.operand)
            if value.lanes is None:
                return value
            total = total + value.lanes * term.factor
            stands = stands or value.stands
        return LaneValue(total & MASK, stands=stands)


def signed(lanes: LaneArray) -> LaneArray:
    """The same values with a sign."""
    return np.where(lanes >> 31 & 1, lanes - (1 << 32), lanes)


def _by_sign(computed: Computation, lanes: LaneArray) -> LaneArray:
    return signed(lanes) if computed.signed else lanes


def _count(lanes: LaneArray) -> int | None:
    """A shift's distance, where all threads have the same."""
    return int(lanes[0]) & 63 if (lanes == lanes[0]).all() else None


def _sum(computed: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    total, remaining = np.zeros(WARP, dtype=np.int64), iter(operands)
    for term in computed.terms:
        value = next(remaining) * term.factor & MASK
        if term.times is not None:
            value = value * next(remaining) & MASK  # what wraps at 64 bits leaves these as they are
        if term.shift is not None:
            count = _count(next(remaining))
            if count is None:
                return None
            value = value << count
        total = total + value
    return total


def _first(_: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    return operands[0]


def _high_product(computed: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    left, right = (_by_sign(computed, lanes) for lanes in operands)
    return np.array([int(a) * int(b) >> 32 for a, b in zip(left, right, strict=True)], dtype=np.int64)


def _high_sum(_: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    low, more, high, by = operands
    count = _count(by)
    return None if count is None else ((high << 32 | low) << count >> 32) + more


def _right(computed: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    count = _count(operands[1])
    return None if count is None else _by_sign(computed, operands[0]) >> count


def _funnel(_: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    low, by, high = operands
    count = _count(by)
    return None if count is None else (high << 32 | low) >> count


def _logic(_: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    a, b, c, table = *operands[:3], int(operands[3][0])
    result = np.zeros(WARP, dtype=np.int64)
    for bit in range(8):
        if table >> bit & 1:
            result |= (a if bit & 4 else ~a) & (b if bit & 2 else ~b) & (c if bit & 1 else ~c)
    return result


def _absolute(_: Computation, operands: Sequence[LaneArray]) -> LaneArray | None:
    return np.abs(signed(operands[0]))


_LINEAR: Final = frozenset({IntegerOperation.SUM, IntegerOperation.CHOICE})
_COMPUTE: Final[dict[IntegerOperation, Callable[[Computation, Sequence[LaneArray]], LaneArray | None]]] = {
    IntegerOperation.SUM: _sum,
    IntegerOperation.CHOICE: _first,
    IntegerOperation.HIGH_PRODUCT: _high_product,
    IntegerOperation.HIGH_SUM: _high_sum,
    IntegerOperation.RIGHT: _right,
    IntegerOperation.FUNNEL: _funnel,
    IntegerOperation.LOGIC: _logic,
    IntegerOperation.ABSOLUTE: _absolute,
}
