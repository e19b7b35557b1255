# SPDX-License-Identifier: Apache-2.0
"""Code that multiplies what it loads: loads for each multiply-add, and how often a value is loaded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import sqrt
from typing import Final

import numpy as np

from gpadvisor.evidence.access_shapes import Lie, access_shape
from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.addresses import Neighbours, neighbours, step_of_pass
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.evidence.measured import executed_threads, executed_warps, metric
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.instruction import Instruction, OpcodeClass, register_name
from gpadvisor.model.machine import SECTOR_BYTES, WARP, CodeForm
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program

_FACTOR_BYTES: Final = {
    "FFMA": 4,
    "FMUL": 4,
    "HFMA2": 4,
    "HMUL2": 4,
    "DFMA": 8,
    "DMUL": 8,
    "FFMA2": 8,
    "FMUL2": 8,
    "IDP": 4,
    "IMAD": 4,
}
"""Multiplications, with the bytes of registers that one factor takes."""
_INTEGER: Final = "IMAD"
"""It also moves, shifts and makes addresses: a product only where both factors are loaded."""
_ADDED: Final = frozenset({"FFMA", "DFMA", "IMAD", "IDP"})
"""Opcodes that add one product to one sum."""
_LONG_SUM: Final = 4
"""Products of each sum from which straight code is an unrolled product of matrices."""
_PASSED_ON: Final = frozenset({OpcodeClass.MOVE, OpcodeClass.CONVERSION})
_PASSING_OPCODES: Final = frozenset({"PRMT", "HADD2", "SHL", "IMAD"})  # unpacking of halves and bytes
_PASSING_ALONE: Final = frozenset({"IADD3", "LOP3", "SHF", "SGXT"})
"""They pass on one register with constants: a field of it, or what a zero point leaves."""
_UNPACKING: Final = frozenset({"PRMT", "SGXT"})
_REGISTER: Final = re.compile(r"\bR(\d+)\b")
_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_HIT_RATE: Final = "l1tex__t_sector_hit_rate.pct"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductLoop:
    """One pass, in all its copies, most of whose multiplications have a factor that the same pass loads.

    A pass is that of an innermost loop, which stands in the code several times where the loop around it is
    unrolled. Loops that are unrolled completely are one pass: all code outside of loops.
    """

    function: Function
    indices: tuple[int, ...]  # all instructions
    products: tuple[int, ...]  # the multiplications with a loaded factor
    loads: tuple[int, ...]  # what brings their factors, but for constants
    factor_bytes: int
    loaded_bytes: int  # by the loads, for each thread
    sums: (
        int | None
    )  # of one copy, that products of two loaded factors are added to; None if not all are such
    copies: int = 1
    constants: tuple[int, ...] = ()  # loads of factors from constant memory, by addresses in registers
    windows: bool = False  # whether neighbouring threads' windows of what they load overlap, as in a filter
    uniform: tuple[int, ...] = ()  # constants that are the same for all threads of a warp

    @property
    def keeps_in_registers(self) -> bool:
        """Whether the next step is more results of a thread, as a tile is there or brings nothing sooner."""
        return self.from_shared or self.windows or self.shares_constants

    @property
    def shares_constants(self) -> bool:
        """Whether most products have a constant that all threads of a warp load, for that product alone."""
        return 2 * self._values(self.uniform) > len(self.products)

    @property
    def integer(self) -> bool:
        """Whether integers are multiplied."""
        return {self.function.instructions[index].opcode for index in self.products} <= {_INTEGER, "IDP"}

    @property
    def bytes_alone(self) -> bool:
        """Whether each multiplication is of one byte by another."""
        return self.integer and self.factor_bytes == 1

    @property
    def values_per_product(self) -> float:
        """Factors loaded for each multiplication: 2 where nothing is kept, 2 / r for a tile of r by r."""
        loaded = self.loaded_bytes / self.factor_bytes + self._values(self.constants)
        return loaded / len(self.products)

    @property
    def values_per_load(self) -> float:
        """Factors that one load instruction brings."""
        return self.loaded_bytes / self.factor_bytes / len(self.loads)

    def _values(self, loads: Sequence[int]) -> float:
        """The factors that some loads bring; one narrower than a register is one."""
        widths = (self.function.instructions[index].width_bytes or 4 for index in loads)
        return sum(max(1.0, width / self.factor_bytes) for width in widths)

    @property
    def tile(self) -> tuple[int, int] | None:
        """The edges of a thread's tile of results, the smaller first: r * c sums from r + c values a step."""
        if not self.sums or len(self.products) % self.sums:
            return None
        values = self.values_per_product * self.sums
        apart = values * values / 4 - self.sums
        less = round(values / 2 - sqrt(max(0.0, apart)))
        if less < 1 or self.sums % less or less + self.sums // less != values:
            return None
        return less, self.sums // less

    @property
    def from_shared(self) -> bool:
        """Whether most loads are from shared memory."""
        shared = sum(is_shared(self.function.instructions[index]) for index in self.loads)
        return 2 * shared > len(self.loads)


