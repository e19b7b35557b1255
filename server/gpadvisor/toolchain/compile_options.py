# SPDX-License-Identifier: Apache-2.0
"""A compile command reduced to the options that shape device code and cannot run foreign code.

Commands come with projects that may be hostile, so options are kept by a list of known ones: what names
another compiler, a plugin, an output or a file to write is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file

_RESPONSE_BYTES_MAX: Final = 1 << 20
_RESPONSE_FILES_MAX: Final = 64
_MACRO: Final = re.compile(r"[^\W\d]\w*(?:\([\w\s,.]*\))?(?:=.*)?", re.DOTALL)
"""Anything else in place of a name is an option, or a file of options, to the compiler of the host."""
# Inert between quotes of either kind; and between none, but for the blank.
_INERT: Final = re.compile(r"[\w .,:/@%+=-]*")

# Options with a value, by every spelling, and the spelling that both nvcc and NVRTC take.
_VALUE_OPTIONS: Final = {
    "-I": "--include-path",
    "--include-path": "--include-path",
    "-isystem": "--system-include",
    "--system-include": "--system-include",
    # nvcc has no folders for quoted includes only, and none after the system's.
    "-iquote": "--include-path",
    "-idirafter": "--system-include",
    "-include": "--pre-include",
    "--pre-include": "--pre-include",
    "-D": "--define-macro",
    "--define-macro": "--define-macro",
    "-U": "--undefine-macro",
    "--undefine-macro": "--undefine-macro",
    "-std": "--std",
    "--std": "--std",
    "-O": "--optimize",
    "--optimize": "--optimize",
    "-maxrregcount": "--maxrregcount",
    "--maxrregcount": "--maxrregcount",
    "-Xptxas": "--ptxas-options",
    "--ptxas-options": "--ptxas-options",
    "-ftz": "--ftz",
    "--ftz": "--ftz",
    "-prec-div": "--prec-div",
    "--prec-div": "--prec-div",
    "-prec-sqrt": "--prec-sqrt",
    "--prec-sqrt": "--prec-sqrt",
    "-fmad": "--fmad",
    "--fmad": "--fmad",
    "-rdc": "--relocatable-device-code",
    "--relocatable-device-code": "--relocatable-device-code",
    "-diag-suppress": "--diag-suppress",
    "--diag-suppress": "--diag-suppress",
    "-ftemplate-depth": "--ftemplate-depth",
    "--ftemplate-depth": "--ftemplate-depth",
}
_MACROS: Final = ("--define-macro", "--undefine-macro")
PATH_OPTIONS: Final = ("--include-path", "--system-include", "--pre-include")
_SWITCHES: Final = {
    "-use_fast_math": "--use_fast_math",
    "--use_fast_math": "--use_fast_math",
    "-expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "--expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "-expt-extended-lambda": "--extended-lambda",
    "--expt-extended-lambda": "--extended-lambda",
    "-extended-lambda": "--extended-lambda",
    "--extended-lambda": "--extended-lambda",
    "-restrict": "--restrict",
    "--restrict": "--restrict",
    "-extra-device-vectorization": "--extra-device-vectorization",
    "--extra-device-vectorization": "--extra-device-vectorization",
    "-G": "--device-debug",
    "--device-debug": "--device-debug",
    "-dc": "--relocatable-device-code=true",
    "--device-c": "--relocatable-device-code=true",
    "-w": "--disable-warnings",
    "--disable-warnings": "--disable-warnings",
}
TAKEN_ONCE: Final = frozenset(
    (
        "--std",
        "--optimize",
        "--maxrregcount",
        "--ftz",
        "--prec-div",
        "--prec-sqrt",
        "--fmad",
        "--relocatable-device-code",
        "--ftemplate-depth",
    )
)
# Options that may hide a path to code of the project; passed on only where the caller trusts it.
_TRUSTED_OPTIONS: Final = {
    "-ccbin": "--compiler-bindir",
    "--compiler-bindir": "--compiler-bindir",
    "-Xcompiler": "--compiler-options",
    "--compiler-options": "--compiler-options",
}
# Options whose value is a word of its own and is dropped with them.
_DROPPED_WITH_VALUE: Final = frozenset(
    (
        "-o",
        "--output-file",
        "-MF",
        "-MT",
        "-MQ",
        "-x",
        "--x",
        "-Xlinker",
        "--linker-options",
        "-Xnvlink",
        "--nvlink-options",
        "-Xarchive",
        "--archive-options",
        "-Xcudafe",
        "-Xfatbin",
        "-Xlibrary",
        "-odir",
        "--output-directory",
        "-keep-dir",
        "--keep-dir",
        "-L",
        "--library-path",
        "-l",
        "--library",
        "-idp",
        "--input-drive-prefix",
        "-ddp",
        "--dependency-drive-prefix",
        "-dp",
        "--drive-prefix",
        "-ldir",
        "--libdevice-directory",
        "-t",
        "--threads",
        "-split-compile",
        "--split-compile",
        "-time",
        "--time",
        "-m",
        "--machine",
        "-cudart",
        "--cudart",
        "-cudadevrt",
        "--cudadevrt",
        "-default-stream",
        "--default-stream",
        "-target",
    )
)
_ARCH_OPTIONS: Final = frozenset(
    (
        "-arch",
        "--gpu-architecture",
        "-code",
        "--gpu-code",
        "-gencode",
        "--generate-code",
        "--cuda-gpu-arch",
        "--offload-arch",
    )
)
_RESPONSE_OPTIONS: Final = frozenset(("-optf", "--options-file"))
# Longest first, so that "-isystemX" is not read as "-I".
_JOINED: Final = ("-idirafter", "-isystem", "-iquote", "-I", "-D", "-U", "-O")
_PTXAS: Final = re.compile(
    r"-{1,2}(O[0-3]|opt-level=[0-3]|[df]?lcm=\w+|def-load-cache=\w+|dscm=\w+|def-store-cache=\w+|fmad=\w+|v|verbose|"
    r"allow-expensive-optimizations=\w+|maxrregcount=\d+|warn-[\w-]+|disable-optimizer-constants)"
)
_DRAFTS: Final = {"c++0x": "c++11", "c++1y": "c++14", "c++1z": "c++17", "c++2a": "c++20", "c++2b": "c++23"}
_SM: Final = re.compile(r"\bsm_(\d{2,3}[af]?)\b")
_NUMBER: Final = re.compile(r"\d{2,3}[af]?")
_COMPUTE: Final = re.compile(r"\bcompute_(\d{2,3}[af]?)\b")
_UNUSABLE: Final = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
"""No option of a program can have these; the letters in between stand for bytes that are no UTF-8."""


@dataclass(frozen=True, slots=True)
class CompileCommand:
    """The device side of a compile command."""

    options: tuple[str, ...]  # "--name" or "--name=value"
    architectures: tuple[str, ...]  # "sm_80", in the order given
    directory: Path  # what relative paths are relative to
    refused: tuple[str, ...]  # options left out because they may run code of the project
    database: Path | None  # the file it comes from
    notes: tuple[str, ...] = ()  # sentences on what was taken for granted
    is_cuda: bool = True  # whether the build compiles it as CUDA


def is_shell_safe(text: str) -> bool:
    """Whether nvcc can be given a word without its shell running part of it, however it quotes the word.

    Names of a project and its definitions are not given to it at all (``nvcc_input.write_input``).
    """
    return _INERT.fullmatch(text) is not None


def reduce_command(
    words: Iterable[str], directory: Path, *, trusted: bool = False, database: Path | None = None
) -> CompileCommand:
    """The device options of a command line without its program."""
    options: list[str] = []
    real: list[str] = []
    virtual: list[str] = []
    refused: list[str] = []
    for name, value in _split_options(_expanded(words, directory)):
        if _UNUSABLE.search(value):
            refused.append(name)
        elif name in _ARCH_OPTIONS:
            real += _SM.findall(value) or ([value] if _NUMBER.fullmatch(value) else [])
            virtual += _COMPUTE.findall(value)
        elif name in _SWITCHES:
            options.append(_SWITCHES[name])
        elif name in _TRUSTED_OPTIONS:
            if trusted and is_shell_safe(value):
                options.append(f"{_TRUSTED_OPTIONS[name]}={value}")
            else:
                refused.append(name)
        elif name in _VALUE_OPTIONS and value:
            canonical = _VALUE_OPTIONS[name]
            if canonical == "--std":
                value = _standard(value)  # noqa: PLW2901  # in nvcc's spelling
            if canonical == "--ptxas-options":
                value = ",".join(part for part in value.split(",") if _PTXAS.fullmatch(part))  # noqa: PLW2901  # reduced
            if not _may_be(canonical, value):
                refused.append(f"{name} {value!r}")
            elif value:
                options.append(f"{canonical}={value}")
    return CompileCommand(
        options=tuple(options),
        # PTX for a virtual architecture is asked for beside real code, or is all there is to go by.
        architectures=tuple(dict.fromkeys(f"sm_{number}" for number in real or virtual)),
        directory=directory,
        refused=tuple(dict.fromkeys(refused)),
        database=database,
    )


def _may_be(name: str, value: str) -> bool:
    """Whether a value can be that of an option, and nothing else."""
    if name in _MACROS:
        return _MACRO.fullmatch(value) is not None
    return name in PATH_OPTIONS or is_shell_safe(value)


def _standard(value: str) -> str:
    """A language standard as nvcc names it: it knows neither GNU's dialects nor names of drafts."""
    name = "c++" + value.removeprefix("gnu++") if value.startswith("gnu++") else value
    return _DRAFTS.get(name, name)


