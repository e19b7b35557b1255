# SPDX-License-Identifier: Apache-2.0
"""Which of the model's benefits a change saves: by its samples, and by the loads that it reduces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gpadvisor.estimators.caps import remaining
from gpadvisor.estimators.utilisation import DRAM, ISSUE, MEMORY_RESOURCES, PIPE_UNITS, PIPES
from gpadvisor.model.advice import Match, ReducedLoad
from gpadvisor.model.blame import Blame
from gpadvisor.views.potential.build import benefit_of
from gpadvisor.views.potential.model import Benefit

_BENEFIT_OF_UNIT: Final = {
    **dict.fromkeys(MEMORY_RESOURCES, Benefit.MEMLP),
    **dict.fromkeys((ISSUE, *PIPES.values()), Benefit.FP),
}
"""What less load of a unit saves."""


def saves(match: Match, blame: Blame | None) -> tuple[Benefit, ...]:
    """What a change is about: the benefit of most of its samples, and those of units with less load."""
    most = (benefit for benefit, _ in _spent(match, blame).most_common(1))
    return tuple(dict.fromkeys((*most, *_of_units(match.reduced_loads))))


def bounding(match: Match, reduced_loads: Sequence[ReducedLoad], blame: Blame | None) -> tuple[Benefit, ...]:
    """All benefits that a change has a part in, whose bound is its own; nothing where none is.

    A launch has no bound in the model, nor has a change that takes load off a pipe, the issue slots or DRAM:
    the model takes what is essential of that for the least.

    Args:
        match: what was found.
        reduced_loads: loads that the change lowers.
        blame: of the kernel.
    """
    least = (reduced for reduced in reduced_loads if reduced.resource in {DRAM, ISSUE, *PIPE_UNITS})
    if match.parallel is not None or any(reduced.remaining_best < 1 for reduced in least):
        return ()
    return tuple(dict.fromkeys((*_spent(match, blame), *_of_units(reduced_loads))))


def _spent(match: Match, blame: Blame | None) -> Counter[Benefit]:
    """Samples of a change by what a cure of their stall saves."""
    spent: Counter[Benefit] = Counter()
    if blame is None:
        return spent
    for region in match.regions:
        rows = zip(blame.rows.reason[region.rows], blame.rows.samples[region.rows], strict=True)
        for reason, samples in rows:
            benefit = benefit_of(blame.reasons[int(reason)].stall_class)
            if benefit is not None:
                spent[benefit] += int(samples)
    return spent


def _of_units(reduced_loads: Sequence[ReducedLoad]) -> tuple[Benefit, ...]:
    return tuple(
        _BENEFIT_OF_UNIT[name] for name in _BENEFIT_OF_UNIT if remaining(name, reduced_loads, best=True) < 1
    )
