# SPDX-License-Identifier: Apache-2.0
"""A real before/after pair on the simulator: the simulated ratio beside the measured one, whatever it is.

Run as ``python -m tests.validation.real_pair``; needs ``GPADVISOR_REPORTS``. Machine code and launch come
from the report, the arguments from what it shows: both kernels multiply square matrices of 1024, since 32 x
128 blocks of 32 x 8 threads have one thread for each element, and 1,109.4 M sectors are what 1024 steps ask
for.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.simulations import program_of

from gpadvisor import machine
from gpadvisor.model.profile import KernelProfile
from gpadvisor.simulator import Argument, Simulation, SimulationConfig, argument_words, simulate
from gpadvisor.store.load import load_profile

REPORT = "rtx3090_gemm_naive.ncu-rep"
SIZE = 1024
_SIZE, _FLOAT, _POINTER = Argument("integer", 8, SIZE), Argument("float", 4, 1.0), Argument("pointer", 8)
ARGUMENTS = (_SIZE, _SIZE, _SIZE, _FLOAT, _POINTER, _SIZE, _POINTER, _SIZE, _FLOAT, _POINTER, _SIZE)
"""m, n, k, alpha, A, lda, B, ldb, beta, C, ldc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One of the two kernels, measured and simulated."""

    name: str
    measured: KernelProfile
    simulated: Simulation


def report_path() -> Path | None:
    """The report, where the real ones are at hand."""
    folder = os.environ.get("GPADVISOR_REPORTS")
    path = Path(folder, REPORT) if folder else None
    return path if path is not None and path.is_file() else None


def versions(path: Path, *, hit_rates: bool) -> list[Version]:
    """Both kernels, slow one first, with the default hit rates or with those that were measured."""
    profile = load_profile(path)
    found = []
    for kernel in profile.kernels:
        assert kernel.binary is not None
        launch, rates = kernel.launch, {}
        if hit_rates:
            measured = {
                "l1_hit_rate": kernel.metric("l1tex__t_sector_hit_rate.pct"),
                "l2_hit_rate": kernel.metric("lts__t_sector_hit_rate.pct"),
            }
            rates = {name: value / 100 for name, value in measured.items() if value is not None}
        config = SimulationConfig(
            grid=launch.grid,
            block=launch.block,
            sms=kernel.device.sms,
            arguments=argument_words(ARGUMENTS),
            **rates,
        )
        program = program_of(profile.binaries[kernel.binary])
        simulation = simulate(program, launch.kernel, machine.load(kernel.device.arch), config)
        name = (launch.demangled or launch.kernel).removeprefix("void ").partition("(")[0]
        found.append(Version(name=name, measured=kernel, simulated=simulation))
    return found


def ratio(found: list[Version]) -> tuple[float, float]:
    """Speedup of the second kernel over the first, measured and simulated."""
    before, after = found
    assert before.measured.launch.duration_ns is not None
    assert after.measured.launch.duration_ns is not None
    assert before.simulated.cycles is not None
    assert after.simulated.cycles is not None
    measured = before.measured.launch.duration_ns / after.measured.launch.duration_ns
    return measured, before.simulated.cycles / after.simulated.cycles


def executed(simulation: Simulation) -> int:
    """Warp instructions of the whole grid."""
    assert simulation.profile.counts is not None
    return int(simulation.profile.counts.warps.sum())


def report(path: Path) -> str:
    """Both ratios, with counts and times side by side."""
    lines = [f"## {path.name}: measured on {load_profile(path).kernels[0].device.name}, and simulated", ""]
    for title, hit_rates in (("default hit rates", False), ("hit rates as measured", True)):
        found = versions(path, hit_rates=hit_rates)
        for one in found:
            counted, cycles = one.measured.metric("smsp__inst_executed.sum"), one.simulated.cycles
            active = one.measured.metric("sm__cycles_active.avg")
            lines.append(
                f"{one.name:28} {title:22} warp instructions {counted:13,.0f} measured "
                f"{executed(one.simulated):13,} simulated; cycles {active:12,.0f} measured "
                f"{cycles:12,.0f} simulated"
            )
        measured, simulated = ratio(found)
        lines += [f"{'ratio':28} {title:22} {measured:.2f}x measured, {simulated:.2f}x simulated", ""]
    return "\n".join(lines)


def main() -> None:
    """Print the table, or why there is none."""
    path = report_path()
    if path is None:
        sys.stdout.write(f"no real pair: GPADVISOR_REPORTS names no folder with {REPORT}\n")
        return
    sys.stdout.write(report(path) + "\n")


if __name__ == "__main__":
    main()
