# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel's threads know themselves only as places in the grid: ``blockIdx * blockDim + threadIdx``.

Values are followed as sums: so many times ``threadIdx`` of an axis, so many times ``blockIdx``. Where both
meet with the block's size as their ratio, the sum is a place in the grid, and so is what is computed from it.
Blocks of several dimensions may be numbered along one: ``blockIdx.x + gridDim.x * blockIdx.y``.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register_file,
)
from gpadvisor.model.integers import (
    BITS,
    OR,
    Addend,
    Computation,
    IntegerOperand,
    IntegerOperation,
    address,
    computation,
)
from gpadvisor.model.kind import Kind
from gpadvisor.model.program import Function, FunctionKind

BlockInputs: TypeAlias = Sequence[Mapping[Register, frozenset[int]]]

BLOCK_SIZE: Final = "blockDim"
GRID_SIZES: Final = ("gridDim.x", "gridDim.y", "gridDim.z")


@dataclass(frozen=True, slots=True)
class _Times:
    """A product: a number and factors by name; blockDim is one of them."""

    number: int = 1
    factors: tuple[str, ...] = ()

    def by(self, number: int, factor: str | None = None) -> _Times:
        """The product with more."""
        more = self.factors if factor is None else tuple(sorted((*self.factors, factor)))
        return _Times(self.number * number, more)


_ONCE: Final = _Times()


class _Kind(Kind):
    NEITHER = 0  # nothing of a thread's or block's number, or a lane's
    THREAD = 1  # so many times threadIdx, and what is the same for all threads
    BLOCK = 2
    PLACE = 3  # computed from places in the grid alone
    OTHER = 4  # anything else of a thread or block


@dataclass(frozen=True, slots=True)
class _Value:
    kind: _Kind
    axis: str = ""
    times: _Times = _ONCE


_NEITHER: Final = _Value(_Kind.NEITHER)
_PLACE: Final = _Value(_Kind.PLACE)
_OTHER: Final = _Value(_Kind.OTHER)
_SPECIAL: Final = re.compile(r"SR_(TID|CTAID)\.([XYZ])")
_PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})
_VISITS: Final = 16
"""A value that has not settled after so many changes is taken for anything."""
_LANE: Final = re.compile(r"\b0x1f\b")


def is_lane(instruction: Instruction) -> bool:
    """Whether an instruction takes threadIdx % 32, the same in every block of whole warps."""
    return instruction.opcode in {"LOP3", "LOP"} and _LANE.search(instruction.operands) is not None


def address_registers(instruction: Instruction) -> tuple[Register, ...]:
    """The registers in the first address of an access, without a descriptor."""
    terms = address(instruction.operands, first=True) or ()
    return tuple(term.operand.register for term in terms if term.operand.register is not None)


