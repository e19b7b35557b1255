# SPDX-License-Identifier: Apache-2.0
"""Which rules the blamer follows: today's hardware, the printed paper, or GPA's released code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.model.kind import Kind


class PathMean(Kind):
    """Which length stands for several paths from a def to a use (Eq. 1)."""

    LONGEST = "longest"  # the paper
    AVERAGE = "average"  # the released code


class Budget(Kind):
    """What the latency rule counts on a path from a fixed-latency def."""

    INSTRUCTIONS = "instructions"  # 1 each, as the paper says
    CYCLES = "cycles"  # stall counts of the control codes


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRules:
    """Parameters of the blamer; ``DEFAULT_RULES``, ``PAPER`` and ``GPA2021`` are the sets in use."""

    name: str
    wait_mask: bool
    """Scoreboard stalls come only from what the waited scoreboards count; fine reasons are told apart."""
    path: PathMean = PathMean.LONGEST
    predicated_readers: bool = False
    """Whether a reader under a predicate ends a path as well (the paper: only unguarded readers)."""
    barrier_rule: bool = False
    """Cut a def that sets both a write and a read barrier if the use waits on neither."""
    constants_are_memory: bool = True
    """Whether constant loads compete for memory stalls (the paper's Fig. 4) or for execution stalls."""
    atomics_are_memory: bool = True
    """Whether atomics compete for memory stalls; the released code knows loads only."""
    fixed_latency_is_minimum: bool = False
    """Whether the latency rule takes the least latency of a fixed-latency def (the paper: its latency)."""
    variable_budget: Budget = Budget.INSTRUCTIONS
    """What the latency rule counts behind a variable-latency def."""
    memory_bound_cycles: int | None = None
    """Upper bound of memory latencies; that of the machine table where None."""
    unsampled_issues: int = 1
    """Issued samples of a def that has none."""
    leftovers_on_use: bool = False
    """Execution stalls without a source stay on the sampled instruction, as GPA's IDEP_SCHE."""
    synchronization_by_address: bool = False
    """A synchronization stall behind a barrier goes to the instruction before it by address."""


DEFAULT_RULES: Final = BlameRules(name="gpadvisor", wait_mask=True)
"""What reports of sm_70 and newer allow: wait masks and fine stall reasons.

Differs from GPA: a scoreboard stall is linked to what its scoreboards count, not to what its registers need;
wait stalls go to the producer whose latency was still running, else to the stall count before them.
"""

PAPER: Final = BlameRules(name="paper", wait_mask=False)
"""Section IV as printed."""

GPA2021: Final = BlameRules(
    name="gpa2021",
    wait_mask=False,
    path=PathMean.AVERAGE,
    predicated_readers=True,
    barrier_rule=True,
    constants_are_memory=False,
    atomics_are_memory=False,
    fixed_latency_is_minimum=True,
    variable_budget=Budget.CYCLES,
    memory_bound_cycles=1024,
    unsampled_issues=32,
    leftovers_on_use=True,
    synchronization_by_address=True,
)
"""GPA's released code of 2021.

Differs from GPA: memory stalls without a source are kept as unattributed instead of being lost; counts are
apportioned exactly instead of being truncated; averages over paths come from dynamic programming.
"""
