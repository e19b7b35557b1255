# SPDX-License-Identifier: Apache-2.0
"""A few registers of a thread less, that make room for one more block on an SM."""

from __future__ import annotations

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape, Step, held_warps, next_block
from gpadvisor.evidence.measured import registers_per_thread
from gpadvisor.evidence.queries import counted
from gpadvisor.model.profile import KernelProfile


def held_by_registers(context: KernelContext, profile: KernelProfile, current: LaunchShape) -> str:
    """How many blocks the registers of an SM hold."""
    sm, registers = context.machine.sm, registers_per_thread(context.program, context.kernel, profile)
    return (
        f"with {registers} registers per thread an SM holds {counted(current.fits, 'block')} of "
        f"{current.threads}, {round(current.warps * sm.schedulers.value)} of {sm.max_warps.value} warps"
    )


def near_step(context: KernelContext, profile: KernelProfile, shape: LaunchShape) -> Step | None:
    """One more block on an SM for few registers; None where it takes more, or half the warps are away."""
    step, held = next_block(context, profile), held_warps(context, profile)
    registers = registers_per_thread(context.program, context.kernel, profile)
    if step is None or step.registers is None or registers is None or step.shared_bytes is not None:
        return None
    near = registers - step.registers <= context.machine.sm.register_step and (
        held is None or held >= constants.MAJORITY * shape.warps
    )
    return step if near and step.blocks >= shape.resident * constants.UNSURE else None


def spared_registers(context: KernelContext, profile: KernelProfile, threads: int, step: Step) -> str:
    """The declaration that asks the compiler for so few registers."""
    registers = registers_per_thread(context.program, context.kernel, profile) or 0
    bounds = terms.LAUNCH_BOUNDS_OF.of(context.language, bounds=f"{threads}, {step.blocks}")
    return (
        f"{bounds}: {step.blocks} blocks fit with at most "
        f"{step.registers} registers per thread, {registers - (step.registers or 0)} fewer, if nothing spills"
    )
