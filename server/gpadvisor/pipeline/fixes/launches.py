# SPDX-License-Identifier: Apache-2.0
"""What an analysis knows of launches and trip counts, for the numbers in fixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gpadvisor.analyzer.occupancy import REGISTERS
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import lacks_warps
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.model.advice import Category, Match
from gpadvisor.model.fix import LaunchFacts
from gpadvisor.model.program import Program
from gpadvisor.pipeline.analyse import AnalysedKernel
from gpadvisor.rules import OPTIMIZERS

_PARALLEL: Final = tuple(rule for rule in reversed(OPTIMIZERS) if rule.category is Category.PARALLEL)


def launch_facts(kernels: Iterable[AnalysedKernel]) -> dict[str, LaunchFacts]:
    """What is known of each kernel's launch and loops, by mangled name."""
    return {kernel.context.kernel: kernel_launch(kernel.context) for kernel in kernels}


def kernel_launch(context: KernelContext) -> LaunchFacts:
    """What is known of one kernel's launch and loops."""
    trips, copies = _trips(context.program), _copies(context.program)
    if context.profile is None:
        return LaunchFacts(trips=trips, copies=copies)
    threads = context.profile.launch.threads_per_block
    return LaunchFacts(
        block_threads=threads if threads > 0 else None,
        blocks_per_sm=_one_more_block(context),
        threads_new=_proposed(context),
        trips=trips,
        copies=copies,
        lacks_warps=lacks_warps(context),
    )


def _trips(program: Program) -> Mapping[int, int]:
    """Passes of loops that the machine code tells, by the line of their head; none where two disagree."""
    trips_of_line: dict[int, set[int | None]] = {}
    for function in program.functions:
        for loop in function.loops:
            if loop.location is None:
                continue
            facts = loop_facts(function, loop.id)
            # Of a loop that is unrolled already the passes are fewer than the source's.
            trips_of_line.setdefault(loop.location.line, set()).add(
                facts.trips if facts.copies == 1 else None
            )
    alone = {line: next(iter(trips)) for line, trips in trips_of_line.items() if len(trips) == 1}
    return {line: trips for line, trips in alone.items() if trips is not None}


def _copies(program: Program) -> Mapping[int, int]:
    """How often the body of a loop stands in the machine code, by the line of its head; not its remainder."""
    result: dict[int, int] = {}
    for function in program.functions:
        for loop in function.loops:
            if loop.location is not None:
                line = loop.location.line
                result[line] = max(result.get(line, 1), loop_facts(function, loop.id).copies)
    return result


def _one_more_block(context: KernelContext) -> int | None:
    """The blocks per SM to ask for, where registers alone keep it from holding one more."""
    resident = context.occupancy.blocks_per_sm
    if resident is None or context.occupancy.limiter != REGISTERS:
        return None
    by_other_resources = [blocks for resource, blocks in context.occupancy.limits if resource != REGISTERS]
    return resident + 1 if by_other_resources and min(by_other_resources) > resident else None


def _proposed(context: KernelContext) -> int | None:
    """The block size that a parallel optimizer proposes; Thread Increase is asked first."""
    for rule in _PARALLEL:
        answer = rule.match(context)
        if isinstance(answer, Match) and answer.parallel is not None:
            proposed = answer.parallel.threads_new
            if proposed != answer.parallel.threads_now:
                return proposed
    return None
