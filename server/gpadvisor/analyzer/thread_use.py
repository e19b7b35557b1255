# SPDX-License-Identifier: Apache-2.0
"""What a kernel does with its thread and block numbers, and so what its launch may change.

Only machine code is read: which values come from ``threadIdx``, ``blockIdx``, ``blockDim`` and ``gridDim``,
and where they go. Whatever cannot be told counts as a reason to leave the launch as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Flag, auto
from functools import lru_cache
from typing import Final

from gpadvisor.analyzer.positions import BLOCK_SIZE, GRID_SIZES, Positions, address_registers, is_lane
from gpadvisor.graphs import strongly_connected
from gpadvisor.machine import code_form
from gpadvisor.model.instruction import (
    COMPUTING,
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register_file,
)
from gpadvisor.model.program import Function, FunctionKind, Program
from gpadvisor.model.thread_use import CodePlace, ThreadUse

_LARGEST: Final = 30_000
"""Instructions of a function that is looked at; larger ones keep their launch."""


class Origin(Flag):
    """What a value was computed from."""

    NOTHING = 0
    THREAD = auto()  # threadIdx
    BLOCK = auto()  # blockIdx
    BLOCK_SIZE = auto()  # blockDim
    GRID_SIZE = auto()  # gridDim
    OTHER = auto()  # arguments, memory, a caller's registers


@lru_cache(maxsize=16)
def thread_use(program: Program, kernel: str) -> ThreadUse:
    """Look at a kernel with the functions that it calls."""
    entry = next((function for function in program.functions if function.name == kernel), None)
    if entry is None:
        return _merged([], known=False)
    functions, complete = _reached(program, entry)
    fits = [function for function in functions if len(function.instructions) <= _LARGEST]
    uses = [_Values(function, program.arch).use() for function in fits]
    return _merged(uses, known=complete and len(fits) == len(functions) and all(use.known for use in uses))


def _reached(program: Program, entry: Function) -> tuple[list[Function], bool]:
    """The functions that a kernel calls, itself first, without math routines; whether all are known."""
    reachable = {entry.id: entry}
    pending, complete = [entry], True
    while pending:
        for call in pending.pop().calls:
            if call.callee is None:
                complete = False
                continue
            callee = program.functions[call.callee]
            if callee.id not in reachable and callee.kind is not FunctionKind.MATH_HELPER:
                reachable[callee.id] = callee
                pending.append(callee)
    return [*reachable.values()], complete


def _merged(uses: list[ThreadUse], *, known: bool) -> ThreadUse:
    def first(name: str) -> CodePlace | None:
        return next((place for use in uses if (place := getattr(use, name)) is not None), None)

    return ThreadUse(
        axes="".join(axis for axis in "xyz" if any(axis in use.axes for use in uses)),
        flat=all(use.flat for use in uses),
        sized=any(use.sized for use in uses),
        sizes=frozenset().union(*(use.sizes for use in uses)),
        guarded=any(use.guarded for use in uses),
        grid_stride=first("grid_stride"),
        block_stride=first("block_stride"),
        tile=first("tile"),
        roles=first("roles"),
        waits_for_blocks=first("waits_for_blocks"),
        teamwork=first("teamwork"),
        cluster=first("cluster"),
        known=known,
        sums=all(use.sums for use in uses),
    )


_SPECIAL: Final = {"SR_TID": Origin.THREAD, "SR_CTAID": Origin.BLOCK}
_CONSTANT: Final = re.compile(r"c\[0x0\]\[(?:U?RZ\+?)?(?:0x([0-9a-f]+))?\]")
_ANY_CONSTANT: Final = re.compile(r"c\[|cx\[")
_PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})
_SHARED: Final = frozenset({MemorySpace.SHARED, MemorySpace.DISTRIBUTED_SHARED, MemorySpace.GENERIC})
_ACCESSES: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.ASYNC_COPY}
)
_READS: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.ATOMIC})
_WRITES: Final = frozenset({OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
_COUNTING: Final = frozenset({OpcodeClass.INTEGER, OpcodeClass.INTEGER_MULTIPLY, OpcodeClass.MOVE})
_TEAMS: Final = frozenset({OpcodeClass.TENSOR, OpcodeClass.MBARRIER})
_DATA: Final = frozenset(
    {
        *COMPUTING,
        OpcodeClass.SPECIAL_REGISTER,
        OpcodeClass.SHUFFLE,
        OpcodeClass.VOTE,
        OpcodeClass.LOAD,  # of constants: of its place, not of what memory holds
    }
)


_NUMBER: Final = re.compile(r"0x0*[1-9a-f]")
"""A constant that is not nought."""


class _Values:
    """The origins of every value of one function."""

    def __init__(self, function: Function, arch: str) -> None:
        self.function = function
        self.block_size = range(code_form(arch).block_size_at, code_form(arch).block_size_at + 12)
        self.grid_size = range(code_form(arch).grid_size_at, code_form(arch).grid_size_at + 12)
        # A caller's value may be anything.
        called = function.kind is not FunctionKind.KERNEL
        self.callers = Origin.THREAD | Origin.OTHER if called else Origin.NOTHING
        self.reaching = function.reaching
        instructions = function.instructions
        self.inputs = [self._inputs(index) for index in range(len(instructions))]
        self.own = [self._own(index) for index in range(len(instructions))]
        self.passes = [self._passes(index) for index in range(len(instructions))]
        self.origin = self._origins()

    def _inputs(self, index: int) -> dict[Register, frozenset[int]]:
        """What may have written each register that the value of an instruction is computed from."""
        instruction = self.function.instructions[index]
        decides = instruction.info.opclass is OpcodeClass.PREDICATE
        return {
            use: frozenset(self.reaching.definitions(index, use))
            for use in instruction.uses
            if decides or register_file(use) not in _PREDICATES
        }

    def _own(self, index: int) -> Origin:
        """What an instruction brings in by itself."""
        instruction = self.function.instructions[index]
        result = Origin.NOTHING
        for name, origin in _SPECIAL.items():
            if name in instruction.operands:
                result |= origin
        for text in _CONSTANT.findall(instruction.operands):
            result |= self._constant(int(text or "0", 16), instruction)
        memory = instruction.info.space not in {None, MemorySpace.CONSTANT}
        indexed = _ANY_CONSTANT.search(instruction.operands) and not _CONSTANT.search(instruction.operands)
        if indexed or (memory and instruction.info.opclass in _ACCESSES):
            result |= Origin.OTHER
        return result if all(self.inputs[index].values()) else result | self.callers

    def _constant(self, offset: int, instruction: Instruction) -> Origin:
        width = 16 if "128" in instruction.modifiers else 8 if "64" in instruction.modifiers else 4
        origin = Origin.NOTHING
        for word in range(offset, offset + (width if instruction.info.opclass is OpcodeClass.LOAD else 4), 4):
            if word in self.block_size:
                origin |= Origin.BLOCK_SIZE
            elif word in self.grid_size:
                origin |= Origin.GRID_SIZE
            else:
                origin |= Origin.OTHER
        return origin

    def _origins(self) -> list[Origin]:
        """What each result was computed from; memory forgets it, and a lane is no thread of a block."""
        instructions = self.function.instructions
        origin = list(self.own)
        readers: list[list[int]] = [[] for _ in instructions]
        for index, inputs in enumerate(self.inputs):
            for writers in inputs.values():
                for writer in writers:
                    readers[writer].append(index)
        pending = [index for index, found in enumerate(origin) if found]
        while pending:
            index = pending.pop()
            for reader in readers[index]:
                if self.passes[reader] and origin[index] | origin[reader] != origin[reader]:
                    origin[reader] |= origin[index]
                    pending.append(reader)
        return origin

    def _passes(self, index: int) -> bool:
        """Whether the result of an instruction comes from the registers that it reads."""
        instruction = self.function.instructions[index]
        if is_lane(instruction):
            return False
        if instruction.info.opclass is OpcodeClass.LOAD:
            return instruction.info.space is MemorySpace.CONSTANT
        return instruction.info.opclass in _DATA

    def of(self, index: int, register: Register) -> Origin:
        """What a register that an instruction reads was computed from."""
        writers = self.inputs[index].get(register, ())
        result = Origin.NOTHING if writers else self.callers
        for writer in writers:
            result |= self.origin[writer]
        return result

    def _size(self, index: int, operand: Register | str) -> str | None:
        """Which size an operand is, and nothing else: the block's, or the grid's along an axis."""
        if not isinstance(operand, str):
            return BLOCK_SIZE if self.of(index, operand) == Origin.BLOCK_SIZE else self._moved(index, operand)
        match = _CONSTANT.search(operand)
        offset = -1 if match is None else int(match[1] or "0", 16)
        if offset in self.block_size:
            return BLOCK_SIZE
        return GRID_SIZES[(offset - self.grid_size.start) // 4] if offset in self.grid_size else None

    def _moved(self, index: int, register: Register) -> str | None:
        """The grid's size along an axis, where nothing else is moved into a register."""
        writers = self.inputs[index].get(register, frozenset())
        moves = [self.function.instructions[writer] for writer in writers]
        if len(moves) != 1 or moves[0].uses or self.of(index, register) != Origin.GRID_SIZE:
            return None
        return self._size(index, moves[0].operand_texts[-1])

    def use(self) -> ThreadUse:
        """How the function uses its numbers."""
        instructions = self.function.instructions
        axes = {
            axis
            for instruction in instructions
            for axis in "xyz"
            if f"SR_TID.{axis.upper()}" in instruction.operands
        }
        everything = Origin.NOTHING
        for found in self.own:
            everything |= found
        both = Origin.THREAD | Origin.BLOCK
        places = Positions(self.function, self.inputs, self._size)
        strides = [*self._strides()]
        return ThreadUse(
            axes="".join(sorted(axes)),
            flat=places.blocks is None,
            sized=Origin.BLOCK_SIZE in everything,
            sizes=frozenset(places.sizes),
            guarded=any(
                instruction.info.opclass is OpcodeClass.PREDICATE and both in self.origin[index]
                for index, instruction in enumerate(instructions)
            ),
            grid_stride=self._place(index for index, step in strides if Origin.GRID_SIZE in step),
            block_stride=self._place(
                index
                for index, step in strides
                if Origin.BLOCK_SIZE in step and not step & (Origin.GRID_SIZE | Origin.THREAD)
            ),
            tile=self._place(self._tiles()),
            roles=None if places.threads is None else (self.function.id, places.threads),
            waits_for_blocks=self._place(self._spins()),
            teamwork=self._place(
                index
                for index, instruction in enumerate(instructions)
                if instruction.info.opclass in _TEAMS or _is_named_barrier(instruction)
            ),
            cluster=self._place(
                index
                for index, instruction in enumerate(instructions)
                if instruction.info.opclass is OpcodeClass.CLUSTER_BARRIER
                or instruction.info.space is MemorySpace.DISTRIBUTED_SHARED
            ),
            known=self.reaching.complete,
            sums=self._sums(places),
        )

    def _sums(self, places: Positions) -> bool:
        """Whether what goes by threadIdx or blockIdx alone does as the sum over a block of any size.

        A tree in shared memory, whose levels are made of the block's size, and stores of each block's own.
        """
        size, levels = Origin.THREAD | Origin.BLOCK_SIZE, False
        for index, by_thread in places.by_number():
            instruction = self.function.instructions[index]
            opclass, space = instruction.info.opclass, instruction.info.space
            if not by_thread:
                if opclass not in _WRITES or space is not MemorySpace.GLOBAL:
                    return False
                continue
            if opclass is OpcodeClass.PREDICATE:
                registers, own = [*self.inputs[index]], self.own[index]
            elif space is MemorySpace.SHARED and opclass in {OpcodeClass.LOAD, OpcodeClass.STORE}:
                registers, own = [*address_registers(instruction)], Origin.NOTHING
            else:
                return False
            origins = own
            for register in registers:
                origins |= self.of(index, register)
            if origins & ~size or _NUMBER.search(_CONSTANT.sub("", instruction.operands)):
                return False
            levels |= opclass is OpcodeClass.PREDICATE and Origin.BLOCK_SIZE in origins
        return levels and next(self._others_words(), None) is None

    def _others_words(self) -> Iterator[int]:
        """Accesses to shared memory at a place that is neither a thread's nor set."""
        for index, instruction in enumerate(self.function.instructions):
            if instruction.info.space in _SHARED and instruction.info.opclass in _ACCESSES:
                registers = [
                    one for one in address_registers(instruction) if register_file(one) is RegisterFile.GPR
                ]
                if registers and not any(Origin.THREAD in self.of(index, one) for one in registers):
                    yield index

    def _place(self, indices: Iterable[int]) -> CodePlace | None:
        index = next(iter(indices), None)
        return None if index is None else (self.function.id, index)

    def _tiles(self) -> Iterator[int]:
        for index, instruction in enumerate(self.function.instructions):
            info = instruction.info
            shared = info.space in _SHARED or info.opclass is OpcodeClass.ASYNC_COPY
            if not shared or info.opclass not in _ACCESSES:
                continue
            if any(Origin.THREAD in self.of(index, register) for register in address_registers(instruction)):
                yield index

    def _strides(self) -> Iterator[tuple[int, Origin]]:
        """Integer instructions by which a value grows from pass to pass, with what makes its step."""
        readers: dict[int, list[int]] = {}
        for index, inputs in enumerate(self.inputs):
            if self.passes[index] and self.function.loop_of[self.function.block_of[index]] >= 0:
                for writers in inputs.values():
                    for writer in writers:
                        readers.setdefault(writer, []).append(index)
                        readers.setdefault(index, [])
        for component in strongly_connected([*readers], readers):
            cycle = set(component)
            if len(cycle) == 1 and component[0] not in readers[component[0]]:
                continue
            for index in sorted(cycle):
                if self.function.instructions[index].info.opclass not in _COUNTING:
                    continue  # a sum, not a loop's counter
                step = self.own[index]
                for used, writers in self.inputs[index].items():
                    if not writers & cycle:
                        step |= self.of(index, used)
                yield index, step

    def _spins(self) -> Iterator[int]:
        """Loads of what other blocks write, in a loop that they alone end and that does nothing else."""
        function = self.function
        for loop in function.loops:
            inside = [
                index
                for block in sorted(loop.blocks)
                for index in range(function.blocks[block].start, function.blocks[block].end)
            ]
            kinds = {function.instructions[index].info.opclass for index in inside}
            if kinds & _WRITES:
                continue
            yield from (
                index
                for index in inside
                if function.instructions[index].info.opclass is OpcodeClass.LOAD
                and "STRONG" in function.instructions[index].modifiers
            )


def _is_named_barrier(instruction: Instruction) -> bool:
    """A barrier of some warps of a block, or one of several."""
    if instruction.info.opclass is not OpcodeClass.BARRIER:
        return False
    return instruction.operands.strip() not in {"", "0x0"} and instruction.opcode == "BAR"
