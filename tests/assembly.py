# SPDX-License-Identifier: Apache-2.0
"""Functions and profiles from a few lines of SASS text, for the tests of analyzer and blamer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tests.hand_made import device, launch

from gpadvisor import machine
from gpadvisor.analyzer.build import build_function
from gpadvisor.analyzer.flow import control_transfers
from gpadvisor.analyzer.partition import Part
from gpadvisor.machine import code_form
from gpadvisor.model.ids import FunctionId, Pc
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import EXTERNAL, Evidence, KernelProfile, PcCounts, PcSamples, Sampling
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Program
from gpadvisor.model.stalls import OLD_REASONS, stall_reason
from gpadvisor.sass import SassLine, decode

ARCH = "sm_80"
SECTION = "kernel"

_LINE = re.compile(
    r"(?:(?P<label>\w+):\s+)?(?:@(?P<guard>!?U?P[0-6T])\s+)?(?P<opcode>[A-Z0-9_.]+)\s*(?P<operands>[^|]*)(?:\|(?P<control>.*))?$"
)


def assemble(text: str, arch: str = ARCH) -> tuple[Instruction, ...]:
    """Decode lines such as ``top: @!P0 LDG.E R0, [R2] | S4 W0 R1 ?23``.

    Behind the bar: stall count, write barrier, read barrier, and the scoreboards waited for.
    A label stands in front of its line and for its offset in operands.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    matches = [_LINE.match(line) for line in lines]
    labels = {found["label"]: at * 16 for at, found in enumerate(matches) if found and found["label"]}
    code, listing = bytearray(), []
    for line, found in zip(lines, matches, strict=True):
        assert found is not None, line
        operands = re.sub(r"\b[a-z]\w*\b", lambda word: _place(word[0], labels), found["operands"]).strip()
        guard = found["guard"]
        listing.append(SassLine(f"@{guard}" if guard else None, found["opcode"], operands))
        bits = 7
        if guard:
            bits = (7 if guard.endswith("T") else int(guard[-1])) | (8 if guard.startswith("!") else 0)
        code += (bits << 12 | _control(found["control"] or "") << 105).to_bytes(16, "little")
    return decode(arch, bytes(code), listing)[0]


def _place(word: str, labels: Mapping[str, int]) -> str:
    return hex(labels[word]) if word in labels else word


def _control(text: str) -> int:
    stall, write, read, wait = 1, 7, 7, 0
    for token in text.split():
        if token[0] == "S":
            stall = int(token[1:])
        elif token[0] == "W":
            write = int(token[1:])
        elif token[0] == "R":
            read = int(token[1:])
        else:
            wait = sum(1 << int(digit) for digit in token[1:])
    return stall | write << 5 | read << 8 | wait << 11


def nested_loops(depth: int) -> str:
    """Loops within each other, each with loads of its own at both ends, whose results nothing waits for."""
    begin = [f"top{level}: LDG.E R{10 + level}, [R2.64] | W1" for level in range(depth)]
    end = [f"LDG.E R{60 + level}, [R2.64] | W1\n@P1 BRA top{level} | S5" for level in reversed(range(depth))]
    return "\n".join([*begin, *end, "EXIT"])


def function_of(
    text: str | Sequence[Instruction],
    *,
    arch: str = ARCH,
    number: int = 0,
    start: int = 0,
    kind: FunctionKind = FunctionKind.KERNEL,
    lines: Sequence[LineEntry | None] | None = None,
    problems: list[Problem] | None = None,
) -> Function:
    """The analysed function of a few lines; ``start`` is its first instruction's place in the section."""
    instructions = assemble(text, arch) if isinstance(text, str) else tuple(text)
    if start:
        instructions = tuple(
            replace(
                one,
                pc=Pc(one.pc + start * 16),
                target=None if one.target is None else Pc(one.target + start * 16),
            )
            for one in instructions
        )
    return build_function(
        FunctionId(number),
        SECTION,
        Part(f"{SECTION}{number}", kind, start, start + len(instructions)),
        instructions,
        tuple(lines) if lines is not None else (None,) * len(instructions),
        control_transfers(instructions),
        [] if problems is None else problems,
    )


def program_of(*functions: Function, arch: str = ARCH) -> Program:
    """A program of these functions."""
    return Program(
        arch=arch, functions=functions, facts={}, has_line_info=False, problems=(), form=code_form(arch)
    )


Samples = Mapping[tuple[int, str], int | tuple[int, int]]
"""By instruction of the section and reason: samples, or samples and latency samples."""


def profile_of(
    samples: Samples,
    *,
    counts: Mapping[int, int] | None = None,
    external: Samples | None = None,
    reasons: Sequence[str] | None = None,
) -> KernelProfile:
    """A profile with these samples; half of them are latency samples where nothing is said."""
    rows = [(0, place * 16, name, value) for (place, name), value in samples.items()]
    rows += [(EXTERNAL, place, name, value) for (place, name), value in (external or {}).items()]
    names = list(reasons or dict.fromkeys(row[2] for row in rows))
    pairs = [value if isinstance(value, tuple) else (value, value // 2) for *_, value in rows]
    return KernelProfile(
        launch=launch(),
        device=device(),
        evidence=Evidence.MEASURED,
        binary=None,
        sections=(SECTION,),
        reasons=tuple(OLD_REASONS.get(name) or stall_reason(name) for name in names),
        samples=PcSamples(
            section=np.array([row[0] for row in rows], dtype=np.uint16),
            pc=np.array([row[1] for row in rows], dtype=np.uint64),
            reason=np.array([names.index(row[2]) for row in rows], dtype=np.uint8),
            total=np.array([pair[0] for pair in pairs], dtype=np.uint64),
            latency=np.array([pair[1] for pair in pairs], dtype=np.uint64),
        ),
        counts=None if counts is None else _counts(counts),
        pc_metrics={},
        metrics={},
        sampling=Sampling(
            interval_cycles=None, buffer_bytes=None, dropped_samples=None, truncated=False,
            truncation_evidence=None, expected_samples=None,
        ),
        rules=(),
        call_stack=(),
        problems=(),
    )  # fmt: skip


def _counts(counts: Mapping[int, int]) -> PcCounts:
    warps = np.array(list(counts.values()), dtype=np.uint64)
    return PcCounts(
        section=np.zeros(len(counts), dtype=np.uint16),
        pc=np.array([place * 16 for place in counts], dtype=np.uint64),
        warps=warps,
        threads=warps * np.uint64(32),
    )


def model(arch: str = ARCH) -> MachineModel:
    """The machine table the tests use."""
    return machine.load(arch)
