# SPDX-License-Identifier: Apache-2.0
"""The samples a match stands on: its blame rows, each counted once."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.advice import Match
from gpadvisor.model.blame import Blame
from gpadvisor.model.stalls import StallClass

_TURNS = frozenset({StallClass.NOT_SELECTED, StallClass.PIPE_THROTTLE})
_OWN = frozenset({StallClass.ISSUED, StallClass.FIXED_LATENCY})
_OTHERS = _TURNS | {StallClass.MEMORY_THROTTLE}


def matched_rows(match: Match) -> NDArray[np.intp]:
    """Indices into ``Blame.rows`` of all regions, ascending, each once."""
    if not match.regions:
        return np.empty(0, dtype=np.intp)
    return np.unique(np.concatenate([region.rows for region in match.regions])).astype(np.intp)


def matched_samples(blame: Blame, match: Match) -> int:
    """M of the paper."""
    return int(blame.rows.samples[matched_rows(match)].sum())


def matched_latency(blame: Blame, match: Match) -> int:
    """M^L of the paper."""
    return int(blame.rows.latency[matched_rows(match)].sum())


def waiting_in_turn(blame: Blame) -> NDArray[np.bool_]:
    """Rows of warps that were ready and waited for others: for an issue slot or for a pipe."""
    return _of(blame, _TURNS)


def waiting_for_others(blame: Blame) -> NDArray[np.bool_]:
    """The same, with those that waited for a place in a queue of the SM's memory units."""
    return _of(blame, _OTHERS)


def own_execution(blame: Blame) -> float:
    """Of a warp's time the share in which it issues, or waits out the latency of its own arithmetic."""
    own = int(blame.rows.samples[_of(blame, _OWN)].sum())
    return own / blame.total_samples if blame.total_samples else 0.0


def _of(blame: Blame, classes: Collection[StallClass]) -> NDArray[np.bool_]:
    waits = np.array([reason.stall_class in classes for reason in blame.reasons], dtype=bool)
    if not waits.any():
        return np.zeros(len(blame.rows), dtype=bool)
    return np.asarray(waits[blame.rows.reason], dtype=bool)
