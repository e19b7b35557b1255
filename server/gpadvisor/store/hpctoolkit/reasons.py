# SPDX-License-Identifier: Apache-2.0
"""Stall reasons as HPCToolkit names them: the twelve of CUPTI's activity API.

Several reasons of today were one then. They keep their old meaning here; ``blamer.old_reasons`` refines them
where the machine code leaves one.
"""

from __future__ import annotations

from typing import Final

from gpadvisor.model.stalls import OLD_REASONS, StallClass, StallReason, stall_reason

COUNTERS: Final = (("GCYCLES:ISU", "GCYCLES:STL:"), ("GINS", "GINS:STL_"))
"""The metric of all samples, and the beginning of those of latency samples by reason; the newest first.

Of NVIDIA's GPUs, ``GCYCLES:ISU`` has all samples (those of ``GSAMP:TOT``); ``GCYCLES`` has them and, once
more, the latency samples.
"""
_SUMS: Final = frozenset({"ANY"})
_NAMES: Final = {
    "IFET": "instruction_fetch",
    "IDEP": "execution_dependency",
    "GMEM": "memory_dependency",
    "TMEM": "tex_throttle",
    "SYNC": "synchronization",
    "CMEM": "imc_miss",
    "PIPE": "pipe_busy",
    "MTHR": "memory_throttle",
    "NSEL": "not_selected",
    "NONE": "selected",
    "SLP": "sleeping",
    "OTHR": "misc",
}
NOT_RECORDED: Final = StallReason(
    "not_recorded", StallClass.NOT_RECORDED, "sampled while the scheduler issued; the reason was not recorded"
)
"""Of samples that are none of latency: HPCToolkit keeps their number, and no reason."""


def reason_of(metric: str, prefix: str) -> StallReason | None:
    """The reason that a metric counts latency samples of; None of one that counts something else."""
    short = metric.removeprefix(prefix)
    if short == metric or short in _SUMS:
        return None
    name = _NAMES.get(short, short.lower())
    return OLD_REASONS.get(name) or stall_reason(name)
