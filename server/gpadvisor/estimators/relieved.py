# SPDX-License-Identifier: Apache-2.0
"""The time left when a cure takes load off units: the busiest of them then, and what none fills today."""

from __future__ import annotations

from collections.abc import Mapping
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
    found = [
        (min(1.0, entry.percent / 100) * (1.0 if left is None else left.get(entry.name, 1.0)), entry)
        for entry in _units(profile)
    ]
    return max(found, key=lambda pair: pair[0], default=None)


def _units(profile: KernelProfile) -> list[Utilisation]:
    """The measured units; L1 as a whole only where none of its parts that are known is as full."""
    found = utilisations(profile)
    part = max((entry.percent for entry in found if entry.name in _L1_PARTS), default=0.0)
    return [entry for entry in found if entry.name != L1 or entry.percent > part + _SAME_PERCENT]


def speedup_of(profile: KernelProfile, left: Left) -> float | None:
    """What a cure gives if the busiest unit sets the pace; None where no unit was measured.

    Time that the busiest unit does not fill (latency that nothing hides, the first and the last wave) stays.
    """
    now, after = busiest(profile), busiest(profile, left)
    if now is None or after is None:
        return None
    return 1.0 / (after[0] + 1.0 - now[0])


def relieved_bound(
    profile: KernelProfile, least: Left, expected: Left, most: Left, what: str
) -> MeasuredBound | None:
    """The three ends of a range from three outcomes of a cure; None where no unit was measured."""
    found = [speedup_of(profile, left) for left in (least, expected, most)]
    now, then = busiest(profile), busiest(profile, expected)
    if now is None or then is None or any(one is None for one in found):
        return None
    low, middle, high = sorted(one for one in found if one is not None)
    limit = (
        f"it stays at {100 * then[0]:.0f} % of the present time"
        if then[1] is now[1]
        else f"then {then[1].name} limits, at {100 * then[0]:.0f} % of the present time ({then[1].metric})"
    )
    return MeasuredBound(
        low=low,
        expected=middle,
        high=high,
        reason=f"{what}; {now[1].name} is at {now[1].percent:.0f} % of its peak ({now[1].metric}), {limit}",
    )


def as_reliefs(expected: Left, most: Left) -> tuple[Relief, ...]:
    """The same for the caps of the other estimates."""
    return tuple(
        Relief(resource=name, remaining=share, remaining_best=min(share, most.get(name, share)))
        for name, share in expected.items()
        if share < 1.0
    )
