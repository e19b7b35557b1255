# SPDX-License-Identifier: Apache-2.0
"""The models of GPUPerf (PPoPP 2012) and of Hong and Kim (ISCA 2009), their equations as printed.

What `gpadvisor potential` shows is their form for SMs of today (``views/potential/adapted.py``).

Counts are for one warp unless a name says otherwise; times are in cycles of one SM. Where the printed text
has lost an operator, the one is taken that the words around it give.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The inputs of GPUPerf: its Table 2."""

    instructions: float  # without those of the special-function unit
    memory: float
    special: float
    arithmetic: float  # FP instructions, those that do the work
    synchronizations: float
    warps_per_sm: float  # k = total_warps / active_SMs, over the whole run
    resident_warps: float  # N
    ilp: float
    mlp: float
    instruction_latency: float  # avg_inst_lat
    fp_latency: float
    dram_latency: float
    departure_delay: float  # Delta
    transactions: float  # of one memory request
    miss_ratio: float
    hit_latency: float
    peak_bandwidth_warps: float  # MWPpeak_bw, Eq. A.6
    data_requests: float  # size_of_data in requests per SM, which gives Eq. 19 its unit
    warp_size: float = 32.0
    simd_width: float = 32.0
    sfu_width: float = 4.0
    gamma: float = 64.0
    divergence_cycles: float = 0.0  # O_CFdiv
    bank_cycles: float = 0.0  # O_bank


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedParts:
    """What GPUPerf gives, in cycles."""

    execution: float
    compute: float
    memory: float
    overlap: float
    ideal_arithmetic: float  # T_fp
    ideal_memory: float  # T_mem_min
    itilp: float  # B_itilp
    serial: float  # B_serial
    fp: float  # B_fp
    memlp: float  # B_memlp


def gpuperf(of: Printed) -> PrintedParts:
    """Eqs. 1 to 23 and A.1 to A.5."""
    itilp_most = of.instruction_latency / (of.warp_size / of.simd_width)  # Eq. 5
    itilp = min(of.ilp * of.resident_warps, itilp_most)  # Eq. 4
    parallel = of.instructions * of.warps_per_sm * of.instruction_latency / itilp  # Eq. 3
    dram = of.dram_latency + (of.transactions - 1) * of.departure_delay  # Eq. 13
    share = of.special / of.instructions if of.instructions else 0.0
    visible = min(max(share - of.sfu_width / of.simd_width, 0.0), 1.0)  # Eq. 10
    special = of.special * of.warps_per_sm * of.warp_size / of.sfu_width * visible  # Eq. 9
    cycles_per_warp = of.gamma * dram * of.memory / of.instructions if of.instructions else 0.0  # Eq. 8
    sync = of.synchronizations * of.warps_per_sm * cycles_per_warp  # Eq. 7
    serial = sync + special + of.divergence_cycles + of.bank_cycles  # Eq. 6
    compute = parallel + serial  # Eq. 2
    latency = dram * of.miss_ratio + of.hit_latency  # Eq. 12
    mwp = min(dram / of.departure_delay, of.peak_bandwidth_warps, of.resident_warps)  # Eq. A.4
    computing = of.instructions * of.instruction_latency / itilp  # Eq. A.2
    waiting = of.memory * latency / of.mlp  # Eq. A.3
    cwp = min((waiting + computing) / computing, of.resident_warps)  # Eq. A.1
    itmlp = min(of.mlp * min(max(1.0, cwp - 1), mwp), of.peak_bandwidth_warps)  # Eqs. 14, 15
    memory = of.memory * of.warps_per_sm * latency / itmlp  # Eq. 11
    zeta = 1.0 if cwp <= mwp else 0.0
    overlap = min(compute * (of.resident_warps - zeta) / of.resident_warps, memory)  # Eqs. 16, 17
    ideal = of.arithmetic * of.warps_per_sm * of.fp_latency / itilp  # Eq. 18
    least = of.data_requests * dram / of.peak_bandwidth_warps  # Eq. 19
    b_itilp = parallel - of.instructions * of.warps_per_sm * of.instruction_latency / itilp_most  # Eq. 20
    return PrintedParts(
        execution=compute + memory - overlap,  # Eq. 1
        compute=compute,
        memory=memory,
        overlap=overlap,
        ideal_arithmetic=ideal,
        ideal_memory=least,
        itilp=b_itilp,
        serial=serial,  # Eq. 21
        fp=compute - ideal - b_itilp - serial,  # Eq. 22
        memlp=max(memory - overlap - least, 0.0),  # Eq. 23
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HongKim:
    """The inputs of the model of 2009."""

    clock_hz: float
    bandwidth: float  # bytes per second
    sms: int
    dram_latency: float
    departure_delay: float  # of one transaction of an uncoalesced request
    bytes_per_warp: float
    transactions: float  # of one uncoalesced request
    instructions: float  # computing ones
    memory: float
    synchronizations: float
    cycles_per_instruction: float
    warps: float  # N
    blocks_per_sm: float
    repetitions: float


def hong_kim(of: HongKim, *, mwp_without_bandwidth: float | None = None) -> tuple[float, float]:
    """Cycles of execution and of synchronization of a kernel with uncoalesced requests.

    Args:
        of: the inputs.
        mwp_without_bandwidth: the quotient of latency and delay as the published example rounds it.
    """
    latency = of.dram_latency + (of.transactions - 1) * of.departure_delay
    delay = of.departure_delay * of.transactions
    bandwidth_per_warp = of.clock_hz * of.bytes_per_warp / latency
    alone = latency / delay if mwp_without_bandwidth is None else mwp_without_bandwidth
    mwp = min(alone, of.bandwidth / (bandwidth_per_warp * of.sms), of.warps)
    computing = of.cycles_per_instruction * (of.instructions + of.memory)
    waiting = latency * of.memory
    cwp = min((waiting + computing) / computing, of.warps)
    period = computing / of.memory
    if mwp == of.warps and cwp == of.warps:
        once = waiting + computing + period * (mwp - 1)
    elif cwp >= mwp or computing > waiting:
        once = waiting * of.warps / mwp + period * (mwp - 1)
    else:
        once = latency + computing * of.warps
    sync = delay * (mwp - 1) * of.synchronizations * of.blocks_per_sm
    return once * of.repetitions, sync * of.repetitions
