# SPDX-License-Identifier: Apache-2.0
"""Launches of one report that do the same work as another in less time: a measured answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.utilisation import DRAM, utilisations
from gpadvisor.evidence.queries import counted
from gpadvisor.machine import every_gpu
from gpadvisor.model.profile import KernelProfile, Launch

_BYTES: Final = (("dram__bytes.sum",), ("dram__bytes_read.sum", "dram__bytes_write.sum"))
_BYTE_RATE: Final = "dram__bytes.sum.per_second"
_INSTRUCTIONS: Final = ("smsp__inst_executed.sum", "sm__inst_executed.sum", "inst_executed")


def faster_launch(entry: KernelProfile, profiles: Sequence[KernelProfile]) -> Launch | None:
    """The launch of a kernel that does what another does in notably less time; None where none is known to.

    The code is the same; what they launch differs. They move as many bytes of DRAM, more than L2 holds, or
    keep DRAM busy for as long, and execute as many instructions, where that was counted. Of equally
    fast ones it is the one with the least other launch.
    """
    current = entry.launch
    launches = [
        profile.launch
        for profile in profiles
        if not profile.launch.failed
        and profile.launch.duration_ns
        and _shape(profile.launch) != _shape(current)
        and profile.launch.registers_per_thread == current.registers_per_thread
        and profile.device.name == entry.device.name
        and _same_work(entry, profile)
    ]
    best = min((launch.duration_ns or 0.0 for launch in launches), default=0.0)
    if not best or not current.duration_ns or current.duration_ns < constants.UNSURE * best:
        return None
    near = [launch for launch in launches if (launch.duration_ns or 0.0) <= (1 + constants.RUN_TO_RUN) * best]
    return min(
        near,
        key=lambda launch: (launch.grid != current.grid, launch.block != current.block, launch.duration_ns),
    )


def faster_words(launch: Launch, faster: Launch) -> str:
    """``4096 blocks of 256 threads do the same in 4.47 ms``; of the same grid without a number of blocks."""
    blocks = "Blocks" if faster.grid == launch.grid else counted(faster.blocks, "block")
    time = (faster.duration_ns or 0.0) / 1e6
    text = f"{time:.2f} ms" if time >= 1 else f"{1000 * time:.1f} us"
    return (
        f"{blocks} of {counted(faster.threads_per_block, 'thread')} do the same in {text} "
        f"(launch {faster.index} of the report)"
    )


def _shape(launch: Launch) -> tuple[object, ...]:
    return launch.grid, launch.block, launch.dynamic_shared_bytes


def _same_work(profile: KernelProfile, counterpart: KernelProfile) -> bool:
    """Whether bytes, and instructions where both were counted, tell of the same work."""
    moved = _moved(profile), _moved(counterpart)
    if min(moved) <= (profile.device.l2_bytes or 0):
        moved = _busy(profile), _busy(counterpart)
    pairs = moved, (_executed(profile), _executed(counterpart))
    return min(moved) > 0 and all(max(pair) <= constants.ABOUT * min(pair) for pair in pairs if min(pair) > 0)


def _moved(entry: KernelProfile) -> float:
    """Bytes between DRAM and L2; 0 where not counted."""
    for names in _BYTES:
        values = [entry.metric(name) for name in names]
        if all(value is not None for value in values):
            return sum(value or 0.0 for value in values)
    return (entry.metric(_BYTE_RATE) or 0.0) * (entry.launch.duration_ns or 0.0) / 1e9


def _busy(entry: KernelProfile) -> float:
    """Nanoseconds that DRAM would be busy at its peak; 0 where that is not surely more than L2 holds."""
    percent = next(
        (utilisation.percent for utilisation in utilisations(entry) if utilisation.name == DRAM), 0.0
    )
    busy = percent * (entry.launch.duration_ns or 0.0) / 100
    return busy if busy * every_gpu().least_dram_bytes_per_ns > (entry.device.l2_bytes or 0) else 0.0


def _executed(entry: KernelProfile) -> float:
    """Instructions of warps; 0 where not counted."""
    return next((value for name in _INSTRUCTIONS if (value := entry.metric(name))), 0.0)
