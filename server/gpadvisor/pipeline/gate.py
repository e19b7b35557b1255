# SPDX-License-Identifier: Apache-2.0
"""What gates look at in two analysed files."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.advice.compare import pair_kernels
from gpadvisor.evidence.accesses import is_stack_slot, one_way_slots
from gpadvisor.gate.limits import GateCheck, GatedKernel, GateLimit, checks
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.profile import Evidence
from gpadvisor.pipeline.advise import AdvisedFile, AdvisedKernel


def check_advised(
    before: AdvisedFile, after: AdvisedFile, limits: Sequence[GateLimit]
) -> tuple[GateCheck, ...]:
    """Every limit for every pair of kernels."""
    kernels = {id(kernel.advice): kernel for side in (before, after) for kernel in side.kernels}
    pairs, _, _ = pair_kernels(before.advice.kernels, after.advice.kernels)
    sides = [
        (
            _side(kernel_before, before, kernels.get(id(kernel_before))),
            _side(kernel_after, after, kernels.get(id(kernel_after))),
        )
        for kernel_before, kernel_after in pairs
    ]
    return checks(sides, limits)


def _side(advice: KernelAdvice, file: AdvisedFile, kernel: AdvisedKernel | None) -> GatedKernel:
    launch = advice.launch
    same = [
        summary.launch.duration_ns
        for summary in file.advice.launches
        if launch is not None
        and (summary.launch.kernel, summary.launch.grid, summary.launch.block)
        == (launch.kernel, launch.grid, launch.block)
        and summary.launch.duration_ns  # some reports have zero
        and not summary.launch.failed
    ]
    single = (advice.duration_ns,) if advice.duration_ns else ()
    return GatedKernel(
        kernel=advice.name,
        durations_ns=tuple(same) or single,
        modelled=advice.evidence is Evidence.MODELLED,
        device=advice.device.name or advice.device.arch,
        launch="" if launch is None else f"grid {_size(launch.grid)}, block {_size(launch.block)}",
        counters={
            "registers": advice.registers_per_thread,
            "shared": advice.shared_bytes,
            "findings": sum(suggestion.suppressed is None for suggestion in advice.suggestions),
            "spills": None if kernel is None else _spills(kernel),
            "insts": None if kernel is None else _executed(kernel),
        },
    )


def _size(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


def _spills(kernel: AdvisedKernel) -> int | None:
    """Instructions that write or read registers in local memory, of the kernel and what it may call."""
    context = kernel.analysed.context
    program = context.program
    if not any(function.instructions for function in program.functions):
        return None
    result = 0
    for function in program.functions:
        if function.section != context.kernel and function.section in program.facts:
            continue  # another kernel
        slots = [
            index for index, instruction in enumerate(function.instructions) if is_stack_slot(instruction)
        ]
        result += len(slots) - len(one_way_slots(function, slots))
    return result


def _executed(kernel: AdvisedKernel) -> float | None:
    """Instructions that warps executed, where they were counted or modelled."""
    profile = kernel.analysed.context.profile
    if profile is None or profile.counts is None:
        return None
    return float(profile.counts.warps.sum())
