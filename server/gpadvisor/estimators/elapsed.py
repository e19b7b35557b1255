# SPDX-License-Identifier: Apache-2.0
"""How much of a launch's time its warps fill: what a stall cure reaches, and what only a launch changes.

Differs from GPA: its equations scale the whole kernel. Samples are taken of resident warps, so a cure of
their stalls leaves what passes before the first block, after the last one and between blocks as it is.
"""

from __future__ import annotations

from typing import Final

from gpadvisor.model.profile import KernelProfile

_ELAPSED: Final = ("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg", "gpc__cycles_elapsed.max")


def elapsed_cycles(profile: KernelProfile) -> float | None:
    """SM cycles from the start of the launch to its end; None where the profile does not count them."""
    return next((cycles for name in _ELAPSED if (cycles := profile.metric(name))), None)


def active_share(profile: KernelProfile) -> float | None:
    """Of the elapsed cycles the share in which the longest busy SM holds a warp, in (0, 1].

    It is the time that a stall cure reaches: an SM without work does not make the others faster. Where only
    the mean over all SMs is counted, the work is taken to be spread evenly over those that have a block.

    Returns:
        None where the profile does not count active and elapsed cycles.
    """
    elapsed = elapsed_cycles(profile)
    active = profile.metric("sm__cycles_active.max")
    if not active:
        mean, sms = profile.metric("sm__cycles_active.avg"), profile.device.sms
        if not mean or not sms or profile.launch.blocks < 1:
            return None
        active = mean * sms / min(sms, profile.launch.blocks)
    # The counters are of different replays of the kernel, which are not of one length to the cycle.
    return min(1.0, active / elapsed) if elapsed else None


def mean_active_share(profile: KernelProfile) -> float | None:
    """Of the elapsed cycles the share in which an SM holds a warp, as the mean over all SMs, in (0, 1].

    Returns:
        None where the profile does not count active and elapsed cycles.
    """
    elapsed, active = elapsed_cycles(profile), profile.metric("sm__cycles_active.avg")
    return min(1.0, active / elapsed) if elapsed and active else None


def whole(speedup: float, share: float) -> float:
    """The speedup of a run of which ``share`` of the time gets ``speedup`` times faster (Amdahl)."""
    return 1 / (1 - share + share / speedup)
