# SPDX-License-Identifier: Apache-2.0
"""Memory transactions that a report counted for each instruction, beside the fewest that would do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gpadvisor.evidence.measured import Floats, executed_warps, metric
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import SECTOR_BYTES, SECTORS_PER_LINE
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.model.thread_use import CodePlace

# Nsight Compute's names, the same from 2021 to 2026; 2020 had no "theoretical" in two of them.
_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_IDEAL_SECTORS: Final = "memory_l2_theoretical_sectors_global_ideal"
_LOCAL: Final = "memory_l2_theoretical_sectors_local"
_FORMER: Final = {
    _SECTORS: "memory_l2_sectors_global",
    _IDEAL_SECTORS: "memory_l2_sectors_global_ideal",
    _LOCAL: "memory_l2_sectors_local",
}
_TAGS: Final = "memory_l1_tag_requests_global"
SHARED_PASSES: Final = "memory_l1_wavefronts_shared"
_IDEAL_SHARED: Final = "memory_l1_wavefronts_shared_ideal"
_COUNTED: Final = (_SECTORS, _IDEAL_SECTORS, _LOCAL, _TAGS, SHARED_PASSES, _IDEAL_SHARED)
_L1_MISSES: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum"
_L1_STORES: Final = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
_L2_FROM_L1: Final = ("lts__t_sectors_srcunit_tex.sum", "lts__t_sectors.sum")
_L1_HITS: Final = "l1tex__t_sector_hit_rate.pct"
_DRAM: Final = ("dram__sectors_read.sum", "dram__sectors_write.sum")
_DRAM_RATE: Final = "dram__bytes.sum.per_second"

_WASTEFUL: Final = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Transactions of one kernel."""

    sectors: float  # global sectors requested
    ideal_sectors: float  # the fewest for the same bytes
    tags: float | None  # L1 tag requests of global accesses
    requests: float | None  # executed global access instructions of warps
    wavefronts_shared: float
    ideal_wavefronts_shared: float
    scattered: Mapping[CodePlace, float]  # sectors above those needed, by instruction, most first
    conflicting: Mapping[CodePlace, float]  # shared wavefronts above those needed, the same way
    requested: Mapping[CodePlace, float]  # sectors, of the scattered ones
    stored: float = 0.0  # of the global sectors those that are written
    ideal_stored: float = 0.0
    local: float = 0.0  # sectors of local memory requested
    stores: Collection[CodePlace] = ()  # of the scattered ones

    @property
    def worst_place(self) -> CodePlace | None:
        """Where most sectors are wasted."""
        return next(iter(self.scattered), None)

    def is_scattered(self, place: CodePlace) -> bool:
        """Whether an access takes more than twice the sectors it needs.

        Up to that, rows that begin inside of a sector may be all there is to it: each costs one sector more.
        """
        wasted = self.scattered.get(place, 0.0)
        return wasted > self.requested.get(place, 0.0) - wasted

    def without(self, places: Collection[CodePlace]) -> Traffic:
        """The same with what some instructions waste taken for needed."""
        return replace(
            self,
            ideal_sectors=self.ideal_sectors + sum(self.scattered.get(place, 0.0) for place in places),
            ideal_stored=self.ideal_stored
            + sum(self.scattered.get(place, 0.0) for place in places if place in self.stores),
            ideal_wavefronts_shared=self.ideal_wavefronts_shared
            + sum(self.conflicting.get(place, 0.0) for place in places),
            scattered={place: waste for place, waste in self.scattered.items() if place not in places},
            conflicting={place: waste for place, waste in self.conflicting.items() if place not in places},
        )

    @property
    def waste(self) -> float:
        """The share of global sectors that need not be."""
        return 1.0 - self.ideal_sectors / self.sectors if self.sectors else 0.0

    @property
    def conflict_waste(self) -> float:
        """The share of shared memory wavefronts that need not be."""
        return 1.0 - self.ideal_wavefronts_shared / self.wavefronts_shared if self.wavefronts_shared else 0.0

    @property
    def l1_wavefronts(self) -> float:
        """Passes through the L1 data stage: one for each tag, or line where tags were not counted."""
        lines = self.sectors / SECTORS_PER_LINE
        return max(lines, self.tags or 0.0) + self.wavefronts_shared

    @property
    def ideal_l1_wavefronts(self) -> float:
        """The same with the fewest sectors: at least one for each request."""
        lines = self.ideal_sectors / SECTORS_PER_LINE
        if self.tags is None or self.requests is None:
            return min(lines, self.l1_wavefronts) + self.ideal_wavefronts_shared
        return min(max(lines, self.requests), self.l1_wavefronts) + self.ideal_wavefronts_shared

    def sent_left(self, moved: float) -> float:
        """Of what L1 sends to L2 the share that the fewest sectors leave: data written, requests for lines.

        Args:
            moved: sectors that went on to L2.
        """
        read = max(0.0, moved - self.stored)
        fewest = self.ideal_stored + min(read, self.ideal_sectors - self.ideal_stored) / SECTORS_PER_LINE
        sent = self.stored + read / SECTORS_PER_LINE
        return min(1.0, fewest / sent) if sent else 1.0

    def l2_sectors(self, profile: KernelProfile) -> float | None:
        """Global sectors that went on to L2: loads that missed and all stores, by what was counted."""
        misses = profile.metric(_L1_MISSES)
        if misses is not None:
            return misses + (profile.metric(_L1_STORES) or 0.0)
        counted = next((value for name in _L2_FROM_L1 if (value := profile.metric(name)) is not None), None)
        hits = profile.metric(_L1_HITS)
        if counted is not None or hits is None:
            return counted
        return min(self.sectors, self.stored + (1 - hits / 100) * self.sectors)

    def global_share(self, profile: KernelProfile) -> float:
        """Of what went on to L2 the share that is not local memory's."""
        moved, hits = self.l2_sectors(profile), profile.metric(_L1_HITS)
        local = self.local * (1 - (hits or 0.0) / 100)
        return moved / (moved + local) if moved else 1.0

    def dram_sectors(self, profile: KernelProfile) -> float | None:
        """Sectors read from and written to DRAM; of a report without the counts by their rate."""
        counts = [value for name in _DRAM if (value := profile.metric(name)) is not None]
        rate, duration = profile.metric(_DRAM_RATE), profile.launch.duration_ns
        if not counts and rate is not None and duration:
            return rate * duration * 1e-9 / SECTOR_BYTES
        return sum(counts) if counts else None

    def sent_by_dram(self, profile: KernelProfile) -> float | None:
        """Sectors read from DRAM, as counted; else at least those that no store can have brought there."""
        counted, both = profile.metric(_DRAM[0]), self.dram_sectors(profile)
        return counted if counted is not None or both is None else max(0.0, both - self.stored)


