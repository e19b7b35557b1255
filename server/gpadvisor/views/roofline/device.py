# SPDX-License-Identifier: Apache-2.0
"""Peaks of the device of a launch: from the report first, then from the driver, then from tables."""

from __future__ import annotations

from typing import Final

from gpadvisor.evidence.measured import DRAM_CLOCK, DRAM_WIDTH, RUN_CLOCK, specified_dram
from gpadvisor.model.machine import SECTOR_BYTES, MachineModel
from gpadvisor.model.profile import Device, KernelProfile
from gpadvisor.views.roofline.model import Basis, Figure, Level

_SECTORS_PER_CYCLE: Final = 4
"""Of an SM's L1: a line of 128 bytes in each cycle."""


def _metric(profile: KernelProfile, *names: str) -> Figure | None:
    values = ((name, profile.metric(name)) for name in names)
    return next((Figure(value, Basis.REPORT, name) for name, value in values if value), None)


def _attribute(value: float | None, source: str) -> Figure | None:
    return Figure(value, Basis.ATTRIBUTE, source) if value else None


def _product(*parts: Figure | None) -> Figure | None:
    """The product with the weakest of the bases."""
    figures = [part for part in parts if part is not None]
    if len(figures) < len(parts):
        return None
    value = 1.0
    for part in figures:
        value *= part.value
    weakest = max((part.basis for part in figures), key=list(Basis).index)
    return Figure(value, weakest, " * ".join(part.source for part in figures))


def sms(profile: KernelProfile) -> Figure | None:
    """Streaming multiprocessors."""
    name = "device__attribute_multiprocessor_count"
    return _metric(profile, name) or _attribute(profile.device.sms, "SMs of the device")


def run_clock(profile: KernelProfile) -> Figure | None:
    """Cycles per second of the run; tools often lock the clock below its maximum."""
    return _metric(profile, *RUN_CLOCK) or _attribute(profile.device.clock_hz, "clock of the device")


def issue_per_cycle(profile: KernelProfile, machine: MachineModel) -> Figure:
    """Warp instructions that an SM issues in a cycle: one for each scheduler."""
    name = "device__attribute_max_ipc_per_multiprocessor"
    schedulers = machine.sm.schedulers
    return (
        _metric(profile, name)
        or _attribute(profile.device.schedulers_per_sm, "schedulers of an SM")
        or Figure(schedulers.value, Basis.TABLE, f"schedulers of {machine.arch} ({schedulers.source})")
    )


def issue_peaks(profile: KernelProfile, machine: MachineModel) -> tuple[Figure | None, Figure | None]:
    """Warp instructions per second at the clock of the run, and at the maximum clock."""
    name = "device__attribute_max_gpu_frequency_khz"
    khz = profile.metric(name)
    maximum = None if not khz else Figure(1e3 * khz, Basis.REPORT, name)
    figure = issue_per_cycle(profile, machine)
    return _product(sms(profile), figure, run_clock(profile)), _product(sms(profile), figure, maximum)


def dram_seen(profile: KernelProfile) -> Figure | None:
    """Bytes per second by the report's counters; up to 4 % too many where they are of two passes."""
    per_cycle = _metric(profile, "dram__bytes.sum.peak_sustained")
    return _product(per_cycle, _metric(profile, "dram__cycles_elapsed.avg.per_second"))


def dram_specified(profile: KernelProfile) -> Figure | None:
    """Bytes per second from the memory clock and the width of the bus."""
    rate = specified_dram(profile)
    return None if rate is None else Figure(rate, Basis.REPORT, f"2 * {DRAM_CLOCK} * {DRAM_WIDTH} / 8")


def _dram(profile: KernelProfile) -> Figure | None:
    """The lower of both, in bytes per second."""
    figures = [figure for figure in (dram_seen(profile), dram_specified(profile)) if figure is not None]
    if figures:
        return min(figures, key=lambda figure: figure.value)
    return _from_share(profile, "dram__bytes", Figure(1.0, Basis.REPORT, "bytes"))


def _from_share(profile: KernelProfile, base: str, size: Figure) -> Figure | None:
    """What a counter's rate would be at its peak, from the rate and the share of the peak that it is."""
    rate = profile.metric(f"{base}.sum.per_second")
    for suffix in (".avg", ".sum"):
        share = profile.metric(f"{base}{suffix}.pct_of_peak_sustained_elapsed")
        if rate and share:
            source = f"{base}.sum.per_second / {base}{suffix}.pct_of_peak_sustained_elapsed"
            return Figure(rate * size.value / share * 100, Basis.REPORT, source)
    return None


def level_peak(profile: KernelProfile, level: Level) -> Figure | None:
    """Transactions per second that a level can do, at the clock of the run; None where nothing says so."""
    if level is Level.DRAM:
        figure = _dram(profile)
        return (
            None
            if figure is None
            else Figure(figure.value / SECTOR_BYTES, figure.basis, f"{figure.source} / 32")
        )
    if level is Level.L2:
        return _from_share(profile, "lts__t_sectors", Figure(1.0, Basis.REPORT, "sectors"))
    per_cycle = _SECTORS_PER_CYCLE if level is Level.L1_SECTORS else 1
    text = f"{per_cycle} for each SM and cycle (128 bytes)"
    return _product(sms(profile), run_clock(profile), Figure(per_cycle, Basis.TABLE, text))


def device_name(device: Device) -> str:
    """The device as a reader knows it."""
    return device.name or device.arch
