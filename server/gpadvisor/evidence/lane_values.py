# SPDX-License-Identifier: Apache-2.0
"""What the 32 threads of a block's first warp hold in a register, as far as their numbers decide it.

Integer instructions are followed backwards through the machine code, loops in their first pass. Arguments and
whatever else all threads share stand for a number that tells a row's length from a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import add
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.halves import half_constant
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
)
from gpadvisor.model.machine import WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_MASK: Final = (1 << 32) - 1
_DEEPEST: Final = 200  # instructions behind each other; the recursion of Python ends not far above
_REGISTER: Final = re.compile(r"(U?R)(\d+)\Z")
_CONSTANT: Final = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]\Z")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+\Z")
_PREDICATE: Final = re.compile(r"!?U?P(\d|T)\Z")
_LOADS: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.ATOMIC, OpcodeClass.SHUFFLE, OpcodeClass.TENSOR})

Lanes = NDArray[np.int64]
Carried = tuple[frozenset[tuple[int, Register]], int]  # what writes it from pass to pass, and the value


@dataclass(frozen=True, slots=True, eq=False)
class LaneValue:
    """A 32-bit value of each thread."""

    lanes: Lanes | None  # unsigned; None where the threads' values differ and are not known
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
    return LaneValue(np.full(WARP, value & _MASK, dtype=np.int64), stands=stands, vague=vague)


class _Operand(NamedTuple):
    """An operand as it is written; what is none of the three is known by its name alone."""

    signs: str  # in front of it: ``-`` and ``~``
    name: str
    register: Register | None = None
    number: int | None = None
    constant: int | None = None  # its offset in the bank of arguments


@lru_cache(maxsize=4096)
def _operand(text: str) -> _Operand:
    operand = text.strip().removesuffix(".reuse")
    name = operand.lstrip("-~ ")
    signs = operand[: len(operand) - len(name)].replace(" ", "")
    match = _REGISTER.match(name.removesuffix(".64"))
    if match is not None:
        file = RegisterFile.GPR if match[1] == "R" else RegisterFile.UNIFORM
        return _Operand(signs, name, register=register(file, int(match[2])))
    if name in {"RZ", "URZ"}:
        return _Operand(signs, name, number=0)
    if _NUMBER.match(name):
        return _Operand(signs, name, number=int(name, 16))
    constant = _CONSTANT.match(name)
    return _Operand(signs, name, constant=int(constant[1], 16) if constant else None)


class _Sources(NamedTuple):
    """The operands of an instruction."""

    every: tuple[str, ...]
    values: tuple[str, ...]  # those that it computes with
    special: str | None  # a register that holds a number of the thread


_SPECIAL: Final = ("SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_LANEID")


@lru_cache(maxsize=4096)
def _sources(operands: str) -> _Sources:
    texts = tuple(text.strip() for text in operands.split(","))
    return _Sources(
        texts,
        tuple(text for text in texts[1:] if not _PREDICATE.match(text)),
        next((name for name in _SPECIAL if name in operands), None),
    )


@lru_cache(maxsize=4096)
def _address(operands: str, *, first: bool) -> tuple[tuple[str, int], ...] | None:
    """The parts of an address and what each is multiplied by; None without brackets."""
    brackets = _BRACKETS.findall(operands)
    if not brackets:
        return None
    parts = (
        part.strip().partition(".") for part in brackets[0 if first else -1].replace("+-", "+ -").split("+")
    )
    return tuple((name, _SCALES.get(suffix, 1)) for name, _, suffix in parts)


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
    ) -> None:
        """Look nothing up yet.

        Args:
            function: the code.
            form: of the code.
            launch: its blocks.
            argument: stands for whatever all threads share and nobody knows.
            swapped: whether threadIdx.x and threadIdx.y have changed places in the source.
            carried: a value to look at in place of that of the first pass.
        """
        self._function = function
        self._argument = argument
        self._standing: dict[object, int] = {}
        self._reaching = function.reaching
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
        operand = _operand(text)
        if operand.register is not None:
            value = self.register(index, operand.register)
        elif operand.number is not None:
            value = _same(operand.number)
        elif operand.constant is not None:
            value = self._constant(operand.constant)
        else:
            value = self._any(operand.name)
        for sign in reversed(operand.signs):
            if value.lanes is not None:
                value = replace(value, lanes=(-value.lanes if sign == "-" else ~value.lanes) & _MASK)
        return value

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
        sources = _sources(instruction.operands)
        if sources.special is not None:
            return LaneValue(self._special[sources.special])
        opclass = instruction.info.opclass
        if opclass is OpcodeClass.SPECIAL_REGISTER:
            return _same(0)  # the first block
        if opclass in _LOADS and instruction.info.space is not MemorySpace.CONSTANT:
            return self._loaded(index, target)
        if opclass is OpcodeClass.LOAD:
            offset = _CONSTANT.match(sources.every[-1])
            word = int(target) - min(map(int, instruction.defs))
            return self._constant(int(offset[1], 16) + 4 * word) if offset else self._any((index, target))
        first = min(instruction.defs) == target
        compute = _INTEGER.get(instruction.opcode)
        values = [self.operand(index, text) for text in sources.values]
        lanes = [value.lanes for value in values if value.lanes is not None]
        stands, vague = any(value.stands for value in values), any(value.vague for value in values)
        constant = half_constant(sources.values) if instruction.opcode == "HFMA2" else None
        if constant is not None:
            return _same(constant)
        # What stands for another number has neither its high half nor its bits.
        exact = _is_linear(instruction)
        if (
            compute is not None
            and first
            and len(lanes) == len(values)
            and "X" not in instruction.modifiers
            and (exact or not stands)
            and not (_is_product(instruction) and vague and any(value.differs for value in values[:2]))
        ):
            result = compute(instruction, lanes)
            if result is not None:
                return LaneValue(result & _MASK, stands=stands, vague=vague)
        if any(value.differs for value in values):
            return _LOADED if any(value.loaded for value in values) else _UNKNOWN
        return self._any((index, target), vague=vague or not stands)

    def _loaded(self, index: int, target: Register) -> LaneValue:
        address = self.address(index)
        if address is not None and not address.differs:
            return self._any((index, target))  # one value for all threads
        return _LOADED

    def address(self, index: int, *, first: bool = False) -> LaneValue | None:
        """The low words of an access's addresses, in its last brackets or its first; None without any."""
        parts = _address(self._function.instructions[index].operands, first=first)
        if parts is None:
            return None
        total, stands = np.zeros(WARP, dtype=np.int64), False
        for name, scale in parts:
            value = self.operand(index, name)
            if value.lanes is None:
                return value
            total = total + value.lanes * scale
            stands = stands or value.stands
        return LaneValue(total & _MASK, stands=stands)


