# SPDX-License-Identifier: Apache-2.0
"""The time left when a cure takes load off units: the busiest of them then, and what none fills today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpadvisor.estimators.caps import busiest_after, unit_text
from gpadvisor.estimators.utilisation import L1_DATA, L1_REQUESTS, PIPES
from gpadvisor.model.advice import MeasuredBound, ReducedLoad, Utilisation
from gpadvisor.model.figures import percent
from gpadvisor.model.instruction import Pipe

Left = Mapping[str, float]
"""By unit (``Utilisation.name``) the share of its load that a cure leaves; one not named keeps all of it."""

LSU_PIPE: Final = PIPES[Pipe.LSU]
L1_UNITS: Final = (L1_DATA, L1_REQUESTS, LSU_PIPE)
"""What accesses load on their way through L1, whose load as a whole follows that of its parts."""


def unit_bound(
    measured: Sequence[Utilisation], least: Left, expected: Left, most: Left, what: str
) -> MeasuredBound | None:
    """The ends of a range from three outcomes of a cure; None where no unit was measured.

    The busiest unit sets the pace. Time that it does not fill (latency that nothing hides) stays; at the high
    end it shrinks as the unit's load does.

    Args:
        measured: what ``measured_loads`` gave.
        least: what the cure leaves at the low end.
        expected: what it is expected to leave.
        most: what it leaves at the high end.
        what: the change, in words.
    """
    current, low, then, high = (
        busiest_after(measured, as_reduced_loads(remaining, remaining))
        for remaining in ({}, least, expected, most)
    )
    if current is None or low is None or then is None or high is None or not current.load:
        return None
    unfilled = 1.0 - current.load
    middle = 1 / (then.load + unfilled)
    return MeasuredBound(
        low=1 / (low.load + unfilled),
        expected=middle,
        high=max(current.load / high.load, middle),
        reason=f"{what}; {unit_text(current.unit)}, then "
        f"{'still it' if then.unit.name == current.unit.name else then.unit.name} limits, at "
        f"{percent(then.load, 0)} of the present time ({then.unit.metric})",
    )


def as_reduced_loads(expected: Left, most: Left) -> tuple[ReducedLoad, ...]:
    """The same for the caps of the other estimates."""
    return tuple(
        ReducedLoad(resource=name, remaining=share, remaining_best=min(share, most.get(name, share)))
        for name, share in expected.items()
        if share < 1.0
    )
