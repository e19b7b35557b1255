# SPDX-License-Identifier: Apache-2.0
"""What a kernel executed and moved: counters of the launch first, then sums over its instructions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import SECTOR_BYTES
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.views.columns import Columns, Floats
from gpadvisor.views.roofline.model import LANES, Basis, Figure, Lanes, Level

_INSTRUCTIONS: Final = "smsp__inst_executed.sum"
_ACTIVE: Final = "smsp__thread_inst_executed_per_inst_executed.ratio"
_PREDICATED: Final = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
_L1: Final = "l1tex__t_{}_pipe_lsu_mem_{}_op_{}.sum"
_SHARED: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_KINDS: Final = ("ld", "st", "atom", "red")
_L2: Final = "lts__t_sectors_srcunit_tex.sum"
_DRAM: Final = ("dram__sectors_read.sum", "dram__sectors_write.sum")
_DRAM_RATE: Final = "dram__bytes.sum.per_second"


def instructions(profile: KernelProfile) -> Figure | None:
    """W: instructions executed by warps; None where a profile counts none."""
    value = profile.metric(_INSTRUCTIONS)
    if value:
        return Figure(value, _basis(profile, Basis.REPORT), _INSTRUCTIONS)
    if profile.counts is None or not int(profile.counts.warps.sum()):
        return None
    return Figure(
        float(profile.counts.warps.sum()), _basis(profile, Basis.INSTRUCTIONS), "sum of inst_executed"
    )


def transactions(profile: KernelProfile, level: Level, rows: Columns | None, seconds: float) -> Figure | None:
    """Transactions of a level over the whole launch; None where nothing counts them."""
    if level is Level.L1_TAGS:
        return None if rows is None else _summed(profile, [rows.tags], "L1 tag requests")
    if level is Level.L1_SECTORS:
        return _sectors(profile, rows)
    if level is Level.SHARED:
        return _counters(profile, [_SHARED.format(kind) for kind in ("ld", "st", "atom")]) or (
            None if rows is None else _summed(profile, [rows.wavefronts], "wavefronts")
        )
    if level is Level.L2:
        return _counters(profile, [_L2])
    rate = profile.metric(_DRAM_RATE)
    by_rate = (
        None
        if rate is None
        else Figure(rate * seconds / SECTOR_BYTES, _basis(profile, Basis.REPORT), f"{_DRAM_RATE} * t / 32")
    )
    return _counters(profile, _DRAM) or by_rate


def _sectors(profile: KernelProfile, rows: Columns | None) -> Figure | None:
    """Sectors of global and local memory.

    The counters leave out asynchronous copies; where there are any, the larger of both counts is nearer.
    """
    names = [_L1.format("sectors", space, kind) for space in ("global", "local") for kind in _KINDS]
    counted = _counters(profile, names)
    if rows is None or (counted is not None and not _copies(rows)):
        return counted
    summed = _summed(profile, [rows.sectors, rows.local], "sectors")
    figures = [figure for figure in (counted, summed) if figure is not None]
    return max(figures, key=lambda figure: figure.value) if figures else None


def _copies(rows: Columns) -> bool:
    return any(
        instruction.info.opclass is OpcodeClass.ASYNC_COPY and rows.warps[row]
        for row, _, _, instruction in rows.rows()
    )


def requests(profile: KernelProfile) -> float | None:
    """Global loads, stores, atomics and reductions of warps."""
    figure = _counters(profile, [_L1.format("requests", "global", kind) for kind in _KINDS])
    return None if figure is None else figure.value


def global_sectors(profile: KernelProfile) -> float | None:
    """Sectors of global memory alone."""
    figure = _counters(profile, [_L1.format("sectors", "global", kind) for kind in _KINDS])
    return None if figure is None else figure.value


def lanes(profile: KernelProfile, rows: Columns | None) -> Lanes:
    """Lanes at work, of a mean instruction."""
    executed = float(rows.warps.sum()) if rows is not None else 0.0

    def mean(name: str, column: Floats | None, text: str) -> Figure | None:
        ratio = profile.metric(name)
        if ratio is not None:
            return Figure(ratio / LANES, _basis(profile, Basis.REPORT), f"{name} / {LANES}")
        if column is None or not executed:
            return None
        return Figure(
            float(column.sum()) / executed / LANES, _basis(profile, Basis.INSTRUCTIONS), f"sum of {text}"
        )

    return Lanes(
        active=mean(_ACTIVE, None if rows is None else rows.threads, "thread_inst_executed"),
        predicated=mean(_PREDICATED, None if rows is None else rows.true, "thread_inst_executed_true"),
    )


def _counters(profile: KernelProfile, names: Iterable[str]) -> Figure | None:
    counters = [(name, value) for name in names if (value := profile.metric(name)) is not None]
    if not counters:
        return None
    source = " + ".join(name for name, value in counters if value) or counters[0][0]
    return Figure(sum(value for _, value in counters), _basis(profile, Basis.REPORT), source)


def _summed(profile: KernelProfile, parts: list[Floats | None], text: str) -> Figure | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return Figure(
        float(np.sum(present)), _basis(profile, Basis.INSTRUCTIONS), f"sum of {text} over the instructions"
    )


def _basis(profile: KernelProfile, measured: Basis) -> Basis:
    return Basis.MODELLED if profile.evidence is Evidence.MODELLED else measured
