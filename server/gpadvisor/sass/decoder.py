# SPDX-License-Identifier: Apache-2.0
"""One Instruction per 16 bytes: text for the operands, code bytes for everything the text leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.errors import SassError
from gpadvisor.machine import code_form
from gpadvisor.model.ids import INSTRUCTION_BYTES, Pc
from gpadvisor.model.instruction import (
    Guard,
    Instruction,
    OpcodeClass,
    OpcodeInfo,
    PartialWait,
    Register,
    RegisterFile,
    register,
)
from gpadvisor.model.machine import CodeForm
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.sass.addresses import Form, hidden_descriptor, hides_descriptor
from gpadvisor.sass.branches import inside, printed_target, relative_target
from gpadvisor.sass.control import code_words, control_codes, guard_fields
from gpadvisor.sass.listing import SassLine
from gpadvisor.sass.opcodes import NEVER_EXECUTED, awaited, opcode_info
from gpadvisor.sass.operands import Accesses, accesses
from gpadvisor.sass.tokens import Operand, OperandKind, parse_operand, split_operands
from gpadvisor.sass.widths import access_bytes

_PT: Final = 7
_NOT_PT: Final = 15
_SHOWN_OPCODES: Final = 40
_UNIFORM_GUARD = "@UP", "@!UP"


class _Mnemonic(NamedTuple):
    """Everything that the opcode text alone decides."""

    form: Form
    hides: bool
    control_flow: bool
    width_bytes: int | None


class _Decoded(NamedTuple):
    """Everything that text and guard bits decide; the place of the instruction adds the rest."""

    mnemonic: _Mnemonic
    operands: str
    tokens: tuple[Operand, ...]
    guard: Guard | None
    defs: tuple[Register, ...]
    uses: tuple[Register, ...]
    info: OpcodeInfo
    awaited: OpcodeInfo  # the same of an instruction that sets a write barrier
    partial_wait: PartialWait | None


def decode(
    arch: str, code: bytes, lines: Sequence[SassLine]
) -> tuple[tuple[Instruction, ...], tuple[Problem, ...]]:
    """The instructions of one code section, one per 16 bytes, and what was not understood.

    Raises SassError only when ``lines`` are not the disassembly of ``code``.
    """
    if len(code) % INSTRUCTION_BYTES or len(lines) * INSTRUCTION_BYTES != len(code):
        raise SassError(
            f"the disassembly has {len(lines)} instructions and the code section {len(code)} bytes; "
            "disassemble the same cubin again"
        )
    words = code_words(code)
    rows = words.tolist()
    unknown: Counter[str] = Counter()
    instructions: list[Instruction] = []
    code_layout = code_form(arch)
    mnemonics: dict[str, _Mnemonic] = {}
    known: dict[tuple[str | None, str, str, int, Register | None], _Decoded] = {}
    for index, (line, guard, control, (low, high)) in enumerate(
        zip(lines, guard_fields(words).tolist(), control_codes(words), rows, strict=True)
    ):
        opcode = line.opcode
        mnemonic = mnemonics.get(opcode)
        if mnemonic is None:
            mnemonic = mnemonics[opcode] = _mnemonic(arch, opcode)
        hidden = hidden_descriptor(mnemonic.form, line.operands, low, high) if mnemonic.hides else None
        key = line.predicate, opcode, line.operands, guard, hidden
        decoded = known.get(key)
        if decoded is None:
            decoded = known[key] = _decode_line(arch, line, guard, hidden)
        pc = Pc(index * INSTRUCTION_BYTES)
        to: tuple[Pc | None, str | None, str] = None, None, decoded.operands
        if mnemonic.control_flow:
            to = _resolve(decoded, code_layout, pc, low, high, len(code))
        if not decoded.info.known:
            unknown[mnemonic.form.base] += 1
        target, callee, operands = to
        instructions.append(
            Instruction(
                pc,
                mnemonic.form.base,
                mnemonic.form.modifiers,
                operands,
                decoded.guard,
                decoded.defs,
                decoded.uses,
                decoded.info if control.write_barrier is None else decoded.awaited,
                control,
                target,
                callee,
                decoded.partial_wait,
                mnemonic.width_bytes,
            )
        )
    return tuple(instructions), _problems(arch, unknown)


_CONTROL_FLOW: Final = frozenset({OpcodeClass.BRANCH, OpcodeClass.CALL})
_LABELLED: Final = frozenset({"BSSY"})


@lru_cache(maxsize=1 << 14)
def _mnemonic(arch: str, opcode: str) -> _Mnemonic:
    base, *modifiers = opcode.split(".")
    info = opcode_info(arch, opcode)
    form = Form(code_form(arch).hides_descriptors, base, tuple(modifiers), info)
    return _Mnemonic(
        form=form,
        hides=hides_descriptor(form),
        control_flow=info.opclass in _CONTROL_FLOW or base in _LABELLED,
        width_bytes=access_bytes(base, modifiers, info),
    )


@lru_cache(maxsize=1 << 16)
def _decode_line(arch: str, line: SassLine, guard: int, hidden: Register | None) -> _Decoded:
    mnemonic = _mnemonic(arch, line.opcode)
    texts = split_operands(line.operands)
    tokens = tuple(map(parse_operand, texts))
    form = mnemonic.form
    accessed = accesses(form, tokens, hidden) if guard != _NOT_PT else Accesses((), ())
    predicate = _guard(line, form, guard)
    info = form.info if guard != _NOT_PT else NEVER_EXECUTED
    uses = accessed.uses
    if predicate is not None and predicate.register not in uses:
        uses = tuple(sorted((predicate.register, *uses)))
    return _Decoded(
        mnemonic=mnemonic,
        operands=", ".join(texts),
        tokens=tokens,
        guard=predicate,
        defs=accessed.defs,
        uses=uses,
        info=info,
        awaited=awaited(info),
        partial_wait=_partial_wait(form, texts),
    )


def _guard(line: SassLine, form: Form, bits: int) -> Guard | None:
    """The guard; index and negation are bits, the register file is told by the text or the datapath."""
    if bits & 7 == _PT:
        return None
    text = line.predicate
    uniform = text.startswith(_UNIFORM_GUARD) if text else form.base.startswith("U")
    file = RegisterFile.UNIFORM_PREDICATE if uniform else RegisterFile.PREDICATE
    return Guard(register(file, bits & 7), bool(bits & 8))


def _partial_wait(form: Form, texts: Sequence[str]) -> PartialWait | None:
    """``DEPBAR.LE SB0, 0x2``."""
    if form.base != "DEPBAR" or len(texts) < 2 or not texts[0].startswith("SB"):
        return None
    barrier, keep = texts[0][2:], printed_target(texts[1])
    if barrier.isdigit() and int(barrier) < 6 and keep is not None:
        return PartialWait(int(barrier), keep)
    return None


def _resolve(
    decoded: _Decoded, code_layout: CodeForm, pc: Pc, low: int, high: int, length: int
) -> tuple[Pc | None, str | None, str]:
    """Target, callee and operand text of a branch or call."""
    form, tokens, operands = decoded.mnemonic.form, decoded.tokens, decoded.operands
    if not tokens or tokens[-1].addresses or tokens[-1].is_register:
        return None, None, operands
    text = tokens[-1].text
    printed = printed_target(text)
    call = form.info.opclass is OpcodeClass.CALL
    indirect = any(token.kind is OperandKind.GPR for token in tokens)
    relative = "ABS" not in form.modifiers
    callee = text if call and printed is None and not indirect else None
    if printed is None and relative:
        encoded = inside(relative_target(code_layout, pc, low, high, short=form.base in _LABELLED), length)
        if call and encoded == pc + INSTRUCTION_BYTES:
            encoded = None  # not linked yet: the offset is still zero
        if not call and encoded is not None:
            operands = operands.removesuffix(text) + f"{encoded:#x}"
        printed = encoded
    if form.base in _LABELLED or (call and (indirect or not relative)):
        return None, callee, operands
    return inside(printed, length), callee, operands


def _problems(arch: str, unknown: Counter[str]) -> tuple[Problem, ...]:
    problems = [
        Problem(
            ProblemCode.UNKNOWN_OPCODE,
            f"opcode {base or '(none printed)'} is not known on {arch} ({count} instructions): "
            "its first register is taken as written, the rest as read, its latency as variable",
        )
        for base, count in unknown.most_common(_SHOWN_OPCODES)
    ]
    if len(unknown) > _SHOWN_OPCODES:
        problems.append(
            Problem(
                ProblemCode.UNKNOWN_OPCODE, f"{len(unknown) - _SHOWN_OPCODES} further opcodes are not known"
            )
        )
    return tuple(problems)