_BRACKETS: Final = re.compile(r"(?<!c)(?<!cx)(?<!desc)\[([^\[\]]*)\](?!\[)")
_SCALES: Final = {"X4": 4, "X8": 8, "X16": 16}


def _is_linear(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    if "HI" in modifiers:
        return False
    return instruction.opcode in _LINEAR or (instruction.opcode in _SHIFTS and "R" not in modifiers)


def _is_product(instruction: Instruction) -> bool:
    return instruction.opcode in {"IMAD", "UIMAD"} and not {"MOV", "IADD", "SHL"}.intersection(
        instruction.modifiers
    )


def signed(lanes: Lanes) -> Lanes:
    """The same values with a sign."""
    return np.where(lanes >> 31 & 1, lanes - (1 << 32), lanes)


def _count(lanes: Lanes) -> int | None:
    """A shift's distance, where all threads have the same."""
    return int(lanes[0]) & 63 if (lanes == lanes[0]).all() else None


def _copy(_: Instruction, sources: list[Lanes]) -> Lanes | None:
    return sources[0]


def _sum(_: Instruction, sources: list[Lanes]) -> Lanes | None:
    return reduce(add, sources)


def _product(instruction: Instruction, sources: list[Lanes]) -> Lanes | None:
    if len(sources) < 3:
        return None
    left, right, more = sources[:3]
    if "HI" in instruction.modifiers:
        unsigned = "U32" in instruction.modifiers
        factors = (left, right) if unsigned else (signed(left), signed(right))
        high = [(int(a) * int(b)) >> 32 for a, b in zip(*factors, strict=True)]
        return np.array(high, dtype=np.int64) + more
    return (left * right & _MASK) + more  # what wraps at 64 bits leaves these as they are


def _scaled_sum(instruction: Instruction, sources: list[Lanes]) -> Lanes | None:
    if len(sources) < 3:
        return None
    by = _count(sources[-1])
    if by is None:
        return None
    if "HI" not in instruction.modifiers:
        return (sources[0] << by) + sources[1]
    if len(sources) < 4:
        return None
    return ((sources[2] << 32 | sources[0]) << by >> 32) + sources[1]


def _shift(instruction: Instruction, sources: list[Lanes]) -> Lanes | None:
    by = _count(sources[1])
    if by is None:
        return None
    modifiers = instruction.modifiers
    if instruction.opcode == "SHL" or "L" in modifiers:
        return None if "HI" in modifiers else sources[0] << by
    if len(sources) < 3:  # SHR
        return sources[0] >> by if "U32" in modifiers else signed(sources[0]) >> by
    if "HI" not in modifiers:
        return (sources[2] << 32 | sources[0]) >> by
    value = sources[2] if "U32" in modifiers else signed(sources[2])
    return value >> by


def _logic(_: Instruction, sources: list[Lanes]) -> Lanes | None:
    if len(sources) < 4:
        return None
    a, b, c, table = *sources[:3], int(sources[3][0])
    result = np.zeros(WARP, dtype=np.int64)
    for bit in range(8):
        if table >> bit & 1:
            result |= (a if bit & 4 else ~a) & (b if bit & 2 else ~b) & (c if bit & 1 else ~c)
    return result


def _absolute(_: Instruction, sources: list[Lanes]) -> Lanes | None:
    return np.abs(signed(sources[0]))


_LINEAR: Final = frozenset(
    {"MOV", "UMOV", "R2UR", "SEL", "USEL", "CS2R", "IADD3", "IADD", "UIADD3", "VIADD", "IADD32I", "IMAD"}
    | {"UIMAD", "LEA", "ULEA"}
)
_SHIFTS: Final = frozenset({"SHF", "USHF", "SHL"})
_INTEGER: Final[dict[str, Callable[[Instruction, list[Lanes]], Lanes | None]]] = {
    **dict.fromkeys(("MOV", "UMOV", "R2UR", "SEL", "USEL", "CS2R"), _copy),
    **dict.fromkeys(("IADD3", "IADD", "UIADD3", "VIADD", "IADD32I"), _sum),
    **dict.fromkeys(("IMAD", "UIMAD"), _product),
    **dict.fromkeys(("LEA", "ULEA"), _scaled_sum),
    **dict.fromkeys(("SHF", "USHF", "SHL", "SHR"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    "IABS": _absolute,
}
