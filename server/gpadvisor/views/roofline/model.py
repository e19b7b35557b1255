# SPDX-License-Identifier: Apache-2.0
"""The values of an instruction roofline: points, ceilings, walls, regions, each with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gpadvisor.model.ids import FunctionId, SourceLocation
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import Evidence

LANES: Final = WARP
"""Of a warp."""


class Basis(Enum):
    """Where a number comes from, the first that a profile has."""

    REPORT = "report"  # a counter of the whole launch
    INSTRUCTIONS = "instructions"  # counts of single instructions, added up
    ATTRIBUTE = "attribute"  # what the driver says of the device
    TABLE = "table"  # a machine table
    MODELLED = "modelled"  # a simulated run


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its origin."""

    value: float
    basis: Basis
    source: str  # the metrics, or the formula over them


class Level(Kind):
    """A level of memory; its transactions are sectors of 32 bytes, of tags lines and of shared memory 128."""

    L1_TAGS = "L1 tags"  # lines of 128 bytes that an access touches: one look-up in the tags each
    L1_SECTORS = "L1 sectors"
    SHARED = "shared memory"  # wavefronts
    L2 = "L2"
    DRAM = "DRAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A kernel at one level."""

    level: Level
    transactions: Figure
    intensity: float  # warp instructions per transaction
    rate: float  # transactions per second
    peak: Figure | None  # transactions per second that the level can do
    use: float | None  # rate / peak


class CeilingKind(Kind):
    """What a ceiling is the peak of."""

    ISSUE = "issue"
    PIPE = "pipe"
    MEMORY = "memory"  # a level, whose ceiling rises with the intensity
    UNIT = "unit"  # of L1 or another unit, as full as the report says


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A peak above the kernel."""

    name: str
    kind: CeilingKind
    use: float  # share of the peak that the kernel uses
    height: float  # warp instructions per second at which it would be reached with this mix of instructions
    source: str
    relieved_by: frozenset[str]  # of the units whose load it is about, as suggestions name them

    @property
    def factor(self) -> float:
        """The most that this ceiling allows: 1 / use."""
        return 1 / self.use if self.use else float("inf")


class AccessSpace(Enum):
    """Which walls an access stands between."""

    GLOBAL = "global"
    LOCAL = "local"
    SHARED = "shared"


class WallKind(Enum):
    """Where an access stands, by its transactions per instruction of a warp."""

    ONE_ADDRESS = "one address"  # stride-0
    FEWER = "fewer than stride-1"  # lanes share addresses, or are off
    STRIDE_1 = "stride-1"
    SCATTERED = "more than stride-1"
    EACH_LANE = "a sector for each lane"  # stride-8 for floats
    NO_CONFLICT = "no conflict"
    CONFLICT = "bank conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAccess:
    """A load, store or atomic of one place in the code, against the walls of its own width."""

    function: FunctionId
    index: int
    pc: int
    text: str
    location: SourceLocation | None
    space: AccessSpace
    width_bytes: int | None  # of a lane
    instructions: float  # executed by warps
    per_instruction: float  # sectors, or wavefronts of shared memory
    fewest: float | None  # for the same bytes; None where the report does not have it
    wall: WallKind

    @property
    def transactions(self) -> float:
        """All of this place."""
        return self.instructions * self.per_instruction

    @property
    def excess(self) -> float:
        """How many times as many as would do."""
        return self.per_instruction / self.fewest if self.fewest else 1.0

    @property
    def wasted(self) -> float:
        """Transactions above those that would do."""
        return (
            0.0 if self.fewest is None else self.instructions * max(0.0, self.per_instruction - self.fewest)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MixRow:
    """One class of instructions."""

    name: str
    instructions: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Of 32 lanes those at work in a mean instruction; None where not counted."""

    active: Figure | None  # not lost to divergence and partial warps
    predicated: Figure | None  # of those, not switched off by a predicate: the ones that do something


class RegionKind(Enum):
    """What a kernel is divided into."""

    KERNEL = "kernel"
    LOOP = "loop"
    LINE = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Height:
    """Warp instructions per second while warps are in a region, with its 95 % interval."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPoint:
    """A loop, a line, or the rest of a function; counts are exact, the height is modelled from samples."""

    kind: RegionKind
    function: str  # demangled; empty for code outside of the cubin
    location: SourceLocation | None
    pc: int | None  # of its first instruction
    loop: int | None  # of its function; None for what is outside of loops
    depth: int  # 0 outside of loops; loops of depth 1 and what is outside of them add up to the kernel
    samples: int
    share: float | None  # of all samples
    instructions: float
    sectors: float | None
    tags: float | None
    wavefronts: float | None  # of shared memory
    active_lanes: float | None
    predicated_lanes: float | None
    height: Height | None
    hidden: str  # why there is no height; empty where there is one
    ceilings: tuple[Ceiling, ...]  # nearest first; modelled as the height is
    load: float | None  # its share of the load of the kernel's nearest ceiling, exact; None where not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """One kernel."""

    kernel: str  # demangled
    device: str
    evidence: Evidence
    seconds: float
    instructions: Figure  # W, of warps
    issue_peak: Figure | None  # warp instructions per second at the clock of the run
    issue_peak_maximum: Figure | None  # at the maximum clock
    reported_use: float | None  # the report's own share of the issue peak
    lanes: Lanes
    points: tuple[Point, ...]
    global_intensity: float | None  # global loads, stores and atomics per sector
    shared_intensity: float | None  # accesses to shared memory per wavefront
    ceilings: tuple[Ceiling, ...]  # nearest first: issue, levels, units, and pipes above 40 %
    accesses: tuple[CountedAccess, ...]  # most transactions first
    mix: tuple[MixRow, ...]  # largest first
    regions: tuple[RegionPoint, ...]
    notes: tuple[str, ...]  # when not to believe it

    @property
    def height(self) -> float:
        """Warp instructions per second."""
        return self.instructions.value / self.seconds

    @property
    def nearest(self) -> Ceiling | None:
        """The ceiling that allows least."""
        return self.ceilings[0] if self.ceilings else None
