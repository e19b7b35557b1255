# SPDX-License-Identifier: Apache-2.0
"""Which registers an instruction writes and reads (GPA section IV: defs and uses of the backward slice)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.instruction import MemorySpace, OpcodeInfo, Register, RegisterFile
from gpadvisor.sass.matrix import Fragments, fragments, warpgroup_fragments
from gpadvisor.sass.texture import FETCHES, fetch_registers
from gpadvisor.sass.tokens import Address, Operand, OperandKind, span
from gpadvisor.sass.widths import data_registers, operand_widths

_P = OperandKind.PREDICATE
_LAST_PREDICATE = 7


@dataclass(frozen=True, slots=True)
class Accesses:
    """Registers written and read by the operands; the guard is not among them."""

    defs: tuple[Register, ...]
    uses: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What the operand rules need to know about one mnemonic."""

    arch: int  # 86
    base: str
    modifiers: tuple[str, ...]
    info: OpcodeInfo


NO_DESTINATION: Final = frozenset(
    {
        "BAR", "BPT", "BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "CCTL", "CCTLL", "CCTLT", "DEPBAR",
        "ENDCOLLECTIVE", "ERRBAR", "EXIT", "FENCE", "JMP", "JMX", "JMXU", "KIL", "KILL", "LDGSTS", "MEMBAR",
        "NANOSLEEP", "NOP", "PMTRIG", "PREEXIT", "R2B", "RED", "REDAS", "REDG", "REDS", "RET", "RTT", "SETCTAID",
        "SETFPFLAGS", "SETLMEMBASE", "ST", "STAS", "STG", "STL", "STS", "STSM", "STTM", "SUCCTL", "SURED", "SUST",
        "UREDGR", "USTGR", "UTCBAR", "WARPSYNC", "YIELD", "UVIRTCOUNT", "USETSHMSZ", "AST", "OUT", "STP", "STT",
    }
)  # fmt: skip
_TWO_PREDICATES: Final = frozenset(
    {
        "ISETP", "FSETP", "DSETP", "HSETP2", "PSETP", "PLOP3", "VSETP", "CSETP", "CSMTEST", "UISETP", "UFSETP",
        "UPSETP", "UPLOP3",
    }
)  # fmt: skip
_CARRY_OUT: Final = frozenset(
    {
        "IADD", "IADD3", "LEA", "IMAD", "IMNMX", "VIADD", "VIMNMX", "VIMNMX3", "VIADDMNMX", "UIADD3", "UIADD", "ULEA",
        "UIMAD", "UIMNMX", "UVIMNMX", "UVIADD", "B2R",
    }
)  # fmt: skip
_TWO_RESULTS: Final = FETCHES | {"LDG", "LD"}  # a second register before the address belongs to 256-bit loads
_VOTES: Final = frozenset({"VOTE", "VOTEU", "VOTE_VTG"})
_WARPGROUP_MATRIX: Final = frozenset({"HGMMA", "QGMMA", "IGMMA", "BGMMA"})
_MATRIX: Final = frozenset({"HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA", "MXQMMA"})


def accesses(form: Form, operands: Sequence[Operand], hidden: Register | None) -> Accesses:
    """Registers that the operands write and read.

    ``hidden`` is the first of a pair of uniform registers that the encoding names and the text does not.
    """
    special = _special(form, operands)
    found = special if special is not None else _regular(form, operands)
    if hidden is None:
        return found
    return Accesses(found.defs, (*found.uses, hidden, Register(hidden + 1)))


def _special(form: Form, operands: Sequence[Operand]) -> Accesses | None:
    base = form.base
    if not form.info.known:
        return _conservative(operands)
    if base in _MATRIX:
        sizes = fragments(base, form.modifiers)
        return None if sizes is None else _matrix(sizes, operands)
    if base in _WARPGROUP_MATRIX:
        sizes = warpgroup_fragments(base, form.modifiers)
        return None if sizes is None else _warpgroup_matrix(sizes, form, operands)
    if base in FETCHES:
        return _accesses(*fetch_registers(base, form.modifiers, operands, len(destinations(base, operands))))
    if base in ("R2P", "P2R", "UR2UP", "UP2UR"):
        return _predicate_pack(form, operands)
    return None


def _conservative(operands: Sequence[Operand]) -> Accesses:
    """An unknown opcode: the first register operand is written, everything else is read."""
    first = next((i for i, operand in enumerate(operands) if operand.is_register), None)
    defs = () if first is None else operands[first].registers()
    return _accesses(
        defs,
        (register for i, operand in enumerate(operands) if i != first for register in _plain_uses(operand)),
    )


