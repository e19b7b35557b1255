# SPDX-License-Identifier: Apache-2.0
"""How full the tensor pipe of a GeForce is, whose products with 32-bit sums run at half the rate.

Its counter takes the full rate for the peak: at 50 % such a kernel is at its limit. NVIDIA's papers on the
architectures give both rates (recalled): GeForce RTX 2080 Ti 107.6 and 53.8 TFLOPS, RTX 3090 142 and 71,
RTX 4090 330 and 165; boards for workstations and servers with the same chips run both at the full one. Where
the report also counts operations beside their own peak, as newer ones do, those tell whether the counter has
the lower rate in it already, as that of an RTX 5090 had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.model.advice import Utilisation
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program

TENSOR: Final = "tensor pipe"
_OPERATIONS: Final = "sm__ops_path_tensor_op_hmma"
_IN_32_BITS: Final = "_dst_fp32"
_PERCENT: Final = ".avg.pct_of_peak_sustained_elapsed"


def at_half_rate(
    measured: Sequence[Utilisation], program: Program, profile: KernelProfile
) -> tuple[Utilisation, ...]:
    """Utilisations with the tensor pipe as full as it is, its metric under the factor that was applied."""
    factor = _factor(program, profile)
    by_operations = sum(
        percent
        for name in profile.metrics
        if name.startswith(_OPERATIONS) and _IN_32_BITS in name and name.endswith(_PERCENT)
        if (percent := profile.metric(name)) is not None
    )
    counted = max((unit.percent for unit in measured if unit.name == TENSOR), default=0.0)
    if factor < constants.HALF_RATE or 0 < by_operations < sqrt(factor) * counted:
        return tuple(measured)
    return tuple(
        replace(
            utilisation,
            percent=min(constants.PEAK_PERCENT, factor * utilisation.percent),
            metric=f"{factor:.3g} x {utilisation.metric}",
        )
        if utilisation.name == TENSOR
        and utilisation.percent <= constants.PEAK_PERCENT / factor * constants.HALF_RATE
        else utilisation
        for utilisation in measured
    )


def _factor(program: Program, profile: KernelProfile) -> float:
    """How many times longer the executed matrix instructions take than the counter's peak has them."""
    if "geforce" not in (profile.device.name or "").lower():
        return 1.0
    total = slow = 0.0
    for function in program.functions:
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            if instruction.info.opclass is OpcodeClass.TENSOR:
                count = 1.0 if executed is None else float(executed[index])
                total += count
                slow += count if _sums_in_32_bits(instruction) else 0.0
    return 1.0 + slow / total if total else 1.0


def _sums_in_32_bits(instruction: Instruction) -> bool:
    return instruction.opcode == "HMMA" and "F32" in instruction.modifiers
