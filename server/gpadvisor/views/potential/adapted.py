# SPDX-License-Identifier: Apache-2.0
"""GPUPerf for today's SMs: schedulers, pipes, stall counts in the code, caches, bandwidth at every level."""

from __future__ import annotations

from gpadvisor.views.potential.model import Benefit, CycleParts, ModelInputs


def parts(of: ModelInputs) -> CycleParts:
    """The parts of a kernel's cycles.

    Differs from GPUPerf: avg_inst_lat / ILP is the executed mean of the stall counts that the compiler wrote
    (s); issue and the busiest pipe are the floor of the compute time, in place of ITILPmax and of O_SFU; bank
    conflicts are passes of L1 and part of its bandwidth; O_sync is what was sampled; one warp's computing is
    never hidden: the printed zeta falls from 1 to 0 where CWP passes MWP, and time jumps.
    """
    full = max(of.instructions / of.issue_width, of.pipe_cycles)
    parallel = max(full, of.instructions * of.stall_cycles / of.resident_warps)  # Eqs. 3 to 5
    compute = parallel + of.serial_cycles  # Eq. 2
    bounded = of.latency >= 1 and of.request_cycles > 0
    peak = of.latency / of.request_cycles if bounded else float("inf")  # Eq. A.5
    mwp = min(peak, of.resident_warps)  # Eq. A.4
    waiting = of.loads * of.latency / of.mlp
    cwp = min((waiting + parallel) / parallel, of.resident_warps)  # Eq. A.1, both of all warps of an SM
    itmlp = min(of.mlp * min(max(1.0, cwp - 1), mwp), peak)  # Eqs. 14, 15
    # Eq. 11, and no faster than the tightest level of memory
    memory = max(of.loads * of.latency / itmlp, of.requests * of.request_cycles)
    # Eqs. 16, 17 with zeta = 1
    overlap = min(compute * max(0.0, of.resident_warps - 1) / of.resident_warps, memory)
    exposed = memory - overlap
    essential = min(of.essential_cycles, full)
    return CycleParts(
        execution=compute + memory - overlap,  # Eq. 1
        compute=compute,
        memory=memory,
        overlap=overlap,
        mwp=mwp,
        cwp=cwp,
        ideal_compute=essential,  # Eq. 18
        ideal_memory=min(of.data_cycles, exposed),  # Eq. 19
        benefits={
            Benefit.MEMLP: max(exposed - of.data_cycles, 0.0),  # Eq. 23
            Benefit.ITILP: parallel - full,  # Eq. 20
            Benefit.SERIAL: of.serial_cycles,  # Eq. 21
            Benefit.FP: full - essential,  # Eq. 22
        },
    )
