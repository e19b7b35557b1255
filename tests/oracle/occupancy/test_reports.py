# SPDX-License-Identifier: Apache-2.0
"""Occupancy and caps against what Nsight Compute wrote into real reports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpadvisor import machine
from gpadvisor.advice.launches import chosen_launches
from gpadvisor.analyzer.occupancy import GRID, kernel_occupancy
from gpadvisor.errors import UnknownArchitectureError
from gpadvisor.estimators.utilisation import utilisations
from gpadvisor.model.profile import KernelProfile
from gpadvisor.store.load import load_profile

pytestmark = pytest.mark.reports

FOLDER = os.environ.get("GPADVISOR_REPORTS", "")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep")) if FOLDER else []


def launches(path: Path) -> list[KernelProfile]:
    return [
        chosen.profile for chosen in chosen_launches(load_profile(path)) if not chosen.profile.launch.failed
    ]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_limits_are_those_of_the_report(path: Path) -> None:
    for profile in launches(path):
        try:
            model = machine.load(profile.device.arch)
        except UnknownArchitectureError as error:
            pytest.skip(str(error))
        found = kernel_occupancy(model, None, profile)
        for resource in ("registers", "warps", "blocks"):
            theirs = profile.metric(f"launch__occupancy_limit_{resource}")
            if theirs is not None and resource in dict(found.limits):
                assert dict(found.limits)[resource] == theirs, (profile.launch.demangled, resource)
        percent = profile.metric("sm__maximum_warps_per_active_cycle_pct")
        if percent is not None and found.theoretical is not None and GRID not in dict(found.limits):
            assert 100 * found.theoretical == pytest.approx(percent, abs=0.1), profile.launch.demangled


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_busiest_unit_is_as_busy_as_the_speed_of_light_section_says(path: Path) -> None:
    for profile in launches(path):
        wholes = ("gpu__compute_memory_throughput", "sm__throughput")
        percents = [profile.metric(f"{name}.avg.pct_of_peak_sustained_elapsed") for name in wholes]
        known = [percent for percent in percents if percent is not None]
        found = utilisations(profile)
        if not known:
            continue
        assert found, profile.launch.demangled
        assert found[0].percent >= max(known) - 1.5, profile.launch.demangled
