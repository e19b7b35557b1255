# SPDX-License-Identifier: Apache-2.0
"""Stalls with their causes: the dependency graph and the apportioned samples (GPA section IV)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Register
from gpadvisor.model.kind import Kind
from gpadvisor.model.problem import Problem
from gpadvisor.model.stalls import StallReason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DependencyKind(Kind):
    """What links a def to a use."""

    REGISTER = "register"  # read after write
    GUARD = "guard"  # the use's predicate
    BARRIER = "barrier"  # a scoreboard the use waits on, set by the def
    QUEUE = "queue"  # an older operation of an in-order queue whose completion the wait implies
    WRITE_AFTER_READ = "write_after_read"  # the use overwrites what the def still reads
    STALL_COUNT = "stall_count"  # the control code of the instruction before
    SYNCHRONIZATION = "synchronization"  # a barrier and what the slow side did before it
    IN_FLIGHT = "in_flight"  # accesses outstanding at a fence or at EXIT
    FILLS = "fills"  # the def goes through the queue or pipe that the use finds full


class DependencyClass(Kind):
    """Classes of blamed stalls: Fig. 5, and what newer reasons allow to tell apart."""

    GLOBAL_MEMORY = "global_memory"
    LOCAL_MEMORY = "local_memory"
    CONSTANT_MEMORY = "constant_memory"
    TEXTURE = "texture"
    SHARED_MEMORY = "shared_memory"
    ARITHMETIC = "arithmetic"
    WRITE_AFTER_READ = "write_after_read"
    SCHEDULE = "schedule"  # a stall count without a data dependency
    SYNCHRONIZATION = "synchronization"
    MEMORY_BARRIER = "memory_barrier"
    STORE_IN_FLIGHT = "store_in_flight"  # drain
    ASYNC_COPY = "async_copy"
    TENSOR = "tensor"
    QUEUE = "queue"  # a throttle: the def goes through the queue or pipe that the use finds full
    SELF = "self"  # role SELF: the reason itself is the class
    NONE = "none"  # role UNATTRIBUTED


class Role(Kind):
    """Where the samples of a row went; the three add up to what was observed."""

    BLAMED = 0  # to another instruction
    SELF = 1  # the reason's cause is the sampled instruction
    UNATTRIBUTED = 2  # a dependency stall without a source found


class PruneRule(Kind):
    """Why a dependency edge was cut (GPA section IV, "Prune cold edges")."""

    REASON = "reason"  # the finer stall reasons of today exclude it
    OPCODE = "opcode"
    BARRIER = "barrier"  # the use waits on no scoreboard of the def, nor on a younger one of its queue
    DOMINATOR = "dominator"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyEdge:
    """One def-use edge of the dependency graph, alive or pruned; indices are instruction indices."""

    function: FunctionId
    def_index: int
    use_index: int
    kind: DependencyKind
    registers: tuple[Register, ...]  # what links them, barriers included
    distance_instructions: int | None  # longest path, def excluded and use included; None: no path bound
    issue_weight: int  # executed count, else issued samples, of the def
    pruned_by: PruneRule | None
    prune_detail: str | None  # in words, with the numbers that decided


CLASSES: tuple[DependencyClass, ...] = tuple(DependencyClass)
"""Order of the ``dependency_class`` column."""

NO_INDEX = -1
"""In index columns: no such instruction (no def found, or samples outside the program)."""

NO_FUNCTION = 0xFFFF
"""In the function column: samples outside every function of the program."""


class CodeArea(Kind):
    """Where sampled code lies."""

    FUNCTION = 0
    EXTERNAL = 1  # driver code, not in the cubin
    AFTER_EXIT = 2  # padding behind an EXIT, where drain is charged
    UNMAPPED = 3  # in a section of the cubin, but in no function or no disassembly


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlameTable:
    """Apportioned samples as equal-length read-only columns: one row per (def, use, reason, class)."""

    function: NDArray[np.uint16]  # FunctionId or NO_FUNCTION
    reason: NDArray[np.uint8]  # index into Blame.reasons
    role: NDArray[np.uint8]  # Role values
    dependency_class: NDArray[np.uint8]  # index into CLASSES
    place: NDArray[np.uint8]  # Place values, of the sampled instruction
    def_index: NDArray[np.int32]  # instruction index or NO_INDEX
    use_index: NDArray[np.int32]  # the sampled instruction, or NO_INDEX
    distance: NDArray[np.int32]  # longest path in instructions, or NO_INDEX
    samples: NDArray[np.int64]
    latency: NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = (
            self.function, self.reason, self.role, self.dependency_class, self.place,
            self.def_index, self.use_index, self.distance, self.samples, self.latency,
        )  # fmt: skip
        if len({len(column) for column in columns}) > 1:
            raise ValueError("blame columns differ in length")
        for column in columns:
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Single dependency coverage (GPA section VI-C): share of nodes without competing sources."""

    before: float | None  # None where the graph has no node
    after: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blame:
    """What one kernel's stalls are due to; ``rows`` add up to every observed sample, exactly."""

    reasons: tuple[StallReason, ...]
    rows: BlameTable
    edges: Sequence[DependencyEdge]  # alive and pruned, of sampled uses; may be made when first asked for
    coverage: Coverage
    problems: tuple[Problem, ...]

    @property
    def total_samples(self) -> int:
        """T: every sample."""
        return int(self.rows.samples.sum())

    @property
    def latency_samples(self) -> int:
        """L: latency samples."""
        return int(self.rows.latency.sum())
