# SPDX-License-Identifier: Apache-2.0
"""What goes of local memory with its cure: accesses, the waits for them, and what they move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.local_memory import (
    LocalKind,
    LocalPlaces,
    becomes_registers,
    fits_shared,
    registers_have_room,
)
from gpadvisor.estimators.utilisation import DRAM, L1_DATA, L1_TO_L2, L2
from gpadvisor.evidence.measured import executed_warps, metric
from gpadvisor.evidence.queries import kernel_functions, samples
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import Adjustment, ReducedLoad
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import SECTORS_PER_LINE
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.stalls import StallClass

_LOCAL_SECTORS: Final = "memory_l2_theoretical_sectors_local"
_GLOBAL_SECTORS: Final = "memory_l2_theoretical_sectors_global"
_LOADS_MISSED: Final = "l1tex__t_sectors_pipe_lsu_mem_{}_op_ld_lookup_miss.sum"
_STORES: Final = "l1tex__t_sectors_pipe_lsu_mem_{}_op_st.sum"
_PASSES: Final = "l1tex__t_output_wavefronts_pipe_lsu_mem_local_op_{}.sum"
_REQUESTS: Final = "l1tex__t_requests_pipe_lsu_mem_local_op_{}.sum"
_HOMES: Final = {
    LocalKind.ARRAY: "an array that fits in registers",
    LocalKind.BY_DATA: "an array that fits in shared memory",
    LocalKind.SPILL: "spills that registers have room for with as many warps as now",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cured:
    """By kind of value the share that has another place."""

    shares: Mapping[LocalKind, float]

    def gone(self, kind: LocalKind) -> float:
        """Expected: all of what has another place, of the rest what went in the paper's Table III."""
        share = self.shares.get(kind, 0.0)
        return share + constants.REUSED * (1 - share)

    def issued(self, kind: LocalKind) -> float:
        """The same of its instructions: shared memory takes as many."""
        return 0.0 if kind is LocalKind.BY_DATA and self.shares.get(kind) else self.gone(kind)


def cured(context: KernelContext) -> Cured:
    """What of local memory has another place, by what a thread and its block have free."""
    return Cured(
        shares={
            LocalKind.ARRAY: float(becomes_registers(context)),
            LocalKind.BY_DATA: float(context.profile is not None and fits_shared(context)),
            LocalKind.SPILL: registers_have_room(context),
        }
    )


def gone_adjustment(
    context: KernelContext, blame: Blame, weights: Counter[LocalKind], kinds: LocalPlaces
) -> Adjustment:
    """The paper's Table III, but for what has another place: no access of it is left.

    Differs from GPA: the one kernel of Table III had its loop split, which made fewer values live at once.
    """
    cure, total = cured(context), max(1, weights.total())
    shares = {kind: weights[kind] / total * share for kind, share in cure.shares.items()}
    part = sum(shares.values())
    table = f"51 % went in the paper's Table III (one kernel, {_KERNEL})"
    if not part:
        return Adjustment(
            low=0.0,
            expected=constants.REUSED,
            high=1.0,
            reason="in the paper's Table III this change removed 51 % of the matched stalls "
            f"(one kernel, {_KERNEL})",
        )
    stays = shares[LocalKind.BY_DATA] * _shared_wait(context, blame, weights[LocalKind.BY_DATA], kinds)
    homes = " and ".join(f"{percent(share)} {_HOMES[kind]}" for kind, share in shares.items() if share)
    return Adjustment(
        low=constants.LEAST_PART * (part - stays),
        expected=part - stays + constants.REUSED * (1 - part),
        high=1.0,
        reason=f"of the matched stalls are due to: {homes}. All of these go"
        + (f", but for {percent(stays)} that shared memory takes" if stays else "")
        + f", at the low end half. Of others {table}",
    )


_KERNEL: Final = "Quicksilver"


