# SPDX-License-Identifier: Apache-2.0
"""The command line that makes Nsight Compute collect what the engine needs, and nothing else.

Options: NVIDIA, "Nsight Compute CLI", sections Launch, Profile, Sampling and File.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolFailedError
from gpadvisor.profiler.ncu.abilities import Abilities
from gpadvisor.profiler.ncu.options import NcuOptions

SECTIONS: Final = (
    "LaunchStats",  # grid, block, registers, shared memory
    "SpeedOfLight",  # DRAM, L2 and L1 utilisation, clocks
    "Occupancy",  # achieved occupancy
    "ComputeWorkloadAnalysis",  # issue and pipe utilisation
    "MemoryWorkloadAnalysis",  # L1 requests, and how full L2 is
    "SourceCounters",  # samples, executed counts and sectors by instruction
)
TABLES: Final = "MemoryWorkloadAnalysis_Tables"
"""Sectors of L1, L2 and DRAM by kind, for the roofline and for what is left of their load."""
_WITH_TABLES: Final = (2021, 1)
"""The version from which on the section is asked for; whether earlier ones have it was not seen."""
SAMPLE_METRICS: Final = (
    "group:smsp__pcsamp_warp_stall_reasons",
    "group:smsp__pcsamp_warp_stall_reasons_not_issued",
    "smsp__pcsamp_sample_count",
)
COUNT_METRICS: Final = ("inst_executed", "thread_inst_executed")


def command_line(
    ncu: Abilities, options: NcuOptions, *, report: Path, log: Path, application: Sequence[str]
) -> tuple[str, ...]:
    """The arguments, program first.

    Raises:
        ToolFailedError: this copy lacks an option that the request cannot do without.
    """
    return (
        str(ncu.path),
        *_surroundings(ncu, options),
        *_launches(ncu, options),
        *_what(ncu, options),
        *_sources(ncu, options),
        "--export",
        str(report),
        "--force-overwrite",
        "--log-file",
        str(log),
        *application,
    )


def expectation(options: NcuOptions) -> str:
    """What collecting costs, said before it starts."""
    if options.samples_only:
        return "one pass over each profiled launch: samples only"
    if options.counts_only:
        return "each profiled launch runs with instrumented code: executed counts only"
    return (
        "each profiled launch is replayed several times, its memory saved and restored in between; ncu says "
        "how often with the first one, and --samples-only needs one pass"
    )


def _surroundings(ncu: Abilities, options: NcuOptions) -> list[str]:
    arguments = []
    # A configuration file in the project's folder could change anything below.
    if ncu.first("config-file"):
        arguments += ["--config-file", "off"]
    if ncu.first("target-processes"):
        arguments += ["--target-processes", "all" if options.child_processes else "application-only"]
    return arguments


def _launches(ncu: Abilities, options: NcuOptions) -> list[str]:
    arguments = []
    if options.kernel is not None:
        # The prefix came with --kernel-name-base; before, expressions had an option of their own.
        if "kernel-regex" in ncu.options:
            arguments += ["--kernel-regex", options.kernel]
        else:
            arguments += ["--kernel-name", f"regex:{options.kernel}"]
    if options.launch_skip:
        arguments += ["--launch-skip", str(options.launch_skip)]
    if options.launch_count is not None:
        arguments += ["--launch-count", str(options.launch_count)]
    return arguments


def _what(ncu: Abilities, options: NcuOptions) -> list[str]:
    if options.counts_only:
        return ["--section", "LaunchStats", "--metrics", ",".join(COUNT_METRICS)]
    arguments = []
    if options.samples_only:
        arguments += ["--section", "LaunchStats", "--metrics", ",".join(SAMPLE_METRICS)]
    else:
        for section in (*SECTIONS, *([TABLES] if ncu.version >= _WITH_TABLES else [])):
            arguments += ["--section", section]
    if options.interval is not None:
        option = ncu.first("warp-sampling-interval", "sampling-interval")
        if option is None:
            raise ToolFailedError(f"{ncu} has no option for the sampling interval; leave --period away")
        arguments += [option, str(options.interval)]
    return arguments


def _sources(ncu: Abilities, options: NcuOptions) -> list[str]:
    arguments = []
    if ncu.first("import-source"):
        arguments += ["--import-source", "yes"]
    if options.source_folders and ncu.first("source-folders"):
        arguments += ["--source-folders", ",".join(str(folder) for folder in options.source_folders)]
    return arguments
