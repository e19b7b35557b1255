# SPDX-License-Identifier: Apache-2.0
"""Which registers an instruction writes and reads (GPA section IV: defs and uses of the backward slice)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gpadvisor.model.instruction import Register, RegisterFile, register
from gpadvisor.sass.addresses import Form, address_registers
from gpadvisor.sass.matrix import Fragments, fragments, warpgroup_fragments
from gpadvisor.sass.texture import FETCHES, fetch_registers
from gpadvisor.sass.tokens import Operand, OperandKind, span
from gpadvisor.sass.widths import operand_widths

_PREDICATES = 7
_IN_BRACKETS = (OperandKind.MEMORY, OperandKind.DESCRIPTOR, OperandKind.CONSTANT)


class Accesses(NamedTuple):
    """Registers written and read by the operands; the guard is not among them."""

    defs: tuple[Register, ...]
    uses: tuple[Register, ...]


NO_DESTINATION: Final = frozenset(
    {
        "AST", "BAR", "BPT", "BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "CCTL", "CCTLL",
        "CCTLT", "DEPBAR", "ENDCOLLECTIVE", "ERRBAR", "EXIT", "FENCE", "JMP", "JMX", "JMXU", "KIL",
        "KILL", "LDGSTS", "MEMBAR", "NANOSLEEP", "NOP", "OUT", "PMTRIG", "PREEXIT", "R2B", "RED", "REDAS",
        "REDG", "REDS", "RET", "RTT", "SETCTAID", "SETFPFLAGS", "SETLMEMBASE", "ST", "STAS", "STG", "STL",
        "STP", "STS", "STSM", "STT", "STTM", "SUCCTL", "SURED", "SUST", "WARPSYNC", "YIELD", "UREDGR",
        "USETSHMSZ", "USTGR", "UTCBAR", "UVIRTCOUNT",
    }
)  # fmt: skip
_TWO_PREDICATES: Final = frozenset(
    {
        "CSETP", "CSMTEST", "DSETP", "FSETP", "HSETP2", "ISETP", "PLOP3", "PSETP", "VSETP", "UFSETP",
        "UISETP", "UPLOP3", "UPSETP",
    }
)  # fmt: skip
_CARRY_OUT: Final = frozenset(
    {
        "B2R", "IADD", "IADD3", "IMAD", "IMNMX", "LEA", "VIADD", "VIADDMNMX", "VIMNMX", "VIMNMX3",
        "UIADD", "UIADD3", "UIMAD", "UIMNMX", "ULEA", "UVIADD", "UVIMNMX",
    }
)  # fmt: skip
_TWO_RESULTS: Final = FETCHES | {"LDG", "LD"}  # a second register before the address belongs to 256-bit loads
_VOTES: Final = frozenset({"VOTE", "VOTEU", "VOTE_VTG"})
_MATRIX: Final = frozenset({"BMMA", "DMMA", "HMMA", "IMMA", "MXQMMA", "OMMA", "QMMA"})
_WARPGROUP_MATRIX: Final = frozenset({"BGMMA", "HGMMA", "IGMMA", "QGMMA"})
_TO_PREDICATES: Final = frozenset({"R2P", "UR2UP"})
_FROM_PREDICATES: Final = frozenset({"P2R", "UP2UR"})


def accesses(form: Form, operands: Sequence[Operand], hidden: Register | None) -> Accesses:
    """Registers that the operands write and read.

    ``hidden`` is the first of a pair of uniform registers that the encoding names and the text does not.
    """
    result = _special(form, operands) or _regular(form, operands)
    if hidden is None:
        return result
    return _accesses(result.defs, (*result.uses, hidden, Register(hidden + 1)))


def _accesses(defs: Iterable[Register], uses: Iterable[Register]) -> Accesses:
    """Each register once, in order: the tool forms print the same operands in different ways."""
    return Accesses(tuple(sorted(set(defs))), tuple(sorted(set(uses))))


def _special(form: Form, operands: Sequence[Operand]) -> Accesses | None:
    """The accesses of an irregular opcode; None for a regular one."""
    base, modifiers = form.base, form.modifiers
    if not form.info.known:
        return _conservative(operands)
    if base in FETCHES:
        return _accesses(*fetch_registers(base, modifiers, operands, len(destinations(base, operands))))
    if base in _TO_PREDICATES:
        return _to_predicates(form, operands)
    if base in _FROM_PREDICATES:
        return _from_predicates(form, operands)
    if base in _MATRIX:
        sizes = fragments(base, modifiers)
        return None if sizes is None else _matrix(sizes, operands)
    if base in _WARPGROUP_MATRIX:
        sizes = warpgroup_fragments(base, modifiers)
        return None if sizes is None else _warpgroup_matrix(sizes, form, operands)
    return None


# ---- regular opcodes: destinations first, widths by opcode ----


def destinations(base: str, operands: Sequence[Operand]) -> range:
    """Positions of the operands that are written; they always come first."""
    if base in NO_DESTINATION:
        return range(0)
    leading = 0
    while leading < len(operands) and operands[leading].is_predicate:
        leading += 1
    if base in _TWO_PREDICATES:
        return range(min(leading, 2))
    if base == "FCHK" or (base in _VOTES and leading):
        return range(1)
    if base in _VOTES:
        return range(2)
    if leading >= len(operands) or not operands[leading].is_register:
        return range(min(leading, 1))
    return range(_after_result(base, operands, leading + 1))


def _after_result(base: str, operands: Sequence[Operand], end: int) -> int:
    """The first source, behind carries or a second result."""
    if base in _CARRY_OUT:
        while end < len(operands) and operands[end].is_predicate:
            end += 1
    elif base in _TWO_RESULTS and end < len(operands) and operands[end].is_register:
        end += 1
    return end


def _regular(form: Form, operands: Sequence[Operand]) -> Accesses:
    written = destinations(form.base, operands)
    widths = operand_widths(form.base, form.modifiers, form.info)
    defs: list[Register] = []
    uses: list[Register] = []
    data = 0  # data sources so far, constants and immediates included
    for position, operand in enumerate(operands):
        if position in written:
            defs += operand.registers(widths.result if operand.is_register else 1)
        elif operand.kind in _IN_BRACKETS:
            uses += address_registers(form, operand, position)
            data += operand.kind is OperandKind.CONSTANT
        elif operand.is_register:
            uses += operand.registers(widths.source(data))
            data += 1
        elif operand.is_predicate:
            uses += operand.registers()
        elif operand.kind is OperandKind.IMMEDIATE:
            data += 1
    return _accesses(defs, uses)


# ---- irregular opcodes ----


def _conservative(operands: Sequence[Operand]) -> Accesses:
    """An unknown opcode: the first register operand is written, everything else is read."""
    first = next((operand for operand in operands if operand.is_register), None)
    uses = (
        name
        for operand in operands
        if operand is not first
        for name in (
            *operand.registers(),
            *(part for place in operand.addresses for part in span(place.first, 1)),
        )
    )
    return _accesses(() if first is None else first.registers(), uses)


def _to_predicates(form: Form, operands: Sequence[Operand]) -> Accesses:
    """R2P: writes the predicates of its mask."""
    return _accesses(
        _masked(form, operands),
        (r for operand in operands if operand.is_register for r in operand.registers()),
    )


def _from_predicates(form: Form, operands: Sequence[Operand]) -> Accesses:
    """P2R: reads the predicates of its mask."""
    merged = (r for operand in operands[1:] if operand.is_register for r in operand.registers())
    return _accesses(operands[0].registers() if operands else (), (*merged, *_masked(form, operands)))


def _masked(form: Form, operands: Sequence[Operand]) -> list[Register]:
    file = RegisterFile.UNIFORM_PREDICATE if form.base.startswith("U") else RegisterFile.PREDICATE
    values = [operand.value for operand in operands if operand.value is not None]
    mask = values[-1] if values else (1 << _PREDICATES) - 1
    return [register(file, i) for i in range(_PREDICATES) if mask >> i & 1]


def _matrix(sizes: Fragments, operands: Sequence[Operand]) -> Accesses:
    """D, A, B, C, then metadata and scales of one register each."""
    widths = (sizes.d, sizes.a, sizes.b, sizes.c)
    registers = [
        operand.registers(widths[i] if i < len(widths) and operand.is_register else 1)
        for i, operand in enumerate(operands)
    ]
    return _accesses(registers[0] if registers else (), (r for group in registers[1:] for r in group))


def _warpgroup_matrix(sizes: Fragments, form: Form, operands: Sequence[Operand]) -> Accesses:
    """D, then A in registers or in the descriptor, then C where it is printed."""
    defs = operands[0].registers(sizes.d) if operands else ()
    uses: list[Register] = []
    described = False
    for position, operand in enumerate(operands[1:], start=1):
        if operand.kind is OperandKind.DESCRIPTOR:
            uses += address_registers(form, operand, position)
            described = True
        else:
            uses += operand.registers((sizes.c if described else sizes.a) if operand.is_register else 1)
    return _accesses(defs, uses)
