# SPDX-License-Identifier: Apache-2.0
"""Unmatched Stalls: what warps wait for and no optimizer of Table II has a cure for.

## What it finds

Stall reasons with at least 1 % of the samples that no rule covers: memory fences (`membar`),
branches (`branch_resolving`), misses of the constant cache (`imc_miss`), sleeping warps, stores in flight
at exit whose sectors are ideal (`drain`), busy pipes of ordinary arithmetic (`math_pipe_throttle`), a
full queue of the shared memory pipeline without bank conflicts (`mio_throttle`), and the rest
(`dispatch_stall`, `misc`).

## Why warps stall

Each for its own reason; the note names them one by one. They are listed so that no sample disappears: a
report whose largest stall has no rule should say so.

## What to try

- `membar`: the narrowest fence that is right (`__threadfence_block()`), and fewer of them.
- `branch_resolving`: fewer and longer blocks of code, predicated or branch-free forms of short
  conditions.
- `imc_miss`: constants of one place used together; tables indexed by thread belong in shared or global
  memory. The first reads of a launch's parameters miss in every kernel.
- `drain`: stores earlier in the kernel, or blocks that do more work before they end.
- `math_pipe_throttle`: a busy pipe is a limit of the hardware; fewer instructions, or some on another
  pipe.
- `mio_throttle`: what stands in its queue decides: fewer and wider shared accesses, fewer shuffles,
  conversions or special functions; reads of threadIdx stand at the start of every thread.

## Example

```cuda
__threadfence();         // waits until all SMs can see the stores
__threadfence_block();   // enough where only this block reads them
```

## When this advice is wrong

A kernel at the limit of its arithmetic pipe is as fast as its instructions allow; the stall is no fault
of it.

## How the gain is estimated

It is not: the paper has no estimate for these, and the hints are too general for one.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.evidence.accesses import is_local
from gpadvisor.evidence.double_excursions import double_excursions
from gpadvisor.evidence.patterns import is_slow_on
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    by_role,
    by_stall,
    causes,
    kernel_functions,
    line_text,
    regions,
    share,
)
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import Category, Estimate, Match, Rejection
from gpadvisor.model.blame import NO_INDEX, Blame, DependencyClass, Role
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.sentence import sentences
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA401"
_HINTS: Final = {
    StallClass.MEMORY_BARRIER: "use the narrowest fence that is right, and fewer of them",
    StallClass.BRANCH: "make blocks of code longer, and short conditions branch-free",
    StallClass.SLEEP: "the code puts warps to sleep or yields",
    StallClass.DRAIN: "store earlier, or let each block do more before it ends",
    StallClass.PIPE_THROTTLE: "their pipe is busy: use fewer of them, or opcodes of another pipe",
    StallClass.OTHER: "the hardware gives no cause",
}


def _match(context: KernelContext) -> Match | Rejection:
    blame = context.blame
    if blame is None:
        return Rejection(code=_CODE, reason="needs samples", looked=False)
    homeless = _homeless(context, blame)
    parts = []
    shown = np.zeros(len(blame.rows), dtype=bool)
    for number, reason in enumerate(blame.reasons):
        rows = homeless & (blame.rows.reason == number)
        part = share(blame, rows)
        if part >= constants.SMALL:
            shown |= rows
            where, hint = _where(context, blame, rows, reason.stall_class)
            parts.append((part, f"{reason.name} ({percent(part)} of samples, {where}): {hint}"))
    if not parts:
        return Rejection(
            code=_CODE, reason=f"each stall reason with {percent(constants.SMALL)} of samples has a rule"
        )
    return Match(
        title="stalls that no rule covers",
        advice="; ".join(text for _, text in sorted(parts, reverse=True)) + ".",
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(shown)),
    )


def _where(context: KernelContext, blame: Blame, rows: Mask, stall: StallClass) -> tuple[str, str]:
    """The opcodes and the place that most of some rows are at, and what to do about them."""
    opcodes: Counter[str] = Counter()
    places: Counter[str] = Counter()
    hints: Counter[str] = Counter()
    indices = causes(blame)
    for row in np.flatnonzero(rows).tolist():
        function, index = int(blame.rows.function[row]), int(indices[row])
        if function >= len(context.program.functions) or index == NO_INDEX:
            continue
        weight = int(blame.rows.samples[row])
        code = context.program.functions[function]
        opcodes[code.instructions[index].opcode] += weight
        places[line_text(code, index)] += weight
        hints[_hint(stall, code.instructions[index])] += weight
    if not places:
        return "outside of the program", _NO_CURE
    total = sum(opcodes.values())
    names = [name for name, weight in opcodes.most_common(_NAMED_OPCODES) if weight >= total / 10]
    where = f"mostly {' and '.join(names) or 'various opcodes'}, as at {places.most_common(1)[0][0]}"
    return where, hints.most_common(1)[0][0]


def _hint(stall: StallClass, instruction: Instruction) -> str:
    """What to do about a stall of an instruction: one reason has several causes."""
    if stall is StallClass.CONSTANT_MISS:
        return _PARAMETERS if set(_BANK.findall(instruction.operands)) <= _OWN_BANKS else _CONSTANTS
    if stall is StallClass.SHARED_THROTTLE:
        hints = (hint for classes, hint in _QUEUED if instruction.info.opclass in classes)
        return next(hints, "use fewer of them")
    if stall is StallClass.BRANCH and instruction.info.opclass in {OpcodeClass.CALL, OpcodeClass.RETURN}:
        return "let the functions be inlined, or call them less often"
    return _HINTS.get(stall, _NO_CURE)


_NAMED_OPCODES: Final = 2
_NO_CURE: Final = "no general cure"
_BANK: Final = re.compile(r"c\[(0x[0-9a-f]+)\]")
_OWN_BANKS: Final = frozenset({"0x0", "0x2", "0x4"})
"""Of the launch and of the compiler; tables of the program are in bank 3, or read by an index."""
_PARAMETERS: Final = (
    "the first reads of parameters and literals, which every launch has: do more in one launch"
)
_CONSTANTS: Final = "use constants of one place together; keep tables in shared or global memory"
_QUEUED: Final = (
    (
        {OpcodeClass.SPECIAL_REGISTER},
        "reads of threadIdx and the like, with which threads begin: do more in each",
    ),
    ({OpcodeClass.SHUFFLE, OpcodeClass.VOTE}, "fewer shuffles and votes"),
    ({OpcodeClass.TRANSCENDENTAL, OpcodeClass.CONVERSION}, "fewer special functions and conversions"),
    (
        {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION},
        "fewer shared memory accesses, or wider ones",
    ),
)
"""What goes through the queue before the shared memory pipeline."""


def _double_places(context: KernelContext) -> set[tuple[FunctionId, int]]:
    return {
        (function.id, index)
        for function in kernel_functions(context.program, context.kernel)
        for sequence in double_excursions(function)
        for index in sequence.indices
    }


def _homeless(context: KernelContext, blame: Blame) -> Mask:
    """Rows that no optimizer matches, whatever their number."""
    indices = causes(blame)
    local = by_instruction(blame, context.program, indices, is_local)
    slow = by_instruction(
        blame, context.program, indices, lambda instruction: is_slow_on(context.machine, instruction)
    )
    slow |= by_place(blame, indices, _double_places(context))  # Strength Reduction takes these on every GPU
    traffic = (
        None if context.profile is None else kernel_traffic(context.program, context.kernel, context.profile)
    )
    drain = by_stall(blame, {StallClass.DRAIN}) & ~by_role(blame, Role.UNATTRIBUTED)
    matched_drain = by_class(blame, {DependencyClass.STORE_IN_FLIGHT})
    conflicts = np.zeros(len(blame.rows), dtype=bool)
    if traffic is not None:
        matched_drain &= by_place(blame, indices, traffic.scattered)
        conflicts = by_place(blame, indices, traffic.conflicting)
    always = by_stall(
        blame,
        {
            StallClass.MEMORY_BARRIER,
            StallClass.BRANCH,
            StallClass.CONSTANT_MISS,
            StallClass.SLEEP,
            StallClass.OTHER,
        },
    )
    pipes = by_stall(blame, {StallClass.PIPE_THROTTLE}) & ~slow
    queue = by_stall(blame, {StallClass.SHARED_THROTTLE}) & ~slow & ~conflicts
    return (always | pipes | queue | (drain & ~matched_drain)) & ~local


def _no_estimate(context: KernelContext, match: Match) -> Estimate:
    """A note promises nothing."""
    del context, match
    return Estimate(
        low=1.0,
        expected=1.0,
        high=1.0,
        paper=None,
        equation="none",
        reasons=sentences("a note: the paper has no estimate for stalls without an optimizer"),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="unmatched-stalls",
    name="Unmatched Stalls",
    category=Category.NOTE,
    match=_match,
    estimate=_no_estimate,
    document=__doc__ or "",
)
