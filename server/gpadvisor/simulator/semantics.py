# SPDX-License-Identifier: Apache-2.0
"""What integer and predicate instructions compute, as rows of numbers that the inner loop can follow.

Only what decides branches and addresses matters here; everything else makes its results unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gpadvisor.model.halves import half_constant
from gpadvisor.model.instruction import (
    Instruction,
    OpcodeClass,
)
from gpadvisor.sass.tokens import Operand, OperandKind
from gpadvisor.simulator.addresses import stack_words
from gpadvisor.simulator.meanings import (
    IMMEDIATE,
    INVERTED,
    NEGATED,
    PLAIN,
    REGISTER,
    SPECIAL_NAMES,
    TRUE,
    ZERO,
    Constants,
    Meaning,
    Op,
    OperandReader,
    Special,
    ValueSource,
    predicate_of,
    real,
)


def meaning_of(instruction: Instruction, constants: Constants, frame: int | None = None) -> Meaning:
    """What an instruction computes; UNKNOWN where that is not followed. ``frame``: see ``stack_words``."""
    reader = OperandReader(instruction, constants, frame)
    rule = _RULES.get(instruction.opcode) or _RULES.get(instruction.opcode.removeprefix("U"))
    meaning = None if rule is None else rule(reader)
    return Meaning(Op.UNKNOWN) if meaning is None else meaning


# ---- opcodes ----


def _add(r: OperandReader) -> Meaning | None:
    """IADD3, VIADD, UIADD3, IADD: up to three words and carries."""
    if not r.operands:
        return None
    flags, index = r.leading_flags(1)
    values = [operand for operand in r.operands[index:] if not operand.is_predicate]
    if "64" in r.modifiers:
        return _add_wide(r, values) if not any(flag != TRUE for flag in flags) else None
    carries = r.trailing() if "X" in r.modifiers else []
    carries = [carry for carry in carries if carry != (TRUE, True)]
    sources = [r.source(operand) for operand in values]
    return Meaning(
        Op.ADD, sources, carries, r.result(r.operands[0]), real(flags), mode=int("X" in r.modifiers)
    )


def _add_wide(r: OperandReader, values: Sequence[Operand]) -> Meaning | None:
    values = [operand for operand in values if not (operand.is_register and operand.first is None)]
    if not 1 <= len(values) <= 2 or "X" in r.modifiers:
        return None
    low = [r.source(operand) for operand in values]
    high = [_high_of(r, operand) for operand in values]
    while len(low) < 2:
        low.append(ZERO)
        high.append(ZERO)
    return Meaning(Op.ADD_WIDE, [*low, *high], [], r.result(r.operands[0], 2))


def _high_of(r: OperandReader, operand: Operand) -> ValueSource:
    """The high word of a pair; of a negated one, the low word brings the one that makes it so."""
    if operand.kind is OperandKind.IMMEDIATE:
        return ValueSource(IMMEDIATE, 0xFFFF_FFFF if (operand.value or 0) < 0 else (operand.value or 0) >> 32)
    source = r.source(operand, 1)
    return replace(source, how=INVERTED) if source.how == NEGATED else source


def _multiply(r: OperandReader) -> Meaning | None:
    """IMAD and its forms."""
    if not r.operands:
        return None
    flags, index = r.leading_flags(1)
    values = [operand for operand in r.operands[index:] if not operand.is_predicate]
    if len(values) < 3:
        return None
    a, b, c = (r.source(operand) for operand in values[:3])
    signed = "U32" not in r.modifiers
    if ("WIDE" in r.modifiers or "HI" in r.modifiers) and ("X" in r.modifiers or c.how != PLAIN):
        return None
    if "WIDE" in r.modifiers:
        high = _high(r, values[2])
        return Meaning(
            Op.MUL_ADD_WIDE, [a, b, c, high], [], r.result(r.operands[0], 2), real(flags), signed=signed
        )
    if "HI" in r.modifiers:
        high = _high(r, values[2])
        return Meaning(
            Op.MUL_ADD_HIGH, [a, b, c, high], [], r.result(r.operands[0]), real(flags), signed=signed
        )
    carries = [carry for carry in r.trailing() if "X" in r.modifiers and carry != (TRUE, True)]
    return Meaning(Op.MUL_ADD, [a, b, c], carries, r.result(r.operands[0]), real(flags))


def _high(r: OperandReader, operand: Operand) -> ValueSource:
    if operand.is_register and operand.first is None:
        return ZERO
    if operand.kind is OperandKind.IMMEDIATE:
        return ValueSource(IMMEDIATE, 0xFFFF_FFFF if (operand.value or 0) < 0 else 0)
    return r.source(operand, 1)


def _move(r: OperandReader) -> Meaning | None:
    if len(r.operands) < 2:
        return None
    wide = 2 if "64" in r.modifiers else 1
    source = r.operands[1]
    if wide == 2:
        return _pair(r, source)
    return Meaning(Op.ADD, [r.source(source)], [], r.result(r.operands[0]))


def _pair(r: OperandReader, source: Operand) -> Meaning:
    """Two words at once: one times the low word, plus the pair of zero and the high word."""
    low, high = r.source(source), r.source(source, 1)
    sources = [ZERO, ZERO, low, high]
    return Meaning(Op.MUL_ADD_WIDE, sources, [], r.result(r.operands[0], 2))


def _constant_load(r: OperandReader) -> Meaning | None:
    if len(r.operands) < 2 or any(name in r.modifiers for name in ("U8", "S8", "U16", "S16", "128")):
        return None
    return _move(r)


def _half_move(r: OperandReader) -> Meaning | None:
    """``HFMA2.MMA R9, -RZ, RZ, 0, 0``: how ptxas sets a constant in the FP16 pipe."""
    word = half_constant([value.text for value in r.operands[1:]])
    if word is None:
        return None
    return Meaning(Op.ADD, [ValueSource(IMMEDIATE, word)], [], r.result(r.operands[0]))


def _logic(r: OperandReader) -> Meaning | None:
    if not r.operands or "64" in r.modifiers:
        return None
    flags, index = r.leading_flags(0)
    if index >= len(r.operands):
        return None
    values = [operand for operand in r.operands[index + 1 :] if not operand.is_predicate]
    if len(values) < 4 or values[3].value is None:
        return None
    extra = [predicate for predicate in r.trailing() if predicate != (TRUE, True)]
    if extra:
        return None
    sources = [r.source(operand) for operand in values[:3]]
    return Meaning(Op.LOGIC, sources, [], r.result(r.operands[index]), real(flags), table=values[3].value)


RIGHT, _HIGH_PART, _ARITHMETIC, _WRAP, _WIDE = 1, 2, 4, 8, 16


def _shift(r: OperandReader) -> Meaning | None:
    if len(r.operands) < 4:
        return None
    low, amount, high = (r.source(operand) for operand in r.operands[1:4])
    mode = (
        (RIGHT if "R" in r.modifiers else 0)
        | (_HIGH_PART if "HI" in r.modifiers else 0)
        | (_ARITHMETIC if any(name in r.modifiers for name in ("S32", "S64")) else 0)
        | (_WRAP if "W" in r.modifiers else 0)
        | (_WIDE if any(name in r.modifiers for name in ("U64", "S64")) else 0)
    )
    return Meaning(Op.SHIFT, [low, amount, high], [], r.result(r.operands[0]), mode=mode)


def _shift_add(r: OperandReader) -> Meaning | None:
    if not r.operands:
        return None
    flags, index = r.leading_flags(1)
    values = [operand for operand in r.operands[index:] if not operand.is_predicate]
    carries = [carry for carry in r.trailing() if "X" in r.modifiers and carry != (TRUE, True)]
    if len(values) < 3 or values[-1].value is None:
        return None
    shift = values[-1].value & 31
    a, b = r.source(values[0]), r.source(values[1])
    if "HI" not in r.modifiers:
        return Meaning(Op.SHIFT_ADD, [a, b], carries, r.result(r.operands[0]), real(flags), table=shift)
    signed = "SX32" in r.modifiers
    high = ZERO if signed or len(values) < 4 else r.source(values[2])
    return Meaning(
        Op.SHIFT_ADD_HIGH, [a, b, high], carries, r.result(r.operands[0]), real(flags), table=shift,
        signed=signed,
    )  # fmt: skip


_COMPARISONS: Final = {"F": 0, "LT": 1, "EQ": 2, "LE": 3, "GT": 4, "NE": 5, "GE": 6, "T": 7}
_COMBINATIONS: Final = {"AND": 0, "OR": 1, "XOR": 2}


def _compare(r: OperandReader) -> Meaning | None:
    wide = any(name in r.modifiers for name in ("U64", "S64", "64"))
    kind = next((_COMPARISONS[name] for name in r.modifiers if name in _COMPARISONS), None)
    how = next((_COMBINATIONS[name] for name in r.modifiers if name in _COMBINATIONS), 0)
    flags, index = r.leading_flags(0)
    values = [operand for operand in r.operands[index:] if not operand.is_predicate]
    if kind is None or len(values) < 2:
        return None
    extended = "EX" in r.modifiers
    predicates = r.trailing()
    if len(predicates) < 1 + extended or (wide and extended):
        return None
    sources = [r.source(values[0]), r.source(values[1])]
    if wide:
        sources += [_high_of(r, values[0]), _high_of(r, values[1])]
    return Meaning(
        Op.COMPARE, sources, predicates, [], real(flags),
        mode=kind | how << 4 | int(extended) << 8 | int(wide) << 9,
        signed="U32" not in r.modifiers and "U64" not in r.modifiers,
    )  # fmt: skip


def _select(r: OperandReader) -> Meaning | None:
    predicates = r.trailing()
    if len(r.operands) < 4 or len(predicates) != 1:
        return None
    sources = [r.source(r.operands[1]), r.source(r.operands[2])]
    if "64" in r.modifiers:
        sources += [_high_of(r, r.operands[1]), _high_of(r, r.operands[2])]
        return Meaning(Op.SELECT_WIDE, sources, predicates, r.result(r.operands[0], 2))
    return Meaning(Op.SELECT, sources, predicates, r.result(r.operands[0]))


def _minimum(r: OperandReader) -> Meaning | None:
    """IMNMX, VIMNMX; on sm_100 the latter writes two predicates as well."""
    predicates, (flags, index) = r.trailing(), r.leading_flags(1)
    if len(predicates) != 1 or len(r.operands) != index + 3 or any(flag != TRUE for flag in flags):
        return None
    if any("16" in name or "64" in name for name in r.modifiers):
        return None
    sources = [r.source(operand) for operand in r.operands[index : index + 2]]
    signed = "U32" not in r.modifiers
    return Meaning(Op.MINIMUM, sources, predicates, r.result(r.operands[0]), signed=signed)


def _add_minimum(r: OperandReader) -> Meaning | None:
    """VIADDMNMX: the sum of two, against a third."""
    predicates = r.trailing()
    if len(predicates) != 1 or len(r.operands) != 5 or any("16" in name for name in r.modifiers):
        return None
    sources = [r.source(operand) for operand in r.operands[1:4]]
    signed = "U32" not in r.modifiers
    return Meaning(Op.ADD_MINIMUM, sources, predicates, r.result(r.operands[0]), signed=signed)


def _float_up(r: OperandReader) -> Meaning | None:
    """``I2F.U32.RP R0, R6``."""
    narrow = any("8" in name or "16" in name for name in r.modifiers)
    if len(r.operands) != 2 or "RP" not in r.modifiers or "F64" in r.modifiers or narrow:
        return None
    operand = r.operands[1]
    high = _high(r, operand) if "U64" in r.modifiers else ZERO
    if "S64" in r.modifiers:
        return None
    # A signed word here is a magnitude: the largest one is the same with or without a sign.
    return Meaning(Op.FLOAT_UP, [r.source(operand), high], [], r.result(r.operands[0]))


def _special_function(r: OperandReader) -> Meaning | None:
    if len(r.operands) != 2 or r.modifiers != ("RCP",):
        return None
    return Meaning(Op.RECIPROCAL, [r.source(r.operands[1])], [], r.result(r.operands[0]))


def _truncate(r: OperandReader) -> Meaning | None:
    """``F2I.FTZ.U32.TRUNC.NTZ R3, R2``."""
    bits = 64 if "U64" in r.modifiers else 32 if "U32" in r.modifiers else 0
    if len(r.operands) != 2 or "TRUNC" not in r.modifiers or "F64" in r.modifiers or not bits:
        return None
    results = r.result(r.operands[0], bits // 32)
    return Meaning(Op.TRUNCATE, [r.source(r.operands[1])], [], results, mode=bits)


def _predicate_logic(r: OperandReader) -> Meaning | None:
    predicates = [predicate_of(operand) for operand in r.operands if operand.is_predicate]
    tables = [operand.value for operand in r.operands if operand.kind is OperandKind.IMMEDIATE]
    if len(predicates) < 5 or len(tables) < 1 or tables[0] is None:
        return None
    second = tables[1] if len(tables) > 1 and tables[1] is not None else 0
    flags = real([flag for flag, _ in predicates[:2]])
    return Meaning(Op.PREDICATE_LOGIC, [], predicates[2:5], [], flags, table=tables[0], mode=second)


def _special(r: OperandReader) -> Meaning | None:
    if len(r.operands) < 2:
        return None
    special = SPECIAL_NAMES.get(r.operands[1].text)
    if special is None:
        return None
    if r.instruction.opcode == "CS2R":
        if special is not Special.ZERO:
            return None
        if "32" not in r.modifiers:
            return Meaning(Op.MUL_ADD_WIDE, [ZERO] * 4, [], r.result(r.operands[0], 2))
    return Meaning(Op.SPECIAL, [], [], r.result(r.operands[0]), table=int(special))


def _absolute(r: OperandReader) -> Meaning | None:
    if len(r.operands) != 2:
        return None
    return Meaning(Op.ABSOLUTE, [r.source(r.operands[1])], [], r.result(r.operands[0]))


def _permute(r: OperandReader) -> Meaning | None:
    if len(r.operands) != 4 or r.modifiers:
        return None
    sources = [r.source(operand) for operand in r.operands[1:]]
    return Meaning(Op.PERMUTE, sources, [], r.result(r.operands[0]))


def _broadcast(r: OperandReader) -> Meaning | None:
    values = r.values
    if len(values) != 2 or len(values) != len(r.operands) or r.modifiers:
        return None
    return Meaning(Op.BROADCAST, [r.source(values[1])], [], r.result(values[0]))


def _vote(r: OperandReader) -> Meaning | None:
    """``VOTE.ANY P0, P1``, ``VOTEU.ALL UP0, P0``: only where no mask is asked for."""
    if len(r.operands) < 2 or any(
        operand.is_register and operand.first is not None for operand in r.operands
    ):
        return None
    mode = {"ANY": 0, "ALL": 1}.get(r.modifiers[0] if r.modifiers else "")
    predicates = [predicate_of(operand) for operand in r.operands if operand.is_predicate]
    if mode is None or len(predicates) != 2:
        return None
    return Meaning(Op.VOTE, [], predicates[1:], [], real([predicates[0][0]]), mode=mode)


def _local(r: OperandReader) -> Meaning | None:
    """Spills and their reloads, one or two words."""
    words = stack_words(r.instruction, r.frame)
    narrow = any(name in r.modifiers for name in ("U8", "S8", "U16", "S16"))
    registers = [operand for operand in r.operands if operand.is_register]
    if not 1 <= len(words) <= 2 or narrow or not registers:
        return None
    store = r.instruction.info.opclass is OpcodeClass.STORE
    held = registers[-1] if store else registers[0]
    inside = [r.source(held, word) for word in range(len(words))]
    sources = inside if store else [ValueSource(REGISTER, word) for word in words]
    results = words if store else r.result(held, len(words))
    if len(words) == 1:
        return Meaning(Op.ADD, sources, [], results)
    return Meaning(Op.MUL_ADD_WIDE, [ZERO, ZERO, *sources], [], results)


_RULES: Final[Mapping[str, Callable[[OperandReader], Meaning | None]]] = {
    "IADD3": _add,
    "IADD": _add,
    "VIADD": _add,
    "IMAD": _multiply,
    "MOV": _move,
    "MOV32I": _move,
    "LDC": _constant_load,
    "ULDC": _constant_load,
    "LDCU": _constant_load,
    "HFMA2": _half_move,
    "LOP3": _logic,
    "SHF": _shift,
    "LEA": _shift_add,
    "ISETP": _compare,
    "SEL": _select,
    "IMNMX": _minimum,
    "VIMNMX": _minimum,
    "VIADDMNMX": _add_minimum,
    "PLOP3": _predicate_logic,
    "S2R": _special,
    "S2UR": _special,
    "CS2R": _special,
    "IABS": _absolute,
    "PRMT": _permute,
    "R2UR": _broadcast,
    "I2F": _float_up,
    "MUFU": _special_function,
    "F2I": _truncate,
    "LDL": _local,
    "STL": _local,
    "VOTE": _vote,
    "VOTEU": _vote,
}