def _expanded(words: Iterable[str], directory: Path) -> Iterator[str]:
    """The words, with those of response files in their place: build systems put include paths there."""
    pending = iter(words)
    room = _RESPONSE_FILES_MAX
    for word in pending:
        name, _, joined = word.partition("=")
        if name in _RESPONSE_OPTIONS:
            parts = (joined or next(pending, "")).split(",")
        elif word.startswith("@") and len(word) > 1:
            parts = [word[1:]]
        else:
            yield word
            continue
        for part in parts[:room]:
            yield from _response(directory / part)
        room = max(room - len(parts), 0)


def _response(path: Path) -> list[str]:
    """The words of a response file; they pass the same list of known options as all others."""
    try:
        return shlex.split(read_file(path, max_bytes=_RESPONSE_BYTES_MAX).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return []


def _split_options(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and value of each option; unknown ones come without a value, plain words not at all."""
    pending = iter(words)
    for word in pending:
        if not word.startswith("-") or word == "-":
            continue
        if word in _SWITCHES:
            yield word, ""
        elif word in _VALUE_OPTIONS or word in _ARCH_OPTIONS or word in _TRUSTED_OPTIONS:
            yield word, next(pending, "")
        elif word in _DROPPED_WITH_VALUE:
            next(pending, None)
        else:
            name, equals, value = word.partition("=")
            joined = next((prefix for prefix in _JOINED if word.startswith(prefix)), None)
            if equals and (name in _VALUE_OPTIONS or name in _ARCH_OPTIONS or name in _TRUSTED_OPTIONS):
                yield name, value
            elif joined is not None:
                yield joined, word[len(joined) :]
            else:
                yield name, ""
