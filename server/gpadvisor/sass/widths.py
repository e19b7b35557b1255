# SPDX-License-Identifier: Apache-2.0
"""How many 32-bit registers each operand of an opcode covers, and how many bytes a memory access moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gpadvisor.model.instruction import MemorySpace, OpcodeInfo

Modifiers = Sequence[str]

_DATA_REGISTERS: Final = {
    "64": 2, "U64": 2, "S64": 2, "F64": 2, "F32x2": 2, "96": 3, "128": 4, "F32x4": 4, "256": 8,
}  # fmt: skip
_BYTES: Final = {
    "U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "F16": 2, "BF16": 2,
    "32": 4, "F16x2": 4, "BF16x2": 4, "F16x4": 8, "F16x8": 16, "BF16x4": 8, "BF16x8": 16,
    "64": 8, "U64": 8, "S64": 8, "F64": 8, "F32x2": 8, "96": 12, "128": 16, "F32x4": 16, "256": 32,
}  # fmt: skip
_WORD_BYTES: Final = 4

_PAIR_MODIFIERS: Final = frozenset({"64", "U64", "S64"})
_PAIRED_BY_MODIFIER: Final = frozenset(
    {
        "BMOV", "IABS", "IADD", "IADD3", "IMNMX", "ISETP", "LOP3", "MOV", "R2UR", "SEL", "VIADD", "VIMNMX",
        "UIABS", "UIADD", "UIADD3", "UIMNMX", "UISETP", "ULOP3", "UMOV", "USEL", "UVIADD", "UVIMNMX",
    }
)  # fmt: skip
_ALWAYS_PAIRS: Final = frozenset({"DADD", "DFMA", "DMUL", "DMNMX", "DSETP", "FADD2", "FFMA2", "FMUL2"})
_CODE_ADDRESS: Final = frozenset({"CALL", "RET", "BRX", "BRXU", "JMX", "JMXU", "LEPC", "ULEPC", "RTT"})
_SIZELESS: Final = frozenset({"CCTL", "CCTLL", "CCTLT", "QSPC", "SYNCS"})


class Widths(NamedTuple):
    """Registers of each destination, and of the sources in order; the last number repeats."""

    result: int
    sources: tuple[int, ...]

    def source(self, position: int) -> int:
        """Registers of one source."""
        return self.sources[min(position, len(self.sources) - 1)]


def _same(width: int) -> Widths:
    return Widths(width, (width,))


def operand_widths(base: str, modifiers: Modifiers, info: OpcodeInfo) -> Widths:
    """Registers per operand of a regular opcode."""
    special = _BY_OPCODE.get(base)
    if special is not None:
        return special(modifiers)
    if base in _ALWAYS_PAIRS or base in _CODE_ADDRESS:
        return _same(2)
    if base in _PAIRED_BY_MODIFIER:
        return _same(_pair(modifiers))
    return _same(data_registers(modifiers) if info.space is not None else 1)


def data_registers(modifiers: Modifiers) -> int:
    """Registers per data operand of a memory access."""
    if "ENL2" in modifiers:  # 256 bits in two operands of 128
        return 4
    return max((_DATA_REGISTERS.get(modifier, 1) for modifier in modifiers), default=1)


def matrix_count(modifiers: Modifiers) -> int:
    """Matrices that LDSM and STSM move: the trailing 1, 2 or 4."""
    last_modifier = modifiers[-1] if modifiers else ""
    return int(last_modifier) if last_modifier in ("1", "2", "4") else 1


def access_bytes(base: str, modifiers: Modifiers, info: OpcodeInfo) -> int | None:
    """Bytes per thread of a memory access; None where there is none or the text does not tell."""
    if info.space in (None, MemorySpace.TEXTURE, MemorySpace.TENSOR) or base in _SIZELESS:
        return None
    if base in ("LDSM", "STSM"):
        return _WORD_BYTES * matrix_count(modifiers)
    if base.startswith("U") and base != "ULDC":
        return None
    return max((_BYTES[modifier] for modifier in modifiers if modifier in _BYTES), default=_WORD_BYTES)


def _pair(modifiers: Modifiers) -> int:
    return 1 if _PAIR_MODIFIERS.isdisjoint(modifiers) else 2


def _multiply_add(modifiers: Modifiers) -> Widths:
    wide = "WIDE" in modifiers
    return Widths(2 if wide else 1, (1, 1, 2 if wide or "HI" in modifiers else 1))


_TYPE = re.compile(r"[FUS][0-9]|BF16|TF32|E[0-9]M[0-9]")


def _float_to_float(modifiers: Modifiers) -> Widths:
    """F2F.F64.F32: result type, then source type; one type (FRND.F64) holds for both."""
    types = [modifier for modifier in modifiers if _TYPE.match(modifier)]
    pairs = [2 if name == "F64" else 1 for name in (types * 2 if len(types) == 1 else types)] or [1, 1]
    return Widths(pairs[0], (pairs[1],))


def _float_to_integer(modifiers: Modifiers) -> Widths:
    return Widths(_pair(modifiers), (2 if "F64" in modifiers else 1,))


def _integer_to_float(modifiers: Modifiers) -> Widths:
    return Widths(2 if "F64" in modifiers else 1, (_pair(modifiers),))


def _special_register(modifiers: Modifiers) -> Widths:
    return Widths(1 if "32" in modifiers else 2, (1,))


def _match(modifiers: Modifiers) -> Widths:
    return Widths(1, (_pair(modifiers),))


def _double_compare(_: Modifiers) -> Widths:
    return Widths(1, (2,))


def _matrix_move(modifiers: Modifiers) -> Widths:
    return _same(matrix_count(modifiers))


def _matrix_transpose(modifiers: Modifiers) -> Widths:
    return Widths(2 if any("TO8" in modifier for modifier in modifiers) else 1, (1,))


def _tensor_memory(modifiers: Modifiers) -> Widths:
    repeats = [int(modifier[1:]) for modifier in modifiers if re.fullmatch(r"x[0-9]{1,3}", modifier)]
    shape = " ".join(modifiers)
    registers = 4 if "256bit" in shape else 2 if "128bit" in shape else 1
    return _same(min(registers * (repeats[0] if repeats else 1), 255))


def _mbarrier(modifiers: Modifiers) -> Widths:
    exchange = "64" in modifiers
    return Widths(2 if exchange or "TRANS64" in modifiers else 1, (2 if exchange else 1,))


def _surface_data(modifiers: Modifiers) -> int:
    return 4 if "P" in modifiers else data_registers(modifiers)  # formatted: all four components


def _surface_load(modifiers: Modifiers) -> Widths:
    return Widths(_surface_data(modifiers), (1,))


def _surface_store(modifiers: Modifiers) -> Widths:
    return Widths(1, (_surface_data(modifiers), 1))  # the data, then the handle


_BY_OPCODE: Final[dict[str, Callable[[Modifiers], Widths]]] = {
    "CS2R": _special_register,
    "CS2UR": _special_register,
    "DSET": _double_compare,
    "F2F": _float_to_float,
    "F2I": _float_to_integer,
    "FRND": _float_to_float,
    "I2F": _integer_to_float,
    "IMAD": _multiply_add,
    "LDSM": _matrix_move,
    "LDTM": _tensor_memory,
    "MATCH": _match,
    "MOVM": _matrix_transpose,
    "STSM": _matrix_move,
    "STTM": _tensor_memory,
    "SULD": _surface_load,
    "SUST": _surface_store,
    "SYNCS": _mbarrier,
    "UF2F": _float_to_float,
    "UIMAD": _multiply_add,
    "USYNCS": _mbarrier,
}
