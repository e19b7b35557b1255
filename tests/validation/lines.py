# SPDX-License-Identifier: Apache-2.0
"""Recovered lines against line tables: how many samples get the right line where the table is hidden.

Run as ``python -m tests.validation.lines [--reports DIR] [--sources DIR]``. Of reports with a line table that table
is hidden, their sources (embedded, or below ``--sources``) are compiled by the compiler that is here, and the lines
that come of that are held against the table. Our own kernels are compiled twice: by NVRTC with and without line
information, and by NVRTC 12, if it is there (``PYTHONPATH=build/cuda-12``), for the lines of NVRTC 13.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.kernels import KERNELS, Kernel, compile_kernel
from tests.simulations import fixture_config, program_of

from gpadvisor import machine
from gpadvisor.analyzer.line_recovery import recover_lines
from gpadvisor.cubin import demangle
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.model.program import Program
from gpadvisor.report.names import base_name
from gpadvisor.simulator import simulate
from gpadvisor.store import load_profile
from gpadvisor.toolchain import compile_source
from gpadvisor.workflow.kernel_sources import KernelSources
from gpadvisor.workflow.programs import kernel_program, kernel_sections, open_cubin
from gpadvisor.workflow.cache import Cache

SAME: Final = 0.95
OTHER: Final = 0.70


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Of the samples with a line in the hidden table: how many got it back, and how many another one."""

    name: str
    right: float
    wrong: float
    samples: int
    same: bool  # the code is the same, instruction by instruction


def hidden(program: Program) -> Program:
    """The program without its lines."""
    functions = tuple(replace(one, lines=(None,) * len(one.lines)) for one in program.functions)
    return replace(program, functions=functions, has_line_info=False)


def share(name: str, program: Program, compiled: Program, profile: KernelProfile) -> Share | None:
    """What recovery gives for one kernel; None where no sample has a line to compare."""
    recovery = recover_lines(hidden(program), compiled)
    known = right = wrong = 0
    columns = profile.samples
    for section, pc, count in zip(
        columns.section.tolist(), columns.pc.tolist(), columns.total.tolist(), strict=True
    ):
        at = program.at(profile.sections[section], pc) if section < len(profile.sections) else None
        line = None if at is None else at[0].lines[at[1]]
        if at is None or line is None:
            continue
        found = recovery.program.functions[at[0].id].lines[at[1]]
        known += count
        if found is not None:
            hit = (Path(found.location.file).name, found.location.line) == (
                Path(line.location.file.replace("\\", "/")).name,
                line.location.line,
            )
            right += count if hit else 0
            wrong += 0 if hit else count
    if not known:
        return None
    same = profile.launch.kernel in recovery.same
    return Share(name=name, right=right / known, wrong=wrong / known, samples=known, same=same)
