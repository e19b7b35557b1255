# SPDX-License-Identifier: Apache-2.0
"""The values of the view: inputs with their origin, the parts of a kernel's cycles, what its samples say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gpadvisor.model.advice import Estimate


class Benefit(Enum):
    """What a change can save: the four of the paper."""

    MEMLP = "memory"  # B_memlp: exposed memory time above what moving the bytes takes
    ITILP = "parallelism"  # B_itilp: issue slots that stay empty for want of instructions in flight
    SERIAL = "serialization"  # B_serial: barriers, fences, sleeping, branches
    FP = "other instructions"  # B_fp: compute time beyond that of the essential instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInputs:
    """What the adapted model takes; counts of warps are of one SM over the whole run."""

    issue_width: float  # warp instructions per cycle
    instructions: float
    loads: float
    requests: float  # loads and stores
    stall_cycles: float  # s: cycles from one instruction of a warp to its next
    resident_warps: float  # N
    mlp: float  # loads in flight of one warp
    latency: float  # AMAT: cycles of a load, hits and misses together
    l1_latency: float  # of that, in L1, which runs at the clock of the SM
    request_cycles: float  # c: of the tightest level of memory at its peak
    request_in_l1: bool  # whether that is L1
    pipe_cycles: float  # that the busiest pipe is busy
    pipe: str  # its name
    serial_cycles: float  # that only serialization fills, by samples
    essential_cycles: float  # T_fp: of the essential instructions at full rate
    data_cycles: float  # T_mem_min: of the bytes of DRAM at its peak


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleParts:
    """Cycles of one SM."""

    execution: float
    compute: float
    memory: float
    overlap: float
    mwp: float
    cwp: float
    ideal_compute: float  # T_fp
    ideal_memory: float  # T_mem_min, as far as it is exposed
    benefits: Mapping[Benefit, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A suggestion, and what it mostly saves."""

    code: str
    name: str
    speedup: Estimate | None
    benefits: tuple[Benefit, ...]  # the first by its samples


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPotential:
    """A kernel as it is shown."""

    potential: Potential
    promises: tuple[Promise, ...]
    time_share: float | None  # of all kernel time in the profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Potential:
    """One kernel."""

    kernel: str
    device: str
    cycles: float  # measured, of a mean SM while it has warps
    essential: str  # class of instructions that T_fp counts
    inputs: ModelInputs
    sources: Mapping[str, str]  # by input
    missing: tuple[str, ...]  # inputs that the profile does not have, and what stands in
    parts: CycleParts
    samples: Mapping[Benefit, float] | None  # shares of time by samples; None without
    notes: tuple[str, ...]

    @property
    def unexplained(self) -> float:
        """Measured cycles that no part has; below zero where the parts are more than was measured."""
        return self.cycles - self.parts.execution

    def share(self, benefit: Benefit) -> float:
        """Of the measured cycles, at most the whole of them."""
        return min(1.0, self.parts.benefits[benefit] / self.cycles)

    def bound(self, *benefits: Benefit, off: float = 0.0) -> float:
        """The speedup if all of some benefits, and all that the model gets wrong, went away.

        Differs from GPUPerf: what the model does not explain, or has too much of, is not taken for time that
        stays, as a bound must not be too low.

        Args:
            benefits: what goes away.
            off: how far off the model is taken to be at least, of the cycles: its errors may cancel out.
        """
        saved = sum(self.parts.benefits[benefit] for benefit in benefits)
        remaining = self.cycles - saved - max(abs(self.unexplained), off * self.cycles)
        return self.cycles / remaining if remaining > 0 else float("inf")
