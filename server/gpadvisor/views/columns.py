# SPDX-License-Identifier: Apache-2.0
"""What a profile has for each instruction of a kernel, as one column each over all functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.evidence.measured import executed_threads, executed_warps, metric
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program

Floats = NDArray[np.float64]

# The name of today, then that of Nsight Compute 2020.
_SECTORS: Final = ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global")
_FEWEST_SECTORS: Final = ("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal")
_LOCAL: Final = ("memory_l2_theoretical_sectors_local", "memory_l2_sectors_local")
_TAGS: Final = ("memory_l1_tag_requests_global", "memory_l1_sectors_global")
_WAVEFRONTS: Final = ("memory_l1_wavefronts_shared", "memory_l1_sectors_shared")
_FEWEST_WAVEFRONTS: Final = ("memory_l1_wavefronts_shared_ideal", "memory_l1_sectors_shared_ideal")
_TRUE: Final = ("thread_inst_executed_true",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """One row for each instruction, functions one behind the other; None where a report has no column."""

    program: Program
    starts: tuple[int, ...]  # row of the first instruction of each function
    warps: Floats
    threads: Floats | None  # lanes that are not off by divergence
    true: Floats | None  # of those, the ones with a true predicate
    samples: Floats
    sectors: Floats | None  # of global memory
    fewest_sectors: Floats | None
    local: Floats | None  # sectors of local memory
    tags: Floats | None
    wavefronts: Floats | None  # of shared memory
    fewest_wavefronts: Floats | None

    def rows(self) -> Iterator[tuple[int, Function, int, Instruction]]:
        """Row, function, index in it, and instruction."""
        for function, start in zip(self.program.functions, self.starts, strict=True):
            for index, instruction in enumerate(function.instructions):
                yield start + index, function, index, instruction


def columns(program: Program, profile: KernelProfile) -> Columns | None:
    """The columns of a kernel; None without executed counts or without code."""
    functions = program.functions
    if profile.counts is None or not functions:
        return None
    sizes = [len(function.instructions) for function in functions]

    def joined(names: tuple[str, ...]) -> Floats | None:
        name = next((name for name in names if name in profile.pc_metrics), None)
        if name is None:
            return None
        of_functions = [metric(profile, name, function) for function in functions]
        return np.concatenate(
            [
                np.zeros(size) if column is None else column
                for column, size in zip(of_functions, sizes, strict=True)
            ]
        )

    warps = [executed_warps(profile, function) for function in functions]
    threads = [executed_threads(profile, function) for function in functions]
    return Columns(
        program=program,
        starts=tuple(int(start) for start in np.cumsum([0, *sizes[:-1]])),
        warps=np.concatenate([warp for warp in warps if warp is not None]),
        threads=_all(threads),
        true=joined(_TRUE),
        samples=np.concatenate([_sampled(profile, function) for function in functions]),
        sectors=joined(_SECTORS),
        fewest_sectors=joined(_FEWEST_SECTORS),
        local=joined(_LOCAL),
        tags=joined(_TAGS),
        wavefronts=joined(_WAVEFRONTS),
        fewest_wavefronts=joined(_FEWEST_WAVEFRONTS),
    )


def _all(parts: list[Floats | None]) -> Floats | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if len(present) == len(parts) else None


def _sampled(profile: KernelProfile, function: Function) -> Floats:
    """Samples of each instruction of a function."""
    result = np.zeros(len(function.instructions))
    if function.section in profile.sections:
        rows = profile.samples
        in_function = rows.section == profile.sections.index(function.section)
        index = (rows.pc[in_function].astype(np.int64) - function.start) // INSTRUCTION_BYTES
        inside = (index >= 0) & (index < len(result))
        np.add.at(result, index[inside], rows.total[in_function][inside].astype(np.float64))
    return result
