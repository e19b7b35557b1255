# SPDX-License-Identifier: Apache-2.0
"""Programs and launches for the simulator: our own kernels with their arguments, and small texts."""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from typing import Any

from tests.kernels import FOLDER, KERNELS, Which, compile_kernel, compile_text, nvdisasm_json

from gpadvisor import machine
from gpadvisor.analyzer import build_program
from gpadvisor.cubin import read_cubin
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, Program
from gpadvisor.sass import Listing, parse_json
from gpadvisor.simulator import Argument, Simulation, SimulationConfig, argument_words, simulate


def listing_of(cubin: bytes) -> Listing:
    """What the package reads of a cubin's machine code, as ``toolchain.disassemble`` does."""
    return parse_json(nvdisasm_json(cubin))


@functools.cache
def program_of(cubin: bytes) -> Program:
    """The analysed cubin."""
    return build_program(read_cubin(cubin), listing_of(cubin))


def text_program(text: str, arch: str = "sm_80", *options: str) -> Program:
    """The program of a CUDA text."""
    return program_of(compile_text(text, "kernel.cu", arch, *options))


def code_length(function: Function) -> int:
    """Instructions of a function without what fills up its end."""
    return sum(
        one.info.opclass is not OpcodeClass.NOP and one.target != one.pc for one in function.instructions
    )


def run_text(
    text: str,
    arguments: dict[int, int] | None = None,
    arch: str = "sm_80",
    kernel: str = "k",
    grid: int = 1,
    block: int = 32,
    **more: Any,
) -> Simulation:
    """Simulate the kernel ``k`` of a CUDA text."""
    config = SimulationConfig(
        grid=(grid, 1, 1), block=(block, 1, 1), arguments=arguments or {}, **{"sms": 1, **more}
    )
    return simulate(text_program(text, arch), kernel, machine.load(arch), config)


def arguments_of(name: str, which: Which = "before") -> dict[int, int]:
    """The arguments that kernel.toml gives, as words."""
    table = tomllib.loads((FOLDER / name / "kernel.toml").read_text(encoding="utf-8"))
    found: list[Argument] = []
    for row in table.get("arguments", []):
        found += _arguments(row, which)
    return argument_words(found)


def _arguments(row: dict[str, Any], which: Which) -> list[Argument]:
    kind = row["type"]
    value = row.get(which, row.get("value"))
    if kind.endswith("*"):
        return [Argument("pointer", 8)]
    if kind == "struct":
        if isinstance(value, list):
            return [Argument("integer", 4, one) for one in value]
        return [Argument("pointer", 8)] * (value or {}).get("pointers", 1)
    if isinstance(value, dict):
        value = value.get("value")
    if kind in {"float", "double"}:
        return [Argument("float", 4 if kind == "float" else 8, value)]
    return [Argument("integer", 8 if "long" in kind or kind == "size_t" else 4, value)]


def loop_trips_of(name: str, which: Which = "before") -> dict[int, int]:
    """The trip counts of kernel.toml by line of the source."""
    kernel = KERNELS[name]
    lines = kernel.source(which).read_text(encoding="utf-8").splitlines()
    return {
        number: trips
        for number, line in enumerate(lines, 1)
        for beginning, trips in kernel.trip_counts.items()
        if line.strip().startswith(beginning)
    }


def fixture_config(name: str, which: Which = "before", **more: Any) -> SimulationConfig:
    """The launch of one of our kernels, with its arguments."""
    kernel = KERNELS[name]
    launch = kernel.launch if which == "before" else kernel.launch_after
    values: dict[str, Any] = {
        "grid": launch.grid, "block": launch.block, "arguments": arguments_of(name, which),
        "loop_trips": loop_trips_of(name, which), **more,
    }  # fmt: skip
    return SimulationConfig(**values)


def run_fixture(name: str, which: Which = "before", arch: str = "sm_80", **more: Any) -> Simulation:
    """Simulate one of our kernels."""
    program = program_of(compile_kernel(name, which, arch))
    return simulate(program, KERNELS[name].entry, machine.load(arch), fixture_config(name, which, **more))


def reasons(simulation: Simulation) -> Counter[str]:
    """Samples by stall reason."""
    profile = simulation.profile
    found: Counter[str] = Counter()
    for reason, total in zip(profile.samples.reason, profile.samples.total, strict=True):
        found[profile.reasons[reason].name] += int(total)
    return found
