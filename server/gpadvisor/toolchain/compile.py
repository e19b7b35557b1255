# SPDX-License-Identifier: Apache-2.0
"""One CUDA source to one cubin with line information, by nvcc or, for device-only code, by NVRTC."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpadvisor.errors import SourceError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from gpadvisor.files import scratch_folder
from gpadvisor.machine import code_form
from gpadvisor.model.compiler_message import CompilerMessage
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.sandbox.held import held_command
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.toolchain.compile_job import Compiled, CompileSettings, Job
from gpadvisor.toolchain.compile_options import TAKEN_ONCE, CompileCommand, reduce_command
from gpadvisor.toolchain.compiler_messages import CompileError, read_messages
from gpadvisor.toolchain.databases.database import find_command
from gpadvisor.toolchain.device_only import FOR_NVRTC, compile_reduced
from gpadvisor.toolchain.discovery import Tool, find_tools, machine_arch
from gpadvisor.toolchain.held import held_to
from gpadvisor.toolchain.nvcc_input import with_original_unit, without_own_source, write_input
from gpadvisor.toolchain.nvrtc import Nvrtc, NvrtcResult, compile_by_nvrtc, find_nvrtc
from gpadvisor.toolchain.stand_ins import Overlay, write_stand_in

DEFAULT_ARCH: Final = "sm_80"
_ARCH: Final = re.compile(r"sm_\d{2,3}[af]?")
# nvcc cannot do without a C++ compiler of the host; NVRTC can.
_NO_HOST_COMPILER: Final = re.compile(
    r"cannot find compiler|no such file or directory.*(gcc|g\+\+|cc1plus)|(gcc|g\+\+).*not found"
    r"|failed to preprocess host compiler|unsupported gnu version|host compiler",
    re.IGNORECASE,
)
_ERRORS_SHOWN: Final = 3
_OUT_OF_MEMORY: Final = re.compile(r"\bout of memory\b|std::bad_alloc|virtual memory exhausted")
_TEXTURES: Final = "texture is not a template"
_SHUFFLES: Final = re.compile(r'identifier "__shfl(?:_(?:up|down|xor))?" is undefined')
_OTHER_TARGET: Final = "not supported on .target"


def compile_source(
    path: Path,
    *,
    arch: str | None = None,
    settings: CompileSettings | None = None,
    text: str | None = None,
    overlay: Overlay | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Compiled:
    """Compile a ``.cu`` to the one cubin of an architecture.

    The command is that of the nearest ``compile_commands.json`` that names the source, else the
    settings' flags. ``text`` is compiled in place of what the source says, under its name and with its
    includes; an ``overlay`` holds what is seen in place of a whole folder.

    Raises:
        SourceError: the source is missing.
        CompileError: it does not compile; the sentence carries the first errors, ``messages`` has all.
        ToolNotFoundError: no compiler for the architecture is here; the message names what to install.
        ToolTimeoutError: the time limit passed.
    """
    settings = settings or CompileSettings()
    source = path.resolve()
    if not source.is_file():
        raise SourceError(f"{path} is no file; give the path of a CUDA source")
    command, extra, problems = _command(path, settings)
    target = _target(arch or settings.arch, command, problems)
    with scratch_folder() as folder:
        options = _once((*command.options, *extra.options))
        directory = command.directory if command.directory.is_dir() else source.parent
        if overlay is not None:
            source, directory = overlay.seen(source), overlay.seen(directory)
            options = overlay.options(options)
        if text is not None:  # what is beside the source stays in reach
            options = (f"--include-path={source.parent}", *options)
        job = Job(
            original=path.resolve(),
            source=source,
            text=source if text is None else write_stand_in(source, text.encode("utf-8", "replace"), folder),
            arch=target,
            options=options,
            directory=directory,
            folder=folder,
            scratch=folder,
            settings=settings,
            deadline=time.monotonic() + settings.timeout_seconds,
            cancelled=cancelled,
            overlay=overlay,
        )
        try:
            try:
                return _compile(job, problems)
            except CompileError as error:
                return compile_reduced(job, error, lambda reduced: _compile(reduced, problems))
        except ToolTimeoutError as error:
            raise ToolTimeoutError(
                f"{path.name} did not compile for {target} within {settings.timeout_seconds:g} s; "
                "tool-timeout-seconds in gpadvisor.toml gives it more time"
            ) from error


def _command(path: Path, settings: CompileSettings) -> tuple[CompileCommand, CompileCommand, list[Problem]]:
    """The build's or the settings' command, what the settings add to it, and what was assumed."""
    source = path.resolve()
    command, wrong = find_command(
        source, build=settings.build, trusted=settings.trusted, may_read=settings.may_read
    )
    problems: list[Problem] = []
    if wrong is not None:
        sentence = f"{wrong}; {path.name} was compiled with the flags of the settings"
        problems.append(Problem(ProblemCode.COMPILE_DATABASE, sentence))
    if command is None:
        command = reduce_command(settings.flags, source.parent, trusted=settings.trusted)
    problems += [_assumption(f"{path.name}: {note}") for note in command.notes]
    extra = reduce_command(settings.extra_flags, source.parent, trusted=settings.trusted)
    if refused := dict.fromkeys((*command.refused, *extra.refused)):
        left_out = ", ".join(refused)
        problems.append(
            _assumption(f"left out {left_out} of the command: such options may run code of the project")
        )
    command = replace(command, architectures=extra.architectures or command.architectures)
    return command, extra, problems


def _assumption(message: str) -> Problem:
    return Problem(ProblemCode.COMPILE_ASSUMPTION, message)


def _once(options: Iterable[str]) -> tuple[str, ...]:
    """The options, of those that nvcc takes once only the last: the command line wins over a build."""
    named_options = [(option.partition("=")[0], option) for option in options]
    effective = dict(named_options)
    return tuple(
        option for name, option in named_options if name not in TAKEN_ONCE or effective[name] == option
    )


def _target(requested: str | None, command: CompileCommand, problems: list[Problem]) -> str:
    """The one architecture to compile for."""
    if requested is not None:
        if _ARCH.fullmatch(requested) is None:
            raise SourceError(f"{requested} is no architecture; write it like sm_90")
        # A build for sm_90a uses what only that has; a GPU calls itself sm_90.
        variants = [arch for arch in command.architectures if arch.rstrip("af") == requested]
        return max(variants, default=requested)
    if not command.architectures:
        gpu = machine_arch()
        which = f"{gpu}, this machine's GPU" if gpu is not None else DEFAULT_ARCH
        problems.append(
            _assumption(f"no architecture was given; compiled for {which}, choose one with --arch")
        )
        return gpu or DEFAULT_ARCH
    newest = max(command.architectures, key=_generation)
    older = [arch for arch in command.architectures if arch != newest]
    if older:
        problems.append(
            _assumption(
                f"compiled for {newest}, the newest of the command's architectures, not for "
                f"{', '.join(older)}; --arch chooses"
            )
        )
    return newest


def _generation(arch: str) -> tuple[int, str]:
    """What orders architectures: sm_90 < sm_90a < sm_100."""
    number = arch.removeprefix("sm_")
    return int(number.rstrip("af")), number


def _compile(job: Job, problems: list[Problem]) -> Compiled:
    """By the first compiler that can."""
    lacks: str | None = None
    words = write_input(job)
    if words is None:
        lacks = f"nvcc would hand part of the name of {job.folder} to a shell"
        return _by_any_nvrtc(job, problems, lacks)
    for tool in find_tools("nvcc", explicit=job.settings.nvcc):
        if not tool.knows(job.arch):
            continue
        lacks = f"{tool} found no usable host compiler"
        if FOR_NVRTC in job.options:  # it did so before
            break
        compiled = _by_nvcc(tool, job, words, problems)
        if compiled is not None:
            return compiled
        # Without a host compiler no other nvcc does better.
        break
    return _by_any_nvrtc(job, problems, lacks)


def _by_nvcc(tool: Tool, job: Job, words: tuple[str, ...], problems: list[Problem]) -> Compiled | None:
    """The cubin; None where nvcc has no host compiler to make one."""
    output = job.folder / "nvcc.cubin"
    lines = () if "--device-debug" in job.options else ("-lineinfo",)
    # Of what it prints the beginning is kept: warnings must not push the errors out.
    quiet = () if "--disable-warnings" in job.options else ("--disable-warnings",)
    begin = (str(tool.path), "-cubin", *lines, *quiet, f"-arch={job.arch}", "-o", output.name)
    held = held_to(job, tool.path)
    result = run_tool(
        (*begin, *words) if held is None else held_command((*begin, *words), held),
        timeout_seconds=job.remaining,
        memory_bytes=job.settings.memory_bytes,
        cancelled=job.cancelled,
        directory=job.folder,
        environment={"TMPDIR": "."},  # what it leaves there when it is stopped goes, too
        check=False,
    )
    log = f"{result.stderr}\n{result.stdout[: 1 << 16].decode('utf-8', 'replace')}"
    if result.status != 0 or not output.exists():
        missing = _NO_HOST_COMPILER.search(log)
        if missing is not None:
            return None
        if _OUT_OF_MEMORY.search(log):
            limit = f"{job.settings.memory_bytes / 2**30:.2g} GiB"
            raise ToolFailedError(
                f"{tool} needs more memory for {job.source.name} than the {limit} that a compiler gets here; "
                "compile less of it at a time"
            )
        raise _does_not_compile(job, str(tool), without_own_source(log), by_nvrtc=False)
    return Compiled(
        cubin=with_original_unit(output.read_bytes(), job.original),
        arch=job.arch,
        command=(*begin, *job.options, str(job.source)),
        compiler=str(tool),
        by_nvrtc=False,
        problems=tuple(problems),
    )


def _by_any_nvrtc(job: Job, problems: list[Problem], lacks: str | None) -> Compiled:
    """The cubin by the newest NVRTC that knows the architecture."""
    number = int(re.sub(r"\D", "", job.arch))
    unusable: list[str] = []
    for copy in find_nvrtc():
        try:
            result = _by_nvrtc(copy, job)
        except ToolFailedError as error:
            unusable.append(str(error))
            continue
        if number not in result.architectures:
            unusable.append(f"NVRTC {result.version} does not know {job.arch}")
            continue
        if not result.cubin:
            raise _does_not_compile(job, f"NVRTC {result.version}", result.log, by_nvrtc=True)
        if lacks is not None:
            problems = [
                *problems,
                Problem(ProblemCode.TOOL_FALLBACK, f"{lacks}; used NVRTC {result.version} instead"),
            ]
        return Compiled(
            cubin=result.cubin,
            arch=job.arch,
            command=result.options,
            compiler=f"NVRTC {result.version}",
            by_nvrtc=True,
            problems=tuple(problems),
        )
    failures = [*([lacks] if lacks else []), *unusable]
    reasons = f": {'; '.join(failures)}" if failures else ""
    raise ToolNotFoundError(
        f"no compiler for {job.arch} was found{reasons}; choose another architecture, "
        f"or install {_package(job.arch)}"
    )


def _by_nvrtc(copy: Nvrtc, job: Job) -> NvrtcResult:
    return compile_by_nvrtc(
        copy,
        job.text,
        job.arch,
        job.options,
        directory=job.directory,
        folder=job.folder,
        timeout_seconds=job.remaining,
        memory_bytes=job.settings.memory_bytes,
        cancelled=job.cancelled,
        names=job.names,
        held=held_to(job, copy.library),
    )


def _package(arch: str) -> str:
    """What brings a compiler for an architecture."""
    newest = code_form(arch).newest_toolkit
    if newest:
        return f"a CUDA toolkit up to {newest}, or the package nvidia-cuda-nvrtc-cu12 for device-only code"
    return "the package nvidia-cuda-nvcc and a C++ compiler, or nvidia-cuda-nvrtc for device-only code"


def _does_not_compile(job: Job, compiler: str, log: str, *, by_nvrtc: bool) -> CompileError:
    """An error with the compiler's first complaints."""
    messages = read_messages(log, path_of=job.named, line_of=job.line_of)
    excerpts = [_shown(message, job.source) for message in messages[:_ERRORS_SHOWN]]
    log_lines = [line.strip() for line in log.splitlines() if line.strip()][:1] or ["it gave no reason"]
    advice = "correct it, or its flags in compile_commands.json or gpadvisor.toml"
    if any(_TEXTURES in message.message for message in messages):
        advice = (
            "CUDA 12 removed texture references: use texture objects, or name an older nvcc by GPADVISOR_NVCC"
        )
    elif any(_SHUFFLES.search(message.message) for message in messages):
        advice = "from sm_70 on a shuffle has a mask of lanes: use __shfl_sync, __shfl_down_sync and the like"
    elif any(_OTHER_TARGET in message.message for message in messages):
        advice = "name the architecture that it is for, such as --arch sm_90a or sm_100a"
    sentence = (
        f"{job.source.name} does not compile for {job.arch} by {compiler}: "
        f"{'; '.join(excerpts or log_lines).rstrip('.')}; {advice}"
    )
    return CompileError(sentence, messages, by_nvrtc=by_nvrtc)


def _shown(message: CompilerMessage, source: Path) -> str:
    """A complaint with its place, short where that is the source itself."""
    if message.file is None:
        return message.message
    file = source.name if message.file == str(source) else message.file
    return f"{file}:{message.line}: {message.message}"