@lru_cache(maxsize=4)
def product_loops(
    program: Program, kernel: str, profile: KernelProfile | None = None
) -> tuple[ProductLoop, ...]:
    """Loops of products, of a kernel and the functions it calls; of what was counted only the code that ran.

    Where the compiler's copies of a loop for many passes never run, the loop around them is the innermost.
    """
    return tuple(_product_loops(program, kernel, profile))


def _product_loops(program: Program, kernel: str, profile: KernelProfile | None) -> Iterator[ProductLoop]:
    for function in kernel_functions(program, kernel):
        executed = executed_warps(profile, function)
        ran = np.ones(len(function.instructions)) if executed is None or not executed.any() else executed
        inside = {
            loop.id: tuple(index for index in loop_facts(function, loop.id).indices if ran[index])
            for loop in function.loops
        }
        parents = {loop.parent for loop in function.loops if inside[loop.id]}
        alike: dict[tuple[object, ...], list[ProductLoop]] = {}
        for loop in function.loops:
            if loop.id not in parents and inside[loop.id]:
                product_loop = _product_loop(function, inside[loop.id])
                if product_loop is not None:
                    alike.setdefault((loop.parent, *_form(product_loop)), []).append(product_loop)
        looped = {index for loop in function.loops for index in loop_facts(function, loop.id).indices}
        outside = tuple(position for position in range(len(ran)) if ran[position] and position not in looped)
        product_loop = _product_loop(function, outside, rounds=1)
        if (
            product_loop is not None
            and product_loop.sums
            and len(product_loop.products) >= _LONG_SUM * product_loop.sums
        ):
            first, last = product_loop.loads[0], product_loop.products[-1]
            yield replace(
                product_loop, indices=tuple(index for index in product_loop.indices if first <= index <= last)
            )
        yield from map(_together, alike.values())


def _form(loop: ProductLoop) -> tuple[object, ...]:
    """What copies of one pass have alike."""
    return len(loop.products), len(loop.loads), loop.factor_bytes, loop.loaded_bytes, loop.sums


def _together(copies: Sequence[ProductLoop]) -> ProductLoop:
    return replace(
        copies[0],
        indices=tuple(index for copy in copies for index in copy.indices),
        products=tuple(index for loop in copies for index in loop.products),
        loads=tuple(index for product_loop in copies for index in product_loop.loads),
        constants=tuple(index for copy in copies for index in copy.constants),
        loaded_bytes=sum(copy.loaded_bytes for copy in copies),
        copies=len(copies),
    )