def _plain_uses(operand: Operand) -> tuple[Register, ...]:
    if operand.addresses:
        return tuple(register for address in operand.addresses for register in _span(address, 1))
    return operand.registers()


def _accesses(defs: Iterable[Register], uses: Iterable[Register]) -> Accesses:
    return Accesses(tuple(dict.fromkeys(defs)), tuple(dict.fromkeys(uses)))


# ---- regular opcodes: destinations first, widths by opcode -----------------------------------------------------


def destinations(base: str, operands: Sequence[Operand]) -> tuple[int, ...]:
    """Positions of the operands that are written."""
    if base in NO_DESTINATION:
        return ()
    leading = 0
    while leading < len(operands) and operands[leading].is_predicate:
        leading += 1
    if base in _TWO_PREDICATES:
        return tuple(range(min(leading, 2)))
    if base == "FCHK":
        return (0,)
    if base in _VOTES:
        return (0,) if leading else (0, 1)
    if leading >= len(operands) or not operands[leading].is_register:
        return tuple(range(min(leading, 1)))
    end = leading + 1
    if base in _CARRY_OUT:
        while end < len(operands) and operands[end].is_predicate:
            end += 1
    elif base in _TWO_RESULTS and end < len(operands) and operands[end].is_register:
        end += 1
    return tuple(range(end))


def _regular(form: Form, operands: Sequence[Operand]) -> Accesses:
    written = destinations(form.base, operands)
    sources = [i for i in range(len(operands)) if i not in written]
    register_sources = sum(operands[i].kind not in _NOT_DATA for i in sources)
    to_widths, from_widths = operand_widths(form.base, form.modifiers, register_sources, form.info)
    defs: list[Register] = []
    uses: list[Register] = []
    data = 0
    for i, operand in enumerate(operands):
        if i in written:
            defs.extend(operand.registers(_at(to_widths, 0) if operand.is_register else 1))
        elif operand.kind in (OperandKind.MEMORY, OperandKind.DESCRIPTOR, OperandKind.CONSTANT):
            uses.extend(_memory(form, operand, i))
            data += operand.kind is OperandKind.CONSTANT
        elif operand.is_register:
            single = operand.file is RegisterFile.UNIFORM and form.base in _SURFACE_ACCESSES
            uses.extend(operand.registers(1 if single else _at(from_widths, data)))
            data += 1
        elif operand.is_predicate:
            uses.extend(operand.registers())
        elif operand.kind is OperandKind.IMMEDIATE:
            data += 1
    return _accesses(defs, uses)


_NOT_DATA: Final = frozenset(
    {
        OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE, OperandKind.MEMORY, OperandKind.DESCRIPTOR,
        OperandKind.SPECIAL, OperandKind.PREDICATE_SET, OperandKind.UNIFORM_PREDICATE_SET,
    }
)  # fmt: skip


def _at(widths: Sequence[int], position: int) -> int:
    return widths[min(position, len(widths) - 1)] if widths else 1


# ---- addresses -------------------------------------------------------------------------------------------------


def _span(address: Address, count: int) -> tuple[Register, ...]:
    return span(address.file, address.index, count)


def _memory(form: Form, operand: Operand, position: int) -> list[Register]:
    registers: list[Register] = []
    for address in operand.addresses:
        registers.extend(_span(address, _address_width(form, operand, address, position)))
    return registers


def _address_width(form: Form, operand: Operand, address: Address, position: int) -> int:
    uniform = address.file is RegisterFile.UNIFORM
    if address.role == "desc":
        return 2
    if form.base == "LDGSTS" and position == 0 and address.group == 0:
        return 1  # the place in shared memory
    if operand.kind is OperandKind.CONSTANT:
        return 2 if address.role == "cx" and uniform else 1
    if operand.kind is OperandKind.DESCRIPTOR:
        return _descriptor_width(form, operand, address)
    if form.base in _BULK:
        return _bulk_width(form, position)
    if form.base in _SURFACE_ACCESSES:
        return _surface_coordinates(form)
    if address.wide:
        return 2
    if address.narrow:
        return 1
    return 2 if "E" in form.modifiers else 1


def _descriptor_width(form: Form, operand: Operand, address: Address) -> int:
    if address.role == "gdesc":
        return 4 if form.base.endswith("GMMA") else 2
    return 1