def _shared_wait(context: KernelContext, blame: Blame, matched: int, kinds: LocalPlaces) -> float:
    """What a load of shared memory takes, as a share of what one of local memory is waited for.

    A warp issues for one cycle, so that its instructions per sample of issue are the cycles of a sample.
    """
    row = context.machine.latency("LDS", ())
    executed = loads = 0.0
    for function in kernel_functions(context.program, context.kernel):
        counts = executed_warps(context.profile, function)
        if counts is not None:
            executed += float(counts.sum())
            loads += sum(
                float(counts[index])
                for (number, index), kind in kinds.items()
                if number == function.id
                and kind is LocalKind.BY_DATA
                and function.instructions[index].info.opclass is OpcodeClass.LOAD
            )
    issued = [reason.stall_class is StallClass.ISSUED for reason in blame.reasons]
    issues = sum(samples(blame, blame.rows.reason == index) for index, flag in enumerate(issued) if flag)
    if row is None or not issues or not loads or not matched:
        return 0.0
    return min(1.0, row.min_cycles / (matched * executed / issues / loads))


def traffic_gone(context: KernelContext, kinds: LocalPlaces) -> tuple[ReducedLoad, ...]:
    """Of what L1 and the memory behind it move, the part of local memory that goes.

    L1 writes through, so that each store goes on to L2; of loads those that missed. What of it gets to DRAM
    is not counted: at least what is more than all global accesses could have moved, at most all.
    """
    profile = context.profile
    if profile is None:
        return ()
    cure = cured(context)
    local = expected = replaced = other_sectors = 0.0
    for function in kernel_functions(context.program, context.kernel):
        sectors = metric(profile, _LOCAL_SECTORS, function)
        counted_global = metric(profile, _GLOBAL_SECTORS, function)
        other_sectors += 0.0 if counted_global is None else float(counted_global.sum())
        if sectors is None:
            continue
        local += float(sectors.sum())
        for (number, index), kind in kinds.items():
            if number == function.id:
                expected += cure.gone(kind) * float(sectors[index])
                replaced += float(sectors[index]) * (kind is LocalKind.BY_DATA and bool(cure.shares[kind]))
    if not local:
        return ()
    expected, replaced = expected / local, replaced / local
    behind = _sectors_behind(profile)
    share = local / (local + other_sectors) if behind is None else behind[0] / max(1.0, sum(behind))
    parts = {L1_DATA: _l1_share(context, profile, local, replaced), L1_TO_L2: share, L2: share, DRAM: share}
    loads_left = {
        name: ReducedLoad(resource=name, remaining=1 - expected * part, remaining_best=1 - part)
        for name, part in parts.items()
    }
    moved = None if behind is None else _dram_sectors(profile)
    if behind is not None and moved:
        least = max(0.0, 1 - behind[1] / moved)
        most = min(1.0, behind[0] / moved)
        loads_left[DRAM] = ReducedLoad(resource=DRAM, remaining=1 - expected * least, remaining_best=1 - most)
    return tuple(loads_left.values())


def _sectors_behind(profile: KernelProfile) -> tuple[float, float] | None:
    """Sectors that local and global accesses had L2 move; None where they were not counted."""
    counts = []
    for memory in ("local", "global"):
        missed, stored = (profile.metric(name.format(memory)) for name in (_LOADS_MISSED, _STORES))
        if missed is None or stored is None:
            return None
        counts.append(missed + stored)
    return (counts[0], counts[1]) if counts[0] else None


def _l1_share(context: KernelContext, profile: KernelProfile, sectors: float, replaced: float) -> float:
    """Of the passes through L1 those of local memory that go; one for each access of shared memory stays."""
    traffic = kernel_traffic(context.program, context.kernel, profile)
    counted = [profile.metric(_PASSES.format(kind)) for kind in ("ld", "st")]
    requests = [profile.metric(_REQUESTS.format(kind)) for kind in ("ld", "st")]
    passes = sum(count or 0.0 for count in counted) or sectors / SECTORS_PER_LINE
    stay = min(passes, replaced * sum(request or 0.0 for request in requests))
    return (passes - stay) / (passes + (0.0 if traffic is None else traffic.l1_wavefronts))


def _dram_sectors(profile: KernelProfile) -> float | None:
    counts = [profile.metric(f"dram__sectors_{way}.sum") for way in ("read", "write")]
    counted = [count for count in counts if count is not None]
    return sum(counted) if counted else None