def _name(profile: KernelProfile, name: str) -> str:
    """The name that a report has for a metric."""
    former = _FORMER.get(name)
    return former if former is not None and former in profile.pc_metrics else name


def kernel_traffic(program: Program, kernel: str, profile: KernelProfile) -> Traffic | None:
    """What the report counted; None where it has neither sectors nor shared wavefronts by instruction."""
    names = {name: _name(profile, name) for name in _COUNTED}
    if not {names[_SECTORS], names[SHARED_PASSES]}.intersection(profile.pc_metrics):
        return None
    sums = dict.fromkeys(names, 0.0)
    requests = stored = ideal_stored = 0.0
    counted = False
    stores: set[CodePlace] = set()
    scattered: dict[CodePlace, float] = {}
    requested: dict[CodePlace, float] = {}
    conflicting: dict[CodePlace, float] = {}
    for function in kernel_functions(program, kernel):
        values = {
            name: np.zeros(len(function.instructions)) if counted is None else counted
            for name in sums
            for counted in (metric(profile, names[name], function),)
        }
        for name, column in values.items():
            sums[name] += float(column.sum())
        executed = executed_warps(profile, function)
        accesses = values[_SECTORS] > 0
        if executed is not None:
            counted = True
            requests += float(executed[accesses].sum())
        wasted = values[_SECTORS] - values[_IDEAL_SECTORS]
        for index in np.flatnonzero(values[_SECTORS] > _WASTEFUL * values[_IDEAL_SECTORS]).tolist():
            scattered[function.id, index] = float(wasted[index])
            requested[function.id, index] = float(values[_SECTORS][index])
        for index in np.flatnonzero(values[SHARED_PASSES] > _WASTEFUL * values[_IDEAL_SHARED]).tolist():
            conflicting[function.id, index] = float(
                values[SHARED_PASSES][index] - values[_IDEAL_SHARED][index]
            )
        writes = np.array(
            [instruction.info.opclass is OpcodeClass.STORE for instruction in function.instructions],
            dtype=bool,
        )
        stored += float(values[_SECTORS][writes].sum())
        ideal_stored += float(values[_IDEAL_SECTORS][writes].sum())
        stores.update((function.id, index) for index in np.flatnonzero(writes).tolist())
    scattered, conflicting = most_first(scattered), most_first(conflicting)
    ideal_known = names[_IDEAL_SECTORS] in profile.pc_metrics
    return Traffic(
        sectors=sums[_SECTORS],
        ideal_sectors=sums[_IDEAL_SECTORS] if ideal_known else sums[_SECTORS],
        tags=sums[_TAGS] if _TAGS in profile.pc_metrics else None,
        requests=requests if counted else None,
        wavefronts_shared=sums[SHARED_PASSES],
        ideal_wavefronts_shared=sums[_IDEAL_SHARED]
        if _IDEAL_SHARED in profile.pc_metrics
        else sums[SHARED_PASSES],
        scattered=scattered if ideal_known else {},
        conflicting=conflicting if _IDEAL_SHARED in profile.pc_metrics else {},
        requested=requested,
        stored=stored,
        ideal_stored=ideal_stored if ideal_known else stored,
        local=sums[_LOCAL],
        stores=stores.intersection(scattered),
    )


def counted_sectors(profile: KernelProfile, function: Function) -> Floats | None:
    """Global sectors by instruction; None where nobody counted them."""
    return metric(profile, _name(profile, _SECTORS), function)


def most_first(wasted: Mapping[CodePlace, float]) -> dict[CodePlace, float]:
    """Places by what they waste."""
    return {place: wasted[place] for place in sorted(wasted, key=lambda place: -wasted[place])}
