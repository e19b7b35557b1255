# SPDX-License-Identifier: Apache-2.0
"""Modelled profiles: a kernel's machine code on the simulated SM, where nothing was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.errors import UsageError
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import KernelProfile, Profile, source_text
from gpadvisor.model.program import Program
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.code import open_code
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.launches import StatedArgument, StatedLaunch, no_launch
from gpadvisor.pipeline.machines import machine_model
from gpadvisor.pipeline.programs import kernel_program
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources.launches import SourceLaunch, launch_of, source_launches
from gpadvisor.pipeline.sources.named import texts_now
from gpadvisor.sass.listing import dump_listing
from gpadvisor.simulator import Argument, Simulation, SimulationConfig, argument_words, simulate
from gpadvisor.store.snapshot import write_snapshot

_SIZES: Final = {"pointer": 8, "int": 4, "long": 8, "float": 4, "double": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What ``simulate`` wrote."""

    kernels: tuple[tuple[str, Simulation], ...]
    problems: tuple[Problem, ...]


def stated_launch(kernel: str, request: Request, written: SourceLaunch | None = None) -> StatedLaunch:
    """What the command line, else the settings, else the source say about a kernel's launch."""
    plain = demangle(kernel).partition("(")[0].partition("<")[0].rpartition(" ")[2]
    launches = request.settings.launches
    launch = launches.get(kernel) or launches.get(plain) or StatedLaunch()
    stated = request.stated.over(launch)
    return stated if written is None else stated.over(written.stated)


def written_launches(path: Path, request: Request) -> Mapping[str, SourceLaunch]:
    """The launches that a source writes with constants, by plain kernel name; none of a cubin."""
    if input_kind(path) is not InputKind.SOURCE:
        return {}
    flags = (*request.settings.flags, *request.settings.extra_flags)
    return source_launches(path, tuple(flag[2:] for flag in flags if flag.startswith("-D")))


def open_launches(kernels: Iterable[str], launches: Mapping[str, SourceLaunch]) -> list[str]:
    """What stands in the way of the launches that a source has."""
    written = (launch_of(kernel, launches) for kernel in kernels)
    return [launch.origin for launch in written if launch is not None]


def configuration(
    kernel: str, request: Request, written: SourceLaunch | None = None
) -> SimulationConfig | None:
    """What is simulated of a kernel; None where its grid and block are not known.

    Raises:
        UsageError: no GPU takes such a launch.
    """
    stated = stated_launch(kernel, request, written)
    if stated.grid is None or stated.block is None:
        return None
    config = SimulationConfig(grid=stated.grid, block=stated.block, loop_trips=stated.loops)
    given = {
        "dynamic_shared_bytes": stated.dynamic_shared_bytes,
        "l1_hit_rate": stated.l1_hit_rate,
        "l2_hit_rate": stated.l2_hit_rate,
        "sms": stated.sms,
        "seed": stated.seed,
        "arguments": argument_words(stated_arguments(stated)) or None,
    }
    return replace(config, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type] # checked when it was read


def model_kernel(
    program: Program,
    kernel: str,
    machine: MachineModel,
    config: SimulationConfig,
    binary: str | None,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Simulation:
    """The simulated launch of a kernel.

    Args:
        program: its code.
        kernel: mangled name.
        machine: table of the architecture.
        config: the launch.
        binary: sha256 of the cubin.
        progress: told several times a second how far the run is.
        cancelled: asked as often; True stops the run.

    Raises:
        CancelledError: it was stopped.
        UsageError: the launch cannot run.
    """
    return simulate(
        program,
        kernel,
        machine,
        config,
        binary=binary,
        progress=None if progress is None else _share_of(kernel, progress),
        cancelled=cancelled,
    )


def _share_of(kernel: str, progress: Progress) -> Callable[[float], None]:
    """Say how much of a simulation is done, in words."""
    name = demangle(kernel)[:50]
    progress(f"simulating {name}")  # the first one of an installation compiles the inner loop, too

    def say(share: float) -> None:
        progress(f"simulating {name}: {percent(share, 0)}")

    return say


def simulate_file(
    path: Path,
    target: Path,
    request: Request,
    progress: Progress,
    cache: Cache,
    *,
    cancelled: Callable[[], bool] | None = None,
) -> Simulated:
    """Write a snapshot with one modelled launch of each wanted kernel whose launch is stated.

    Raises:
        CancelledError: it was stopped; nothing is written then.
        UsageError: no wanted kernel has a launch, or none of them can run.
        GpadvisorError: the input or a tool is at fault.
    """
    code = open_code(path, request, progress, cache)
    machine = machine_model(code.source.cubin.arch, request)
    simulations: list[tuple[str, Simulation]] = []
    failed: list[str] = []
    texts: dict[str, str] = {}
    launches = written_launches(path, request)
    for kernel, section in code.kernels.items():
        program = kernel_program(code.source, {section})
        digest = code.source.cubin.sha256
        try:
            config = configuration(kernel, request, launch_of(kernel, launches))
            if config is None:
                continue
            simulation = model_kernel(
                program, kernel, machine, config, digest, progress=progress, cancelled=cancelled
            )
        except UsageError as error:  # the other kernels of the file have launches of their own
            failed.append(f"{demangle(kernel)}: {error}")
            continue
        simulations.append((kernel, simulation))
        texts.update(texts_now(program))
    if not simulations:
        raise UsageError(failed[0] if failed else no_launch(path, open_launches(code.kernels, launches)))
    listing = dump_listing(code.source.listing)
    profiles = [simulation.as_profile(code.data, listing) for _, simulation in simulations]
    sources = {file: source_text(file, text) for file, text in texts.items()}
    profile = replace(profiles[0], kernels=tuple(_numbered(profiles)), sources=sources)
    write_snapshot(profile, target)
    impossible = (Problem(ProblemCode.FAILED_LAUNCH, text) for text in failed)
    return Simulated(
        kernels=tuple(simulations), problems=(*code.problems, *code.source.problems, *impossible)
    )


def _numbered(profiles: list[Profile]) -> list[KernelProfile]:
    kernels = [kernel for profile in profiles for kernel in profile.kernels]
    return [
        replace(kernel, launch=replace(kernel.launch, index=index)) for index, kernel in enumerate(kernels)
    ]


def stated_arguments(stated: StatedLaunch) -> list[Argument]:
    """The arguments of a stated launch, as the simulator takes them."""
    return [_argument(entry) for entry in stated.arguments]


def _argument(stated: StatedArgument) -> Argument:
    kind = {"int": "integer", "long": "integer", "double": "float"}.get(stated.kind, stated.kind)
    return Argument(kind=kind, size=_SIZES[stated.kind], value=stated.value)  # type: ignore[arg-type] # one of the three kinds