@lru_cache(maxsize=256)
def _product_loop(function: Function, indices: tuple[int, ...], *, rounds: int = 2) -> ProductLoop | None:
    writer: dict[int, int] = {}
    # The second time round a loop, what a register holds from the pass before is known.
    for _ in range(rounds):
        products: dict[int, frozenset[int]] = {}
        sources: dict[int, frozenset[int]] = {}  # per instruction the loads it passes on
        multiplications, paired = 0, True
        for index in indices:
            instruction = function.instructions[index]
            operands = instruction.operand_texts
            factors = operands[1:3] if instruction.opcode in _FACTOR_BYTES else []
            loaded = [_loads(function, [factor], writer, sources) for factor in factors]
            if loaded and (instruction.opcode != _INTEGER or all(loaded)):
                multiplications += 1
                if any(loaded):
                    products[index] = frozenset().union(*loaded)
                    paired = paired and all(loaded)
            elif _passes_on(instruction, operands):
                sources[index] = _loads(function, operands[1:], writer, sources)
            for register in instruction.defs:
                writer[register] = index
    if not products or 2 * len(products) < multiplications:
        return None
    brought = sorted(frozenset().union(*products.values()))
    constants = tuple(index for index in brought if _is_constant(function.instructions[index]))
    loads = tuple(index for index in brought if index not in constants)
    if not loads:
        return None
    return ProductLoop(
        function=function,
        indices=indices,
        products=tuple(products),
        loads=loads,
        constants=constants,
        factor_bytes=_factor_bytes(function, products, loads, sources),
        sums=_sums(function, indices, products) if paired else None,
        loaded_bytes=sum(function.instructions[index].width_bytes or 4 for index in loads),
    )


def _passes_on(instruction: Instruction, operands: Sequence[str]) -> bool:
    if instruction.info.opclass in _PASSED_ON or instruction.opcode in _PASSING_OPCODES:
        return True
    if instruction.opcode not in _PASSING_ALONE:
        return False
    return len({number for operand in operands[1:] for number in _registers(operand)}) == 1


@lru_cache(maxsize=1 << 12)
def _registers(operand: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _REGISTER.findall(operand))


def _factor_bytes(
    function: Function,
    products: Collection[int],
    loads: Collection[int],
    sources: Mapping[int, frozenset[int]],
) -> int:
    """The bytes of a factor: of integers those of the narrowest load, or one where loads are unpacked."""
    opcodes = {function.instructions[index].opcode for index in products}
    if opcodes != {_INTEGER}:
        return max(_FACTOR_BYTES[opcode] for opcode in opcodes)
    if any(of and function.instructions[index].opcode in _UNPACKING for index, of in sources.items()):
        return 1
    return min(_FACTOR_BYTES[_INTEGER], *(function.instructions[index].width_bytes or 4 for index in loads))


def _sums(function: Function, indices: tuple[int, ...], products: Collection[int]) -> int | None:
    """How many sums some products are added to: those whose result no later product of a pass adds to."""
    last: dict[str, int] = {}
    ends = set(products)
    for index in indices:
        instruction = function.instructions[index]
        operands = [part.removesuffix(".reuse") for part in instruction.operand_texts]
        if index in ends:
            if instruction.opcode not in _ADDED:
                return None
            ends.discard(last.get(operands[3], -1))
        for register in instruction.defs:
            last.pop(register_name(register), None)
        if index in products:
            last[operands[0]] = index
    return len(ends)


def _loads(
    function: Function, operands: list[str], writer: dict[int, int], sources: dict[int, frozenset[int]]
) -> frozenset[int]:
    """The loads from shared, device or constant memory that the registers of some operands come from."""
    result: set[int] = set()
    for number in chain.from_iterable(map(_registers, operands)):
        index = writer.get(number)
        if index is None:
            continue
        instruction = function.instructions[index]
        if _is_constant(instruction) or (
            instruction.info.opclass is OpcodeClass.LOAD
            and (is_shared(instruction) or is_global(instruction))
        ):
            result.add(index)
        else:
            result.update(sources.get(index, ()))
    return frozenset(result)


def _is_constant(instruction: Instruction) -> bool:
    """Whether an instruction loads from constant memory by an address that is computed."""
    return instruction.opcode == "LDC" and bool(instruction.uses)