class Positions:
    """Where a function uses numbers of threads or blocks in another way than as places in the grid.

    ``threads`` and ``blocks`` are the first instructions that do, None where none does; ``sizes`` are the
    constants that stand for the block's size, by axis.
    """

    def __init__(
        self, function: Function, inputs: BlockInputs, size: Callable[[int, Register | str], str | None]
    ) -> None:
        """Follow the values of a function.

        Args:
            function: its code.
            inputs: by instruction what may have written each register that it reads.
            size: what a register that an instruction reads, or a constant operand, is of ``BLOCK_SIZE`` and
                ``GRID_SIZES``.
        """
        self._function = function
        self._inputs = inputs
        self._size = size
        self.sizes: set[tuple[str, int]] = set()
        # A caller's value may be anything.
        self._unknown = _NEITHER if function.kind is FunctionKind.KERNEL else _OTHER
        self._values = self._follow()
        self.threads = self._first({_Kind.THREAD, _Kind.OTHER})
        self.blocks = self._first({_Kind.BLOCK})

    def _follow(self) -> list[_Value]:
        count = len(self._function.instructions)
        self._values = [_NEITHER] * count
        readers: list[list[int]] = [[] for _ in range(count)]
        for index, inputs in enumerate(self._inputs):
            for writers in inputs.values():
                for writer in writers:
                    readers[writer].append(index)
        visits = [0] * count
        pending = deque(range(count))
        while pending:
            index = pending.popleft()
            visits[index] += 1
            value = self._value(index) if visits[index] <= _VISITS else _OTHER
            if value != self._values[index]:
                self._values[index] = value
                pending += readers[index]
        self.sizes.clear()  # of sums that were not yet known whole
        return [self._value(index) if visits[index] <= _VISITS else _OTHER for index in range(count)]

    def _read(self, index: int, source: Register) -> _Value:
        inputs = self._inputs[index]
        writers, beside = (inputs.get(half, frozenset()) for half in (source, Register(source ^ 1)))
        if beside and beside < writers:
            writers = beside  # on other ways the other half is not written: nothing is read there that counts
        result = _NEITHER if writers else self._unknown
        for writer in writers:
            result = _joined(result, self._values[writer])
        return result

    def _value(self, index: int) -> _Value:
        """What an instruction makes of what it reads."""
        instruction = self._function.instructions[index]
        special = _SPECIAL.search(instruction.operands)
        if special is not None:
            return _Value(_Kind.THREAD if special[1] == "TID" else _Kind.BLOCK, special[2].lower())
        info = instruction.info
        if is_lane(instruction) or info.opclass in _FORGETS:
            return _NEITHER
        computed = computation(instruction)
        value = None if computed is None else self._computed(index, computed)
        return self._rest(index) if value is None else value

    def _computed(self, index: int, computed: Computation) -> _Value | None:
        """What comes of multiples of numbers; None of all else."""
        operation, operands = computed.operation, computed.operands
        if operation is IntegerOperation.SUM:
            return self._sum(index, computed.terms)
        if operation is IntegerOperation.LOGIC and operands[-1].number == OR:  # of parts that do not overlap
            return self._sum(index, map(Addend, operands[:2]))
        if operation is IntegerOperation.CHOICE:
            return _joined(self._operand(index, operands[0]), self._operand(index, operands[1]))
        if operation is IntegerOperation.RIGHT and computed.signed and operands[1].number == BITS - 1:
            return _NEITHER  # the sign of an index, for its upper half: no index is below zero
        return None

    def _operand(self, index: int, operand: IntegerOperand) -> _Value:
        return _NEITHER if operand.register is None else self._read(index, operand.register)

    def _rest(self, index: int) -> _Value:
        """What no sum is: a place where it is of places alone."""
        kinds = {self._read(index, source).kind for source in self._inputs[index]} - {_Kind.NEITHER}
        return _NEITHER if not kinds else _PLACE if kinds == {_Kind.PLACE} else _OTHER

    def _name(self, index: int, operand: IntegerOperand) -> str:
        """A factor's name: the same for the same value, and one of its own for the block's size."""
        if operand.register is None:
            return self._size(index, operand.name) or operand.name
        writers = self._inputs[index].get(operand.register, ())
        return self._size(index, operand.register) or "".join(map(str, sorted(writers))) or operand.name

    def _sum(self, index: int, terms: Iterable[Addend]) -> _Value | None:
        """The sum of terms; None where one is no multiple of a thread's or a block's number."""
        result = _NEITHER
        for term in terms:
            if term.shift is not None:
                return None
            value, number, factor = self._operand(index, term.operand), term.factor * term.operand.sign, None
            if term.times is not None:
                other = self._operand(index, term.times)
                if _Kind.NEITHER not in {value.kind, other.kind}:
                    return None
                value, by = (other, term.operand) if value.kind is _Kind.NEITHER else (value, term.times)
                number, factor = number * term.times.sign, self._name(index, by)
            if value.kind in {_Kind.THREAD, _Kind.BLOCK}:
                value = _Value(value.kind, value.axis, value.times.by(number, factor))
            result = self._added(result, value)
        return result

    def _added(self, first: _Value, second: _Value) -> _Value:
        kinds = {first.kind, second.kind}
        if _Kind.NEITHER in kinds:
            return second if first.kind is _Kind.NEITHER else first
        if kinds == {_Kind.PLACE}:
            return _PLACE
        if kinds == {_Kind.BLOCK}:
            return next(
                (low for low, high in ((first, second), (second, first)) if _goes_on(low, high)), _OTHER
            )
        if kinds != {_Kind.THREAD, _Kind.BLOCK} or first.axis != second.axis:
            return _OTHER
        thread, block = (first, second) if first.kind is _Kind.THREAD else (second, first)
        more = list(block.times.factors)
        for factor in thread.times.factors:
            if factor not in more:
                return _OTHER
            more.remove(factor)
        ratio, rest = divmod(block.times.number, thread.times.number or 1)
        if rest or (more == [BLOCK_SIZE] and ratio != 1) or more not in ([], [BLOCK_SIZE]):
            return _OTHER
        if not more:
            self.sizes.add((first.axis, ratio))
        return _PLACE

    def _first(self, kinds: set[_Kind]) -> int | None:
        """The first comparison, address or stored value of a kind."""
        return next((index for index, _, kind in self._odd_reads() if kind in kinds), None)

    def _odd_reads(self) -> Iterator[tuple[int, Register, _Kind]]:
        """Comparisons, addresses and stored values of something that is no place, with its kind."""
        for index, instruction in enumerate(self._function.instructions):
            opclass = instruction.info.opclass
            decides = opclass is OpcodeClass.PREDICATE
            if decides:
                registers = [] if "EX" in instruction.modifiers else [*self._inputs[index]]
            elif opclass in _ACCESSES and instruction.info.space is not MemorySpace.CONSTANT:
                registers = self._accessed(index, instruction)
            elif opclass in {OpcodeClass.SHUFFLE, OpcodeClass.VOTE}:
                registers = [*self._inputs[index]]
            else:
                continue
            for operand in registers:
                value = self._read(index, operand)
                if value.kind in _ODD and not (decides and self._is_first_place(value)):
                    yield index, operand, value.kind

    def by_number(self) -> Iterator[tuple[int, bool]]:
        """What goes by a thread's (True) or a block's number alone; by what mixes them it is told as both.

        Floating-point values are left out: they are what the kernel computes, not where it does.
        """
        for index, operand, kind in self._odd_reads():
            instruction = self._function.instructions[index]
            writers = (
                () if operand in address_registers(instruction) else self._inputs[index].get(operand, ())
            )
            computed = any(self._function.instructions[writer].info.opclass in _FLOATS for writer in writers)
            if computed or instruction.opcode in _COMPARES_FLOATS:
                continue
            if kind is not _Kind.BLOCK:
                yield index, True
            if kind is not _Kind.THREAD:
                yield index, False

    def _is_first_place(self, value: _Value) -> bool:
        """Whether it is the place of a block's first thread, as loops over the grid compare it."""
        times = value.times
        own = times == _Times(1, (BLOCK_SIZE,)) or (
            not times.factors and (value.axis, times.number) in self.sizes
        )
        return value.kind is _Kind.BLOCK and own

    def _accessed(self, index: int, instruction: Instruction) -> list[Register]:
        """What an access reads; the upper half of an address goes with the lower one."""
        address = address_registers(instruction)
        has_place = any(self._read(index, operand).kind is _Kind.PLACE for operand in address)
        return [
            use
            for use in instruction.uses
            if register_file(use) not in _PREDICATES and not (has_place and self._beside(use, address))
        ]

    @staticmethod
    def _beside(base: Register, address: Sequence[Register]) -> bool:
        return base in address or any(base == low + 1 for low in address)


_ACCESSES: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.ASYNC_COPY}
)
_ODD: Final = frozenset({_Kind.THREAD, _Kind.BLOCK, _Kind.OTHER})
_FLOATS: Final = frozenset(
    {OpcodeClass.FLOAT16, OpcodeClass.FLOAT32, OpcodeClass.FLOAT64, OpcodeClass.TRANSCENDENTAL}
)
_COMPARES_FLOATS: Final = frozenset({"FSETP", "DSETP", "HSETP2"})
_FORGETS: Final = frozenset(
    {*_ACCESSES, OpcodeClass.PREDICATE, OpcodeClass.SHUFFLE, OpcodeClass.VOTE, OpcodeClass.TENSOR}
)


def _joined(first: _Value, second: _Value) -> _Value:
    """What a register may hold that is written in two places."""
    if first == second or second.kind is _Kind.NEITHER:
        return first
    return second if first.kind is _Kind.NEITHER else _OTHER


def _goes_on(low: _Value, high: _Value) -> bool:
    """Whether blocks are numbered along the next dimension where one ends."""
    size = GRID_SIZES["xyz".index(low.axis)]
    return low.axis < high.axis and high.times == low.times.by(1, size)
