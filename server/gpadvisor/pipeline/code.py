# SPDX-License-Identifier: Apache-2.0
"""Code without a profile: a cubin as it is, or a source, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.errors import (
    CubinError,
    NoDeviceCodeError,
    ProfileFormatError,
    ProfileMismatchError,
    SourceError,
)
from gpadvisor.files import read_file
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.programs import Disassembled, kernel_sections, open_cubin
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.units import compile_file, sections_from

_MAX_CUBIN_BYTES: Final = 1 << 30
_MAX_SOURCE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Code:
    """A cubin with its listing, and the kernels in it that were asked for."""

    data: bytes
    source: Disassembled
    kernels: Mapping[str, str]  # section by mangled name
    problems: tuple[Problem, ...]  # of the compile step


def open_code(path: Path, request: Request, progress: Progress, cache: Cache) -> Code:
    """Read a cubin or compile a source, and disassemble it.

    Raises:
        GpadvisorError: the file is neither, a tool is at fault, or no kernel has the wanted name.
    """
    kind = input_kind(path)
    problems: tuple[Problem, ...] = ()
    unit = path
    if kind is InputKind.PROFILE:
        raise ProfileFormatError(f"{path} is neither a cubin nor a .cu file")
    if kind is InputKind.SOURCE:
        compiled, unit = compile_file(path, request, progress)
        data, problems = compiled.cubin, compiled.problems
    else:
        data = read_file(path, max_bytes=_MAX_CUBIN_BYTES)
    try:
        source = open_cubin(
            data,
            None,
            stored=None,
            timeout_seconds=request.settings.tool_timeout_seconds,
            cache=cache,
            progress=progress,
        )
    except NoDeviceCodeError as error:
        reduced = [problem.message for problem in problems if problem.code is ProblemCode.REDUCED_SOURCE]
        if reduced and b"__global__" in read_file(path, max_bytes=_MAX_SOURCE_BYTES):
            raise SourceError(f"{reduced[0]}, which is what makes its kernels out of templates") from error
        sentence = (
            f"no kernel is left: {reduced[0]}; correct it, or its flags in compile_commands.json "
            "or gpadvisor.toml"
            if reduced
            else str(error)
        )
        raise NoDeviceCodeError(f"{path}: {sentence}") from error
    except CubinError as error:
        raise type(error)(f"{path}: {error}") from error
    names = kernel_sections(source.cubin)
    if unit != path:
        inside = sections_from(path, source.lines) & set(names.values())
        names = {name: section for name, section in names.items() if section in inside}
    selected = {name: section for name, section in names.items() if request.wants(demangle(name), name)}
    if not selected:
        if not names:
            raise NoDeviceCodeError(f"{path} holds no kernel")
        text = ", ".join(sorted(demangle(name) for name in names)[:5])
        raise ProfileMismatchError(f"no kernel of {path} is called that; it has: {text}")
    return Code(data=data, source=source, kernels=selected, problems=problems)