_SURFACE_ACCESSES: Final = frozenset({"SULD", "SUST", "SUATOM", "SURED", "SUQUERY"})
_BULK: Final = frozenset(
    {"UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACCTL", "UBLKCP", "UBLKRED", "UBLKPF"}
)
_PLACES: Final = {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1, "UTMAPF": 0}
"""Uniform registers before the coordinates: the place in shared memory, and the barrier of loads."""


def _bulk_width(form: Form, position: int) -> int:
    """Registers of one address of a bulk copy; shared memory takes one, global memory a pair."""
    if form.base in _PLACES:
        return _PLACES[form.base] + _dimensions(form) if position == 0 else 2
    if position == 0 or form.base in ("UBLKPF", "UTMACCTL"):
        return 2  # global, or shared with its barrier
    return 1 if form.modifiers[:2] == ("G", "S") else 2


def _dimensions(form: Form) -> int:
    return next((int(modifier[0]) for modifier in form.modifiers if modifier in ("1D", "2D", "3D", "4D", "5D")), 1)


_SURFACES: Final = {"1D": 1, "2D": 2, "3D": 3, "1D_ARRAY": 2, "2D_ARRAY": 3, "ARRAY_1D": 2, "ARRAY_2D": 3}


def _surface_coordinates(form: Form) -> int:
    return next((count for name, count in _SURFACES.items() if name in form.modifiers), 1)


# ---- irregular opcodes -----------------------------------------------------------------------------------------


def _matrix(sizes: Fragments, operands: Sequence[Operand]) -> Accesses:
    widths = (sizes.d, sizes.a, sizes.b, sizes.c)
    registers = [operand.registers(widths[i] if i < len(widths) else 1) for i, operand in enumerate(operands)]
    return _accesses(registers[0] if registers else (), (r for group in registers[1:] for r in group))


def _warpgroup_matrix(sizes: Fragments, form: Form, operands: Sequence[Operand]) -> Accesses:
    """D, then A in registers or in the descriptor, then C where it is printed."""
    defs = operands[0].registers(sizes.d) if operands else ()
    uses: list[Register] = []
    descriptor = False
    for position, operand in enumerate(operands[1:], start=1):
        if operand.kind is OperandKind.DESCRIPTOR:
            uses.extend(_memory(form, operand, position))
            descriptor = True
        elif operand.kind is OperandKind.GPR:
            uses.extend(operand.registers(sizes.c if descriptor else sizes.a))
        else:
            uses.extend(operand.registers())
    return _accesses(defs, uses)


def _predicate_pack(form: Form, operands: Sequence[Operand]) -> Accesses:
    """R2P writes the predicates of its mask, P2R reads those of its mask."""
    file = RegisterFile.UNIFORM_PREDICATE if form.base.startswith("U") else RegisterFile.PREDICATE
    values = [operand.value for operand in operands if operand.value is not None]
    mask = values[-1] if values else 0x7F
    masked = tuple(r for i in range(_LAST_PREDICATE) if mask >> i & 1 for r in span(file, i, 1))
    if form.base in ("R2P", "UR2UP"):
        return _accesses(
            masked, (r for operand in operands for r in operand.registers() if operand.is_register)
        )
    first = operands[0].registers() if operands else ()
    rest = (r for operand in operands[1:] if operand.is_register for r in operand.registers())
    return _accesses(first, (*rest, *masked))


# ---- what only the encoding tells ------------------------------------------------------------------------------

_HIDDEN_ARCHITECTURES: Final = frozenset({80, 86, 87, 88, 89})
_NO_UNIFORM: Final = 63


def hides_descriptor(form: Form) -> bool:
    """Whether the encoding may name a pair of uniform registers that the text leaves out."""
    return form.arch in _HIDDEN_ARCHITECTURES and form.info.space in (MemorySpace.GLOBAL, MemorySpace.GENERIC)


def hidden_descriptor(form: Form, operands: str, low: int, high: int) -> Register | None:
    """The first of the pair that describes a 64-bit address on sm_80 to sm_89."""
    if ".64" not in operands or "desc[" in operands:
        return None
    index = low >> 32 & 63 if form.base in ("LDG", "LD") else high & 63
    return None if index == _NO_UNIFORM else Register(RegisterFile.UNIFORM.value * 256 + index)


def memory_data_registers(form: Form) -> int:
    """Registers of the data operand of a memory access."""
    return data_registers(form.modifiers)
