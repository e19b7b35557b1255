# SPDX-License-Identifier: Apache-2.0
"""Which unit of memory is full, and what is left of its load when accesses take their fewest transactions."""

from __future__ import annotations

from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.utilisation import (
    DRAM,
    L1,
    L1_DATA,
    L1_PARTS,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    MEMORY_RESOURCES,
    utilisations,
)
from gpadvisor.evidence.traffic import Traffic
from gpadvisor.model.advice import Adjustment, ReducedLoad, Utilisation
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.machine import SECTORS_PER_LINE
from gpadvisor.model.profile import Evidence, KernelProfile

_RECEIVED: Final = "lts__xbar2lts_cycles_active"
_HIT_RATE: Final = "l1tex__t_sector_hit_rate.pct"


def full_unit(profile: KernelProfile) -> Utilisation | None:
    """The busiest memory unit, if it is at its limit."""
    entries = [entry for entry in utilisations(profile) if entry.name in MEMORY_RESOURCES]
    if any(entry.name in {L1_DATA, L1_REQUESTS, L1_TO_L2} for entry in entries):
        entries = [entry for entry in entries if entry.name != L1]  # its parts say more
    busiest = max(entries, key=lambda entry: entry.percent, default=None)
    return busiest if busiest is not None and busiest.percent >= constants.HIGH_PERCENT else None


def limit_words(unit: Utilisation) -> str:
    """A full unit with the counter that says so."""
    name = "L1 throughput" if unit.name in {L1, *L1_PARTS} else f"{unit.name} throughput"
    return f"{name}, at {percentage(unit.percent)} of its peak ({unit.metric})"


def load_words(unit: Utilisation) -> str:
    """What there must be fewer of for a full unit."""
    return (
        "and wider requests"
        if unit.name == L1_REQUESTS
        else "bytes"
        if unit.name in {L2, DRAM}
        else "accesses"
    )


def loads_left(profile: KernelProfile, traffic: Traffic) -> tuple[ReducedLoad, ...]:
    """How much of each unit's load is left when every access takes its fewest transactions.

    Behind L1, at worst each sector that is still asked for gets through to it; at best caches keep the share
    that they hold back today, but what moved no more than the fewest sectors has no waste in it. A modelled
    profile whose hit rates are told, not found by address, says nothing of what caches keep; what moved
    beyond the counted sectors is of accesses whose addresses nobody knows, and stays.
    """
    result = []
    wavefronts, after = traffic.l1_wavefronts, traffic.ideal_l1_wavefronts
    if wavefronts > after * constants.ABOUT and after > 0:
        stays = traffic.local / SECTORS_PER_LINE
        left = (after + stays) / (wavefronts + stays)
        result.append(ReducedLoad(resource=L1_DATA, remaining=left, remaining_best=left))
    behind_l1, dram = traffic.l2_sectors(profile), traffic.dram_sectors(profile)
    told = profile.evidence is Evidence.MODELLED and profile.metric(_HIT_RATE) is None
    not_counted = max(0.0, (behind_l1 or 0.0) - traffic.sectors) if told else 0.0
    all_sectors = traffic.sectors + not_counted
    sectors_kept = (traffic.ideal_sectors + not_counted) / all_sectors if all_sectors else 1.0
    inwards = full_inwards(profile)
    for resource, moved in ((L1_TO_L2, behind_l1), (L2, behind_l1), (DRAM, dram)):
        if moved and 0 < sectors_kept < 1 / constants.ABOUT:
            remaining = sectors_kept if told else min(1.0, traffic.ideal_sectors / moved)
            best = (
                remaining
                if moved <= constants.ABOUT * traffic.ideal_sectors
                else min(remaining, sectors_kept)
            )
            if resource in inwards:
                sent = traffic.sent_left(moved)
                remaining, best = min(remaining, sent), min(best, sent)
            share = 1.0 if resource == DRAM else traffic.global_share(profile)
            remaining, best = (1 - share * (1 - end) for end in (remaining, best))
            result.append(ReducedLoad(resource=resource, remaining=remaining, remaining_best=best))
    return tuple(result)


def full_inwards(profile: KernelProfile) -> frozenset[str]:
    """Units behind L1 that are as full as what goes from L1 to L2 makes them: data written, and requests.

    L2's own counter tells; where it is missing, or another part of L2 is fuller, sectors of both ways count.
    """
    unit = next((entry for entry in utilisations(profile) if entry.name == L2), None)
    if unit is None:
        return frozenset()
    base, _, suffix = unit.metric.partition(".")
    received = unit.percent if base == _RECEIVED else profile.metric(f"{_RECEIVED}.{suffix}")
    is_full = received is not None and received > unit.percent - constants.IN_USE_PERCENT
    return frozenset({L1_TO_L2, L2}) if is_full else frozenset()


def fewest_words(counted: Traffic | None) -> str:
    """How near the counted sectors are to what the bytes need."""
    if counted is not None and counted.sectors > constants.ABOUT * counted.ideal_sectors:
        return "as few as the places of the data allow"
    return "the fewest for the bytes accessed"


def nothing_words(traffic: Traffic | None) -> str:
    """Why there is nothing to reduce."""
    if traffic is None:
        return "no sample waits for the load/store queue (lg_throttle) or for stores at exit (drain)"
    return (
        f"no sample waits for the load/store queue (lg_throttle); {millions(traffic.sectors)} sectors "
        "against "
        f"an ideal of {millions(traffic.ideal_sectors)}"
    )


def millions(count: float) -> str:
    """A count as a reader takes it in."""
    return f"{count / 1e6:,.1f} M" if count >= 1e5 else f"{count:,.0f}"


def transactions_gone(waste: float | None) -> Adjustment:
    """What goes of the matched stalls with the transactions that are waste; None where nobody counted."""
    if waste is None:
        return Adjustment(
            low=0.0,
            expected=constants.REQUESTS,
            high=1.0,
            reason="no waste was counted; in the paper's Table III this change removed 61 % of the matched "
            "stalls (one kernel, ExaTENSOR)",
        )
    return Adjustment(
        low=constants.LEAST_PART * waste,
        expected=waste,
        high=1.0,
        reason=f"{percent(waste)} of the transactions are waste by the report's counts",
    )