def with_sharing(loop: ProductLoop, form: CodeForm, profile: KernelProfile) -> ProductLoop:
    """The loop with what neighbouring threads share of what they load from device and constant memory.

    Of windows, which a filter or stencil moves by what a neighbour is ahead, and of constants that are the
    same for a warp, a tile in shared memory brings no more than L1 has already; registers do.
    """
    function, launch = loop.function, profile.launch
    uniform = tuple(
        index
        for index in loop.constants
        for shape in (access_shape(function, index, form, launch),)
        if shape.lie is Lie.SAME and shape.run == WARP
    )
    beside = {index: run for run in neighbours(function) for index in run.indices}
    shapes = {
        index: access_shape(function, index, form, launch)
        for index in loop.loads
        if not is_shared(function.instructions[index])
    }
    known = [(index, shape) for index, shape in shapes.items() if shape.lie is Lie.NEIGHBOURS]
    for index, shape in known:
        run = beside.get(index)
        moves = run.width_bytes if run is not None else abs(step_of_pass(function, index) or 0)
        if moves == shape.distance:
            return replace(loop, windows=True, uniform=uniform)
    unknown = [index for index, shape in shapes.items() if shape.lie in {Lie.UNKNOWN, Lie.ROWS}]
    overlap = [index for index in unknown if _overlaps(function, profile, index, beside.get(index))]
    return replace(loop, windows=not known and 2 * len(overlap) > len(unknown), uniform=uniform)


def _overlaps(function: Function, profile: KernelProfile, index: int, run: Neighbours | None) -> bool:
    """Whether a load takes fewer sectors than it would if the runs of a warp's threads lay side by side.

    Where threads were not counted, half of a warp's.
    """
    executed, counted = executed_warps(profile, function), executed_threads(profile, function)
    sectors = metric(profile, _SECTORS, function)
    if run is None or executed is None or sectors is None:
        return False
    threads = WARP / 2 * executed[index] if counted is None else counted[index]
    apart = min(len(run.indices) * run.width_bytes, SECTOR_BYTES)
    return bool(sectors[index] * SECTOR_BYTES < threads * apart)


def times_loaded(program: Program, profile: KernelProfile, loop: ProductLoop) -> float | None:
    """How often, over all threads, each value of a loop's loads is loaded; None where nothing was counted.

    From shared memory: bytes read over bytes written to it. From device memory: bytes that the threads asked
    for over those that L1 did not have, which is as often as a tile in shared memory could serve them.
    """
    kernel = loop.function.name
    executed = executed_warps(profile, loop.function)
    if executed is None:
        return None
    if loop.from_shared:
        read = sum(
            _bytes(product_loop.function, counts, product_loop.loads)
            for product_loop in product_loops(program, kernel, profile)
            if product_loop.from_shared
            and (counts := executed_warps(profile, product_loop.function)) is not None
        )
        written = sum(
            _bytes(function, counts, _shared_writes(function))
            for function in program.functions
            if (counts := executed_warps(profile, function)) is not None
        )
        return read / written if written else None
    read = _bytes(loop.function, executed, loop.loads)
    hits = profile.metric(_HIT_RATE)
    traffic = kernel_traffic(program, kernel, profile)
    sectors = metric(profile, _SECTORS, loop.function)
    if hits is None or traffic is None or sectors is None:
        return None
    missed = float(sectors[list(loop.loads)].sum()) * SECTOR_BYTES * (1 - hits / 100)
    return read / missed if missed > 0 else None


def _bytes(function: Function, executed: np.ndarray, indices: tuple[int, ...]) -> float:
    widths = [function.instructions[index].width_bytes or 4 for index in indices]
    return float(WARP * (executed[list(indices)] * widths).sum()) if indices else 0.0


def _shared_writes(function: Function) -> tuple[int, ...]:
    return tuple(
        index
        for index, instruction in enumerate(function.instructions)
        if (instruction.info.opclass is OpcodeClass.STORE and is_shared(instruction))
        or instruction.opcode == "LDGSTS"
    )
