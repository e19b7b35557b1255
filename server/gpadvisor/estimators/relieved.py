# SPDX-License-Identifier: Apache-2.0
"""The time left when a cure takes load off units: the busiest of them then, and what none fills today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpadvisor.estimators.caps import L1, L1_DATA, L1_REQUESTS, PIPES, utilisations
from gpadvisor.model.advice import MeasuredBound, Relief, Utilisation
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.profile import KernelProfile

Left = Mapping[str, float]
"""By unit (``Utilisation.name``) the share of its load that a cure leaves; one not named keeps all of it."""

LSU_PIPE: Final = PIPES[Pipe.LSU]
L1_UNITS: Final = (L1, L1_DATA, L1_REQUESTS, LSU_PIPE)

_L1_PARTS: Final = (L1_DATA, L1_REQUESTS)
_SAME_PERCENT: Final = 2.0
"""L1 as a whole is the fullest of its parts, but for rounding and the time that a share is taken of."""


def busiest(profile: KernelProfile, left: Left | None = None) -> tuple[float, Utilisation] | None:
    """The load of the busiest unit as a share of the present time, after a cure where one is given."""
    units = utilisations(profile)
    parts = [entry for entry in units if entry.name in _L1_PARTS]
    fullest = max((entry.percent for entry in parts), default=0.0)
    found = [
        (min(1.0, entry.percent / 100) * _share(entry, parts, left or {}), entry)
        for entry in units
        if entry.name != L1 or entry.percent > fullest + _SAME_PERCENT
    ]
    return max(found, key=lambda pair: pair[0], default=None)


def _share(entry: Utilisation, parts: Sequence[Utilisation], left: Left) -> float:
    """What a cure leaves of a unit's load; L1 as a whole stays as busy as the busiest of its known parts."""
    now = max((part.percent for part in parts), default=0.0)
    if entry.name != L1 or not now:
        return left.get(entry.name, 1.0)
    return max(part.percent * left.get(part.name, 1.0) for part in parts) / now


def relieved_bound(
    profile: KernelProfile, least: Left, expected: Left, most: Left, what: str
) -> MeasuredBound | None:
    """The ends of a range from three outcomes of a cure; None where no unit was measured.

    The busiest unit sets the pace. Time that it does not fill (latency that nothing hides, the first and the
    last wave) stays; at the high end it shrinks as the unit's load does.
    """
    now = busiest(profile)
    outcomes = [busiest(profile, left) for left in (least, expected, most)]
    then = outcomes[1]
    if now is None or then is None or not now[0]:
        return None
    after = [outcome[0] for outcome in outcomes if outcome is not None]
    unfilled = 1.0 - now[0]
    limit = f"at {100 * then[0]:.0f} % of the present time ({then[1].metric})"
    return MeasuredBound(
        low=1 / (after[0] + unfilled),
        expected=1 / (after[1] + unfilled),
        high=max(now[0] / after[2], 1 / (after[1] + unfilled)),
        reason=f"{what}; {now[1].name} is at {now[1].percent:.0f} % of its peak ({now[1].metric}), then "
        f"{'still it' if then[1].name == now[1].name else then[1].name} limits, {limit}",
    )


def as_reliefs(expected: Left, most: Left) -> tuple[Relief, ...]:
    """The same for the caps of the other estimates."""
    return tuple(
        Relief(resource=name, remaining=share, remaining_best=min(share, most.get(name, share)))
        for name, share in expected.items()
        if share < 1.0
    )
