# SPDX-License-Identifier: Apache-2.0
"""How many 32-bit registers each operand of an opcode covers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from gpadvisor.model.instruction import MemorySpace, OpcodeInfo

_DATA_WIDTH: Final = {"64": 2, "128": 4, "256": 8, "U64": 2, "S64": 2, "F64": 2, "96": 3, "F32x2": 2, "F32x4": 4}
_BYTES: Final = {
    "U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "F16": 2, "BF16": 2, "32": 4, "64": 8, "96": 12,
    "128": 16, "256": 32, "U64": 8, "S64": 8, "F64": 8, "F32x2": 8, "F32x4": 16,
}  # fmt: skip
_PAIR_MODIFIERS: Final = frozenset({"64", "U64", "S64"})

_PAIRED_BY_MODIFIER: Final = frozenset(
    {
        "IADD", "IADD3", "UIADD3", "UIADD", "SEL", "USEL", "MOV", "UMOV", "ISETP", "UISETP", "IMNMX", "UIMNMX",
        "VIMNMX", "UVIMNMX", "VIADD", "UVIADD", "LOP3", "ULOP3", "IABS", "UIABS", "R2UR", "BMOV",
    }
)  # fmt: skip
_ALWAYS_PAIRS: Final = frozenset({"DADD", "DFMA", "DMUL", "DMNMX", "DSETP", "FADD2", "FFMA2", "FMUL2"})
_CODE_ADDRESS: Final = frozenset({"CALL", "RET", "BRX", "BRXU", "JMX", "JMXU", "LEPC", "ULEPC", "RTT"})

Width = Callable[[Sequence[str], int], tuple[Sequence[int], Sequence[int]]]
"""From modifiers and source count: widths of register destinations, and of register sources in order."""


def _uniform(width: int) -> tuple[Sequence[int], Sequence[int]]:
    return (width,) * 4, (width,) * 8


def data_registers(modifiers: Sequence[str]) -> int:
    """Registers per data operand of a memory access."""
    if "ENL2" in modifiers:  # 256 bits in two operands of 128
        return 4
    return max((_DATA_WIDTH.get(modifier, 1) for modifier in modifiers), default=1)


def access_bytes(base: str, modifiers: Sequence[str], info: OpcodeInfo) -> int | None:
    """Bytes per thread of a memory access; None where the opcode accesses none or the text does not tell."""
    if info.space is None or info.space in (MemorySpace.TEXTURE, MemorySpace.TENSOR):
        return None
    if base in ("LDSM", "STSM"):
        return 4 * matrix_count(modifiers)
    if base in ("CCTL", "CCTLL", "CCTLT", "QSPC", "SYNCS") or base.startswith("U") and base not in ("ULDC",):
        return None
    packed = [
        modifier for modifier in modifiers if modifier.startswith(("F16x2", "BF16x2", "BF16_V2", "F16_V2"))
    ]
    found = [_BYTES[modifier] for modifier in modifiers if modifier in _BYTES]
    return (
        4 if packed or not found else found[0] if base not in ("ATOM", "ATOMG", "RED", "REDG") else max(found)
    )


def matrix_count(modifiers: Sequence[str]) -> int:
    """Matrices that LDSM, STSM move: the trailing 1, 2 or 4."""
    last = modifiers[-1] if modifiers else ""
    return int(last) if last in ("1", "2", "4") else 1


def operand_widths(
    base: str, modifiers: Sequence[str], sources: int, info: OpcodeInfo
) -> tuple[Sequence[int], Sequence[int]]:
    """Widths of register destinations and of register sources, each in the order of the text."""
    special = _BY_OPCODE.get(base)
    if special is not None:
        return special(modifiers, sources)
    if base in _ALWAYS_PAIRS or base in _CODE_ADDRESS:
        return _uniform(2)
    if base in _PAIRED_BY_MODIFIER:
        return _uniform(2 if _PAIR_MODIFIERS.intersection(modifiers) else 1)
    if info.space is not None:
        return _uniform(data_registers(modifiers))
    return _uniform(1)


def _multiply_add(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    wide, high = "WIDE" in modifiers, "HI" in modifiers
    addend = 2 if wide or high else 1
    return (2 if wide else 1,), (1, 1, addend)[:sources] if sources >= 3 else (1, 1, addend)


def _types(modifiers: Sequence[str]) -> list[str]:
    return [
        modifier for modifier in modifiers if re.match(r"(?:[FUS][0-9]+|BF16|TF32|E[0-9]M[0-9])", modifier)
    ]


def _pair(name: str) -> int:
    return 2 if name.endswith("64") else 1


def _float_to_float(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    types = _types(modifiers)
    if len(types) < 2:
        return _uniform(2 if "F64" in types else 1)
    return (_pair(types[0]),), (_pair(types[1]),) * max(sources, 1)


def _float_to_integer(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    result = 2 if "S64" in modifiers or "U64" in modifiers else 1
    return (result,), (2 if "F64" in modifiers else 1,) * max(sources, 1)


def _integer_to_float(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    source = 2 if "S64" in modifiers or "U64" in modifiers else 1
    return (2 if "F64" in modifiers else 1,), (source,) * max(sources, 1)


def _clock(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    return (1 if "32" in modifiers else 2,), (1,) * max(sources, 1)


def _match(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    return (1,), (2 if _PAIR_MODIFIERS.intersection(modifiers) else 1,) * max(sources, 1)


def _compare_to_register(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    return (1,), (2,) * max(sources, 1)


def _matrix_move(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    return _uniform(matrix_count(modifiers))


def _tensor_memory(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    repeats = [int(modifier[1:]) for modifier in modifiers if re.fullmatch(r"x[0-9]{1,3}", modifier)]
    lanes = 4 if any("256bit" in modifier for modifier in modifiers) else 1
    lanes = 2 if any("128bit" in modifier for modifier in modifiers) else lanes
    return _uniform(min(lanes * (repeats[0] if repeats else 1), 255))


def _matrix_transpose(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    expands = any("TO8" in modifier for modifier in modifiers)
    return (2 if expands else 1,), (1,) * max(sources, 1)


def _mbarrier(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    exchange = "64" in modifiers
    return (2 if exchange or "TRANS64" in modifiers else 1,), (2 if exchange else 1,) * max(sources, 1)


def _surface(modifiers: Sequence[str], sources: int) -> tuple[Sequence[int], Sequence[int]]:
    data = 4 if "P" in modifiers else data_registers(modifiers)  # formatted: all four components
    return (data,) * 4, (data,) * 4


_BY_OPCODE: Final[dict[str, Width]] = {
    "IMAD": _multiply_add,
    "UIMAD": _multiply_add,
    "F2F": _float_to_float,
    "UF2F": _float_to_float,
    "FRND": _float_to_float,
    "F2I": _float_to_integer,
    "I2F": _integer_to_float,
    "CS2R": _clock,
    "CS2UR": _clock,
    "MATCH": _match,
    "DSET": _compare_to_register,
    "LDSM": _matrix_move,
    "STSM": _matrix_move,
    "LDTM": _tensor_memory,
    "STTM": _tensor_memory,
    "MOVM": _matrix_transpose,
    "SYNCS": _mbarrier,
    "SULD": _surface,
    "SUST": _surface,
}
