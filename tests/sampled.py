# SPDX-License-Identifier: Apache-2.0
"""Reports of our own kernels with samples that are invented but possible, for tests of everything behind."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.kernels import COMPILED_AS, KERNELS, compile_kernel, nvdisasm_json
from tests.ncu_writer import LaunchSpec

from gpadvisor.cubin import read_cubin
from gpadvisor.model.instruction import InOrderQueue, Instruction, OpcodeClass
from gpadvisor.sass import decode, parse_json

_LONG = {OpcodeClass.LOAD, OpcodeClass.ATOMIC}


def sampled_launch(name: str, which: str = "before", arch: str = "sm_80", *, scale: int = 1) -> LaunchSpec:
    """One launch of a kernel of ``fixtures/kernels``: waits where the code waits, counts everywhere."""
    kernel = KERNELS[name]
    return sampled(
        compile_kernel(name, which, arch),
        kernel.entry,
        seed=name,
        scale=scale,
        demangled=f"{kernel.entry}(float *)",
        grid=kernel.launch.grid,
        block=kernel.launch.block,
        sources={f"{COMPILED_AS}/fixtures/kernels/{name}/{which}.cu": kernel.source(which).read_text()},
    )


def sampled(cubin: bytes, kernel: str, *, seed: str, scale: int = 1, **rest: Any) -> LaunchSpec:
    """One launch of any kernel, with samples in all code of its cubin that belongs to it or is a function."""
    image = read_cubin(cubin)
    listing = parse_json(nvdisasm_json(cubin))
    random_ = random.Random(seed)
    samples: dict[tuple[str, int, str], tuple[int, int]] = {}
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for section in image.sections:
        if section.name != kernel and section.name in image.facts:
            continue
        instructions, _ = decode(image.arch, section.code, listing[section.name])
        for instruction in instructions:
            place = (section.name, int(instruction.pc))
            counts[place] = (1000 * scale, 32000 * scale)
            samples[*place, "selected"] = (10 * scale, 0)
            reason = _reason(instruction, instructions)
            if reason is not None:
                total = random_.randrange(100, 400) * scale
                samples[*place, reason] = (total, total * 3 // 4)
    registers = image.facts[kernel].registers_per_thread or 32
    return LaunchSpec(kernel=kernel, cubin=cubin, samples=samples, counts=counts, registers=registers, **rest)


def twice(launch: LaunchSpec, duration_ns: float) -> LaunchSpec:
    """The same launch with another duration."""
    return replace(launch, duration_ns=duration_ns)


def _reason(instruction: Instruction, all_: tuple[Instruction, ...]) -> str | None:
    """A reason that the hardware could have for making this instruction wait."""
    if instruction.info.opclass is OpcodeClass.BARRIER:
        return "barrier"
    if not instruction.control.waits:
        return "wait" if instruction.pc % 64 == 0 else None
    setters = [
        other
        for other in all_
        if other.control.write_barrier in instruction.control.waits and other.pc < instruction.pc
    ]
    if any(other.info.opclass in _LONG and other.info.queue is not InOrderQueue.MIO for other in setters):
        return "long_scoreboard"
    return "short_scoreboard" if setters else None
