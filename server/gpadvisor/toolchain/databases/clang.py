# SPDX-License-Identifier: Apache-2.0
"""Commands of clang's CUDA mode in nvcc's words, since the machine code is made by nvcc or NVRTC here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Final

_CLANG: Final = re.compile(r"clang(\+\+|-cl)?(-\d+(\.\d+)*)?(\.exe)?")
_NVCC: Final = re.compile(r"nvcc(\.exe)?")
_HIP: Final = re.compile(r"(hipcc|amdclang(\+\+)?)(\.exe|\.bin)?")
_LAUNCHERS: Final = 4
"""Words that may stand before the compiler: ccache, distcc, an environment."""
_CUDA_MODE: Final = ("-xcuda", "--cuda-gpu-arch", "--offload-arch")

_SAME: Final = {
    "-ffast-math": ("--use_fast_math",),
    "-Ofast": ("-O3", "--use_fast_math"),
    "-fgpu-flush-denormals-to-zero": ("--ftz=true",),
    "-fcuda-flush-denormals-to-zero": ("--ftz=true",),
    "-fno-gpu-flush-denormals-to-zero": ("--ftz=false",),
    "-fgpu-rdc": ("-rdc=true",),
    "-fcuda-rdc": ("-rdc=true",),
    "-fno-gpu-rdc": ("-rdc=false",),
    "-ffp-contract=off": ("--fmad=false",),
    "-ffp-contract=on": ("--fmad=true",),
    "-ffp-contract=fast": ("--fmad=true",),
    "-O": ("-O1",),
    "-Og": ("-O1",),
    "-Os": ("-O2",),
    "-Oz": ("-O2",),
    "-O4": ("-O3",),
}
# Options of clang whose value is a word of its own, and that say nothing about device code.
_DROPPED_WITH_VALUE: Final = frozenset(
    (
        "-Xclang",
        "-Xarch_host",
        "-Xcuda-fatbinary",
        "-Xpreprocessor",
        "-Xassembler",
        "-Xlinker",
        "-mllvm",
        "-imacros",
        "-isysroot",
        "-include-pch",
        "-iprefix",
        "-iwithprefix",
        "-iframework",
        "-F",
        "-arch",
        "-dependency-file",
        "-working-directory",
    )
)


def is_clang(words: Sequence[str]) -> bool:
    """Whether a whole command line is of clang in its CUDA mode."""
    names = _programs(words)
    if any(_NVCC.fullmatch(name) for name in names):
        return False
    if any(_CLANG.fullmatch(name) for name in names):
        return True
    return any(word.startswith(_CUDA_MODE) for word in words) or _language(words) == "cuda"


def is_cuda(words: Sequence[str]) -> bool:
    """Whether a whole command line compiles CUDA: by the language it names, else by its source."""
    language = _language(words) or next((word[2:] for word in words if word in {"-xcu", "-xcuda"}), None)
    return any(word.endswith(".cu") for word in words) if language is None else language in {"cu", "cuda"}


def is_hip(words: Sequence[str]) -> bool:
    """Whether a whole command line compiles for AMD's GPUs."""
    return (
        any(_HIP.fullmatch(name) for name in _programs(words))
        or "-xhip" in words
        or _language(words) == "hip"
    )


def as_nvcc(words: Sequence[str]) -> Iterator[str]:
    """The options of clang in nvcc's spelling; what both know stays as it is."""
    pending = iter(words)
    for word in pending:
        if word in _SAME:
            yield from _SAME[word]
        elif word == "-Xcuda-ptxas":
            yield from ("-Xptxas", next(pending, ""))
        elif word in _DROPPED_WITH_VALUE:
            next(pending, None)
        elif word != "-Xarch_device":  # what follows it is for device code, and stays
            yield word


def _programs(words: Sequence[str]) -> list[str]:
    """Names of the programs at the start of a command."""
    names = []
    for word in words[:_LAUNCHERS]:
        if word.startswith("-"):
            break
        names.append(PurePath(word).name)
    return names


def _language(words: Sequence[str]) -> str | None:
    return next((after for word, after in pairwise(words) if word == "-x"), None)
