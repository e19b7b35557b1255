# SPDX-License-Identifier: Apache-2.0
"""Where a kernel's samples went: totals, and one row per stall reason. Nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpadvisor.advice.waits import named_wait
from gpadvisor.model.advice import SampleSummary, StallSummary
from gpadvisor.model.blame import Blame, CodeArea, Role
from gpadvisor.model.profile import EXTERNAL, KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.model.stalls import StallReason


def stall_summaries(
    program: Program, profile: KernelProfile | None, blame: Blame | None
) -> tuple[StallSummary, ...]:
    """One row per reason that has samples, heaviest first; the three roles add up to the samples."""
    if blame is not None:
        rows = [_blamed_row(program, blame, index) for index in range(len(blame.reasons))]
    elif profile is not None:
        rows = [_unblamed_row(profile, index, reason) for index, reason in enumerate(profile.reasons)]
    else:
        rows = []
    return tuple(sorted((row for row in rows if row.samples), key=lambda row: (-row.samples, row.reason)))


def sample_summary(
    profile: KernelProfile | None, blame: Blame | None, stalls: Sequence[StallSummary]
) -> SampleSummary:
    """The sums over all reasons, and what of them lies outside the cubin or behind an EXIT."""
    total, latency = sum(row.samples for row in stalls), sum(row.latency for row in stalls)
    external = after_exit = 0
    if blame is not None:
        external = int(blame.rows.samples[blame.rows.place == CodeArea.EXTERNAL.value].sum())
        after_exit = int(blame.rows.samples[blame.rows.place == CodeArea.AFTER_EXIT.value].sum())
    elif profile is not None:
        external = int(profile.samples.total[profile.samples.section == EXTERNAL].sum())
    return SampleSummary(
        total=total,
        latency=latency,
        active=total - latency,
        blamed=sum(row.blamed for row in stalls),
        self=sum(row.self for row in stalls),
        unattributed=sum(row.unattributed for row in stalls),
        external=external,
        after_exit=after_exit,
        truncated=profile is not None and profile.sampling.truncated,
        expected=None if profile is None else profile.sampling.expected_samples,
    )


def _blamed_row(program: Program, blame: Blame, index: int) -> StallSummary:
    rows, reason = blame.rows, blame.reasons[index]
    of_reason = rows.reason == index
    samples = {role: int(rows.samples[of_reason & (rows.role == role.value)].sum()) for role in Role}
    latency = {role: int(rows.latency[of_reason & (rows.role == role.value)].sum()) for role in Role}
    return StallSummary(
        reason=reason.name,
        plain=named_wait(program, blame, index) or reason.plain,
        samples=sum(samples.values()),
        latency=sum(latency.values()),
        blamed=samples[Role.BLAMED],
        self=samples[Role.SELF],
        unattributed=samples[Role.UNATTRIBUTED],
        blamed_latency=latency[Role.BLAMED],
        self_latency=latency[Role.SELF],
        unattributed_latency=latency[Role.UNATTRIBUTED],
    )


def _unblamed_row(profile: KernelProfile, index: int, reason: StallReason) -> StallSummary:
    """Samples of code that could not be analysed: no source was found for any dependency."""
    of_reason = profile.samples.reason == index
    samples = int(profile.samples.total[of_reason].sum(dtype=np.uint64))
    latency = int(profile.samples.latency[of_reason].sum(dtype=np.uint64))
    depends = reason.stall_class.is_dependency
    return StallSummary(
        reason=reason.name,
        plain=reason.plain,
        samples=samples,
        latency=latency,
        blamed=0,
        self=0 if depends else samples,
        unattributed=samples if depends else 0,
        blamed_latency=0,
        self_latency=0 if depends else latency,
        unattributed_latency=latency if depends else 0,
    )
