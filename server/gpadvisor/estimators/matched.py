# SPDX-License-Identifier: Apache-2.0
"""The samples a match stands on: its blame rows, each counted once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.advice import Match
from gpadvisor.model.blame import Blame


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
