# SPDX-License-Identifier: Apache-2.0
"""Every number that decides what is told, or that an estimate is multiplied by, with where it comes from.

``docs/constants.md`` is made of this table. What code, launch and counters give is computed where it is used;
what is known of the hardware is in ``machine``.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Self


class Ground(Enum):
    """What a number rests on."""

    PAPER = "the paper"
    GPA = "GPA's released code"
    TOOL = "Nsight Compute"
    COMPUTED = "computed"
    CHANCE = "statistics"
    PAIRS = "measured pairs"
    CAPTURES = "our kernels on an H100"
    CHANGES = "what measured changes gave"
    SIMULATED = "Table III, simulated"
    TOLD = "what is told"


class Constant(float):
    """A number with its source; arithmetic makes plain numbers of it."""

    ground: Ground
    reason: str

    def __new__(cls, value: float, ground: Ground, reason: str) -> Self:
        """A number, what it rests on, and how it follows from that."""
        result = super().__new__(cls, value)
        result.ground, result.reason = ground, reason
        return result


# What the paper's kernels gained of what its equation says: (1 - 1 / achieved) / (1 - 1 / estimated).
REUSED: Final = Constant(0.5, Ground.PAPER, "Table III, Quicksilver: 0.51 of Eq. 2")
CHEAPER_LEAST: Final = Constant(0.9, Ground.PAPER, "Table III, the least of three kernels")
CHEAPER_MOST: Final = Constant(1.4, Ground.PAPER, "Table III, the mean of three kernels, 1.38")
FAST_LEAST: Final = Constant(0.35, Ground.PAPER, "Table III, the least of three kernels")
FAST: Final = Constant(0.95, Ground.PAPER, "Table III, the mean of three kernels")
FAST_MOST: Final = Constant(1.57, Ground.PAPER, "Table III, the most of three kernels")
FLOAT_POWER: Final = Constant(
    0.8,
    Ground.COMPUTED,
    "of the routine behind pow() what powf() does without, by the compiler's code of both",
)
FLOAT_ROOT: Final = Constant(
    0.55, Ground.COMPUTED, "of a double reciprocal square root what a float's does without, as FLOAT_POWER"
)
BALANCED_LEAST: Final = Constant(0.22, Ground.PAPER, "Table III, the least of four kernels")
BALANCED: Final = Constant(0.63, Ground.PAPER, "Table III, the mean of four kernels")
BALANCED_MOST: Final = Constant(1.06, Ground.PAPER, "Table III, the most of four kernels")
REQUESTS: Final = Constant(0.6, Ground.PAPER, "Table III, ExaTENSOR: 0.61 of Eq. 2")
UNROLLED_LEAST: Final = Constant(0.29, Ground.PAPER, "Table III, bfs, the least of four kernels")
UNROLLED: Final = Constant(0.8, Ground.PAPER, "Table III, the mean of the three other kernels, 0.82")
HELD: Final = Constant(0.36, Ground.PAPER, "Table III, bfs, the one kernel with an obstacle: 0.29 / 0.82")
REORDERED_LEAST: Final = Constant(0.16, Ground.PAPER, "Table III, pathfinder, the least of four kernels")
REORDERED: Final = Constant(0.8, Ground.PAPER, "Table III, the mean of the three others, 0.78")
INLINED: Final = Constant(0.8, Ground.PAPER, "Table III, Quicksilver: 0.81 of Eq. 4")

# Between ends that are known.
LEAST_PART: Final = Constant(
    0.5,
    Ground.PAIRS,
    "of what is expected to go, at a low end: of 58 cures that gained, all removed more but one, 0.48 of it "
    "(`python -m tests.validation.pairs`, `captures`)",
)
MIDDLE: Final = Constant(0.5, Ground.COMPUTED, "of none and all: no other share is off by less at worst")
MOST_OF: Final = Constant(
    0.75,
    Ground.COMPUTED,
    "of LEAST_PART and all, the middle: no other share is off by less at worst; of 0.5, 0.75 and 1 the pairs "
    "have the least error with it, too",
)
AHEAD: Final = Constant(
    0.5,
    Ground.CAPTURES,
    "of a copy, there when it is needed: of 0.25, 0.5 and 0.75 the best (async_window, tile_sums)",
)
HALVED: Final = Constant(0.5, Ground.COMPUTED, "what two launches in one save, or a copy in two pieces")
MAJORITY: Final = Constant(0.5, Ground.TOLD, "most of something is more than half of it")

# What a full or a busy unit is.
HIGH_PERCENT: Final = Constant(80.0, Ground.TOOL, "its line for a high throughput")
BUSY_PERCENT: Final = Constant(60.0, Ground.TOOL, "its line between a unit that limits and one that does not")
PEAK_PERCENT: Final = Constant(100.0, Ground.COMPUTED, "of its peak a unit has no more")
MOST_PERCENT: Final = Constant(
    110.0, Ground.TOLD, "of its peak: what counts more was put together of replays of different lengths"
)
FEW_WARPS: Final = Constant(1 / 3, Ground.TOLD, "of an SM's warps: fewer hide little, whatever they wait for")
IN_USE_PERCENT: Final = Constant(1.0, Ground.TOLD, "a pipe used less is not in use")
MOST_FETCHES: Final = Constant(0.3, Ground.GPA, "above this share of fetch stalls it gives no such advice")

# Code.
MEETING: Final = Constant(2.0, Ground.COMPUTED, "fewer than two operations on a word are none to combine")
FEW_PER_WORD: Final = Constant(
    8.0, Ground.TOLD, "elements for each word of a histogram: with fewer a copy is no work saved"
)
SERIAL: Final = Constant(
    0.2,
    Ground.PAIRS,
    "operations a cycle; one word takes 0.32 (cy-atomic-base-v1), fewer beside others",
)
FLOAT_ATOMIC: Final = Constant(
    3.0,
    Ground.PAIRS,
    "cycles of an L2 slice for each addition of a float; one word took 0.32 a cycle (sm_86), 0.33 (sm_90)",
)
SHARED_OPERANDS: Final = Constant(
    4.0, Ground.COMPUTED, "threads load a value, for tiles of 2 x 2 to halve that"
)
FEW_LOADS: Final = Constant(
    0.3, Ground.COMPUTED, "loads of each product; 8 x 8 results in registers have 0.25"
)
ONE_SIDE: Final = Constant(0.75, Ground.COMPUTED, "of the loads of a tile stay when one side doubles")
BOTH_SIDES: Final = Constant(0.5, Ground.COMPUTED, "the same when both do")
WIDER_BOTH: Final = Constant(2.0, Ground.COMPUTED, "times as wide are its loads then, at most")
HALF_THE_BYTES: Final = Constant(0.5, Ground.COMPUTED, "a float has half of the bytes of a double")
SHUFFLED_LEVELS: Final = Constant(1.0, Ground.COMPUTED, "level of a tree is what shuffles leave")
LEAST_TIME: Final = Constant(1e-3, Ground.COMPUTED, "of the time stays, for a cure of everything")

# How units and waits share the time, and how far outcomes lie apart.
OVERLAP: Final = Constant(
    3.0,
    Ground.PAIRS,
    "of 2, 3, 4 and 6, whichever repository is left out (`python -m tests.validation.pairs`)",
)
LEAST_OVERLAP: Final = Constant(2.0, Ground.PAIRS, "at the low end the least of those tried for it")
PRACTICAL_PEAK: Final = Constant(
    0.95, Ground.PAIRS, "of its peak; DRAM reached 90 to 96 % in the fullest of their reports"
)
RUN_TO_RUN: Final = Constant(
    0.03,
    Ground.PAIRS,
    "unchanged kernels took 1.00 and 1.01 (milliseconds), 1.07 and 1.12 times as long (13 us)",
)
SPREAD: Final = Constant(
    0.75, Ground.PAIRS, "of ln(expected) at a low end; eleven cured by coalesced accesses have 0.84 at least"
)
MOST_MEASURED: Final = Constant(
    192.0, Ground.PAIRS, "no measured change gave more (counts of a block in shared memory, sm_90)"
)
MODEL_OFF: Final = Constant(
    0.12, Ground.PAIRS, "of the cycles: GPUPerf's, in the median of 65 kernels (docs/potential.md)"
)
MODELLED_LOSS: Final = Constant(
    0.95,
    Ground.SIMULATED,
    "of a low end, by two thirds of our kernels (`python -m tests.validation.estimates`)",
)
SIMULATED_LEAST: Final = Constant(
    0.8,
    Ground.SIMULATED,
    "what GPUs gained over it: seven in ten of 97 pairs of versions lie between this and the next "
    "(`python -m tests.validation.caches`, `table3`, `published_steps`)",
)
SIMULATED_MOST: Final = Constant(1.25, Ground.SIMULATED, "the same")
SIMULATED_LAUNCH: Final = Constant(
    1.52, Ground.SIMULATED, "of three launches in Table III the most, as first simulated"
)
SAME_WORK: Final = Constant(1.1, Ground.SIMULATED, "times as many results, as branches are drawn")

# What changes gave in the median (docs/validation.md, "What changes gave"): where nothing else orders advice.
REGISTERS_GAVE: Final = Constant(9.5, Ground.CHANGES, "times, of 5: arrays of a thread kept in registers")
THREADS_GAVE: Final = Constant(6.46, Ground.CHANGES, "times, of 14: another block size")
ATOMICS_GAVE: Final = Constant(4.75, Ground.CHANGES, "times, of 7: fewer atomics on one address")
SCATTERED_GAVE: Final = Constant(1.69, Ground.CHANGES, "times, of 27: lanes that read side by side")
TILES_GAVE: Final = Constant(1.57, Ground.CHANGES, "times, of 9: data kept in tiles")
DIVERGENCE_GAVE: Final = Constant(1.51, Ground.CHANGES, "times, of 9: warps whose threads stay together")
BLOCKS_GAVE: Final = Constant(1.5, Ground.CHANGES, "times, of 14: another number of blocks")
FAST_GAVE: Final = Constant(1.31, Ground.CHANGES, "times, of 26: cheaper forms of library math")
WIDER_GAVE: Final = Constant(1.23, Ground.CHANGES, "times, of 6: wider accesses")
CHEAPER_GAVE: Final = Constant(1.14, Ground.CHANGES, "times, of 14: cheaper integer operations")

# From where on something is told, or counts at all.
FEW_SAMPLES: Final = Constant(
    20, Ground.CHANCE, "fewer are known to no better than a half: 1.96 / sqrt(20) = 0.44"
)
SHOWN: Final = Constant(1.03, Ground.PAIRS, "less is within what times differ from run to run")
UNSURE: Final = Constant(1.1, Ground.TOLD, "of what may as well gain nothing: more warps, another launch")
NOTABLE: Final = Constant(0.05, Ground.TOLD, "of the samples: with all of them gone the kernel gains 1.05x")
FEW_SPILLS: Final = Constant(0.05, Ground.TOLD, "of code without loops: each of them runs once")
SMALL: Final = Constant(0.01, Ground.TOLD, "of the samples: with all of them gone the kernel gains 1.01x")
ABOUT: Final = Constant(1.05, Ground.TOLD, "times what is needed: rows rarely begin on a sector")
AGREES: Final = Constant(1.25, Ground.TOLD, "times: a model of equal blocks and a count agree no better")
NEARLY: Final = Constant(0.9, Ground.TOLD, "of what every thread would access: a problem's edge has fewer")
EDGE: Final = Constant(0.75, Ground.TOLD, "of a warp's threads: with fewer it is no problem's edge any more")
MATRIX: Final = Constant(0.2, Ground.TOLD, "of the samples are in products before tensor cores are named")
DOUBLES_PERCENT: Final = Constant(20.0, Ground.TOLD, "of the peak of a pipe that floats do not need")
DRAM_FULL: Final = Constant(0.85, Ground.TOLD, "of what DRAM reaches, from where only fewer bytes help")
PROVEN: Final = Constant(1.5, Ground.TOLD, "times the passes that the code needs, before addresses are why")
SPREAD_PERCENT: Final = Constant(40.0, Ground.TOLD, "of a peak: scattered accesses load every unit up to L2")
TWICE: Final = Constant(2.0, Ground.TOLD, "times the passes that an access needs")
HALF_RATE: Final = Constant(1.01, Ground.TOLD, "times as full as counted, or the factor is not named")
REPEATED: Final = Constant(20.0, Ground.TOLD, "launches of a kernel are a loop of them")
ANY_LOAD: Final = Constant(0.001, Ground.TOLD, "of a unit's load, or it is not named")
ANY_END: Final = Constant(0.005, Ground.TOLD, "ends of a range closer than this need no sentence")


def table() -> dict[str, Constant]:
    """Every number by its name, in the order of this file."""
    return {name: value for name, value in globals().items() if isinstance(value, Constant)}
