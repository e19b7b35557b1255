# SPDX-License-Identifier: Apache-2.0
"""Measured use of DRAM, caches, pipes and issue slots, and what it leaves for any cure to gain.

A unit that is busy for a share u of the run takes u of the time again after a cure that leaves its load
alone, so no such cure gains more than 1 / u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.utilisation import (
    DRAM,
    L1,
    L1_DATA,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    MEMORY,
    MEMORY_RESOURCES,
    TEXTURE,
)
from gpadvisor.model.advice import ReducedLoad, Utilisation
from gpadvisor.model.figures import percent, percentage

_PARTS: Final = {
    L1: (L1_DATA, L1_REQUESTS, L1_TO_L2),
    MEMORY: MEMORY_RESOURCES,
    "SHARED pipe": ("FP64 pipe", "FP16 pipe", "tensor pipe"),  # which share it, on sm_70
    "FMAHEAVY pipe": ("FMA pipe",),  # the half of it that multiplies integers, too
    "FMALITE pipe": ("FMA pipe",),
}


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that a cure can give, and why."""

    speedup: float
    reason: str


def cap_speedup(
    measured: Sequence[Utilisation], reduced_loads: Sequence[ReducedLoad], *, best: bool
) -> Cap | None:
    """The cap of the busiest unit after the cure; None where no unit was measured.

    Args:
        measured: what ``utilisations`` gave.
        reduced_loads: loads that the cure lowers.
        best: the cap of the high end: the share left then, and a unit that gets to its very peak. Otherwise
            it gets as far as units do in practice, or as far as one of this kernel's is already.
    """
    after = busiest_after(measured, reduced_loads, best=best)
    busiest = busiest_after(measured, ())
    if after is None or busiest is None or after.load <= 0:
        return None
    peak = 1.0 if best else max(constants.PRACTICAL_PEAK, busiest.load)
    text = unit_text(after.unit)
    if after.left < 1:
        text += f", of which {percent(after.left, 0)} would be left"
    return Cap(max(1.0, peak / after.load), text)


def unit_text(unit: Utilisation) -> str:
    """A unit and how full it is, with the metric that says so."""
    return f"{unit.name} is at {percentage(unit.percent)} of its peak ({unit.metric})"


@dataclass(frozen=True, slots=True)
class Busiest:
    """The unit that would limit a kernel, as a share of the present run time."""

    load: float
    unit: Utilisation
    left: float


def busiest_after(
    measured: Sequence[Utilisation], reduced_loads: Sequence[ReducedLoad], *, best: bool = False
) -> Busiest | None:
    """The unit with the largest load after a cure; None where none was measured."""
    worst: Busiest | None = None
    for entry in _limits(measured):
        time_left = _left(entry, measured, reduced_loads, best=best)
        load = min(1.0, entry.percent / 100) * time_left
        if worst is None or load > worst.load:
            worst = Busiest(load, entry, time_left)
    return worst


def _limits(measured: Sequence[Utilisation]) -> list[Utilisation]:
    """Every unit; L1 as a whole only where it is fuller than the parts of it that are known."""
    part = max((entry.percent for entry in measured if entry.name in _PARTS[L1]), default=0.0)
    return [
        utilisation
        for utilisation in measured
        if utilisation.name != L1 or utilisation.percent > part + constants.IN_USE_PERCENT
    ]


def _left(
    entry: Utilisation, measured: Sequence[Utilisation], reduced_loads: Sequence[ReducedLoad], *, best: bool
) -> float:
    """The share of a unit's load that a cure leaves; L1 as a whole stays as busy as the busiest of its parts.

    Its own counter may be a multiple of theirs: on sm_75 it is twice the busiest part's in real reports.
    """
    if not reduced_loads:
        return 1.0
    parts = [part for part in measured if entry.name == L1 and part.name in _PARTS[L1]]
    busiest = max((part.percent for part in parts), default=0.0)
    if not busiest:
        return remaining(entry.name, reduced_loads, best=best)
    return max(part.percent * remaining(part.name, reduced_loads, best=best) for part in parts) / busiest


_STAGES: Final = {DRAM: 0, L2: 1, **dict.fromkeys((L1, *_PARTS[L1], TEXTURE), 2)}
"""Units that work one behind the other; all others are the SM's own stage."""


def together(
    measured: Sequence[Utilisation], reduced_loads: Sequence[ReducedLoad], *, best: bool = False
) -> float:
    """The time that all units need together after a cure, as a share of the present run time.

    The busiest stage alone is the least, and what is taken at the high end of a range (``best``); stages that
    are nearly as busy do not overlap perfectly.
    """
    stages: dict[int, float] = {}
    for entry in _limits(measured):
        stage = _STAGES.get(entry.name, -1)
        time_left = _left(entry, measured, reduced_loads, best=best)
        stages[stage] = max(stages.get(stage, 0.0), min(1.0, entry.percent / 100) * time_left)
    if best or not stages:
        return max(stages.values(), default=0.0)
    return float(np.linalg.norm(list(stages.values()), constants.OVERLAP))


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The parts of the run time after a cure, as shares of the present one."""

    busy_now: float  # U: the busiest unit works for this share of the time
    busy: float  # U': what the work of all units takes then
    waiting: float  # W: what is left of the time by the samples alone, 1 / S of the paper's equations
    in_turn: tuple[float, float] = (0.0, 0.0)  # what a warp does in turn, at best and on average

    @property
    def apart(self) -> float:
        """Time if no wait that is left falls into the units' work: U' + (1 - U) W."""
        return max(self._sum, self.in_turn[1])

    @property
    def overlapped(self) -> float:
        """Time if the waits that are left and the units' work overlap: the longer of them."""
        return max(self.busy, self.in_turn[0], min(self.waiting, self._sum))

    @property
    def _sum(self) -> float:
        return max(self.busy + (1 - self.busy_now) * self.waiting, constants.LEAST_TIME)

    @property
    def expected(self) -> float:
        """The geometric mean of both."""
        return float(np.sqrt(self.apart * self.overlapped))


def time_left(
    measured: Sequence[Utilisation],
    reduced_loads: Sequence[ReducedLoad],
    waiting: float,
    *,
    best: bool = False,
    in_turn: tuple[float, float] = (0.0, 0.0),
) -> TimeLeft:
    """What a cure leaves of the run time: the work of the units, and the waits that are left.

    Differs from GPA: its Eqs. 2 and 4 are the case of idle units (U = U' = 0). That of a full one (U = 1) is
    the roofline, where only less work for the unit helps.

    Args:
        measured: what ``active_loads`` gave.
        reduced_loads: loads that the cure lowers.
        waiting: share of the samples that is left, 1 / S of the paper's equations.
        best: the high end of a range.
        in_turn: time for the instructions and the loads of a warp, one after the other, which units hid that
            are less busy then.
    """
    busy_now = together(measured, (), best=True)
    busy = min(busy_now, together(measured, reduced_loads, best=best))
    return TimeLeft(
        busy_now=busy_now, busy=busy, waiting=waiting, in_turn=in_turn if busy < busy_now else (0.0, 0.0)
    )


def remaining(resource: str, reduced_loads: Sequence[ReducedLoad], *, best: bool) -> float:
    """The share of a unit's load that a cure leaves.

    Where a unit is known only as a whole, what is left of its part counts for it, and the other way round.
    """
    names = {resource, *_PARTS.get(resource, ())}
    remaining = [
        max(0.0, reduced.remaining_best if best else reduced.remaining)
        for reduced in reduced_loads
        if reduced.resource in names or resource in _PARTS.get(reduced.resource, ())
    ]
    return min(remaining, default=1.0)
