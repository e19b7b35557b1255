# SPDX-License-Identifier: Apache-2.0
"""The source line of an instruction and of a loop, inlined or not (GPA section III, program structure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import LineEntry

_PACKAGES: Final = re.compile(r"(?:^|/)(?:site-packages|dist-packages|\.julia/packages)/")
"""Folders that a package manager fills, inside a project or elsewhere."""
_LIBRARY: Final = re.compile(
    r"^/usr/(?:local/)?(?:include|lib|lib64)/|^/(?:usr|usr/local|usr/lib|opt)/cuda/(?:.*/)?include/"
    r"|/cuda[-/]v?\d[^/]*/(?:.*/)?include/|/targets/[\w-]+/include/|/VC/Tools/MSVC/|/Windows Kits/"
    r"|/(?:libcudacxx|crt|cooperative_groups)/|/hpc_sdk/.*/include[\w-]*/|/include/(?:thrust|cub|cute|cutlass|curand\w*)(?:/|\.h$)"
    r"|/(?:sm_\d\d_\w+|device_\w+functions|cuda_(?:fp|bf)\d+)\.h(?:pp)?$|^\./[\w/]+\.jl$",
    re.IGNORECASE,
)
"""Files of a toolkit or of a language, by where they are installed or what they are called."""


def is_package(path: str) -> bool:
    """Whether a package manager put a file where it is."""
    return _PACKAGES.search(path.replace("\\", "/")) is not None


@lru_cache(maxsize=1 << 10)
def is_library(path: str) -> bool:
    """Whether a file is a toolkit's, a language's or a package's: nobody edits it to make a kernel faster."""
    return is_package(path) or _LIBRARY.search(path.replace("\\", "/")) is not None


_PREBUILT: Final = re.compile(
    r"^(?:void )?(?:at::native::|cudnn::|cublas|cask|nvjet_|nccl\w*Kernel|sm\d+_xmma_|cutlass_\d+_|"
    r"cutlass::Kernel2?<cutlass_\d+_|(?:maxwell|pascal|volta|turing|ampere|hopper)_\w*(?:gemm|conv|grad|fprop))"
)
"""How kernels of cuBLAS, cuDNN, NCCL and PyTorch are called in reports."""


_RUNTIME: Final = re.compile(r"^(?:void )?(?:__pgi_|__nvomp_|__nv_(?!static_|hdl_))")
"""How a compiler calls its own kernels; ``__nv_static_`` begins those of a source that others do not see."""


def is_prebuilt(kernel: str) -> bool:
    """Whether a demangled name is that of a kernel which comes compiled with a library or a compiler."""
    return _PREBUILT.match(kernel) is not None or is_runtime(kernel)


def is_runtime(kernel: str) -> bool:
    """Whether a demangled name is of the compiler's runtime, such as a kernel that fills memory."""
    return _RUNTIME.match(kernel) is not None


def user_lines(lines: Sequence[LineEntry | None]) -> tuple[LineEntry | None, ...]:
    """Each instruction on its innermost line that is not of a library; where all are, on its own."""
    entries: dict[int, LineEntry | None] = {}  # by id(): a line table has one entry for many instructions
    for entry in lines:
        if entry is not None and id(entry) not in entries:
            entries[id(entry)] = _user_line(entry)
    return tuple(None if entry is None else entries[id(entry)] for entry in lines)


def _user_line(entry: LineEntry) -> LineEntry:
    chain = (entry.location, *(frame.call_site for frame in entry.inline))
    level = next((level for level, place in enumerate(chain) if not is_library(place.file)), 0)
    if level == 0:
        return entry
    return LineEntry(chain[level], entry.inline[level:], (*entry.library, *chain[:level]))


def called_lines(lines: Sequence[LineEntry | None], *, is_kernel: bool) -> tuple[LineEntry | None, ...]:
    """Those of one function; a library's code in another's is told apart, though no caller's line is with it.

    Debug builds inline without a chain, and a function that is called has none.
    """
    entries = {id(entry): entry for entry in lines if entry is not None}
    if is_kernel and all(is_library(entry.location.file) for entry in entries.values()):
        return tuple(lines)
    for key, entry in entries.items():
        if not entry.library and is_library(entry.location.file):
            entries[key] = replace(entry, library=(entry.location,))
    return tuple(None if entry is None else entries[id(entry)] for entry in lines)


_MOVED_IN: Final = 0.25
"""At most this share of a loop's head has lines of code before the loop."""


def loop_location(
    header: Iterable[int], latches: Iterable[int], lines: Sequence[LineEntry | None]
) -> SourceLocation | None:
    """The line of a loop statement: that of the jump back or, where the test stands at the end, the smallest.

    Looked at are header and latches, in the file of the jump back. That of ``for`` and ``while`` has the line
    of the statement, and little in the loop has a smaller one: what the compiler moved in from before.
    Calls inlined into the loop are looked through: only the inline levels that all of these instructions
    share belong to the loop itself.

    Args:
        header: instruction indices of the header block.
        latches: instruction indices of the jumps back to it.
        lines: of the whole function.
    """
    entries = [entry for index in (*header, *latches) if (entry := lines[index]) is not None]
    if not entries:
        return None
    shared = _shared_levels(entries)
    places = [_place_at(entry, shared) for entry in entries]
    locations = [_place_at(entry, shared) for index in latches if (entry := lines[index]) is not None]
    file = (locations or places)[0].file
    here = sorted((place for place in places if place.file == file), key=_line)
    if locations:
        first = min((place for place in locations if place.file == file), key=_line)
        if sum(place.line < first.line for place in here) <= _MOVED_IN * len(here):
            return first
    return here[0]


def _line(place: SourceLocation) -> int:
    return place.line


def _shared_levels(entries: Sequence[LineEntry]) -> int:
    """How many outermost inline levels all entries have in common."""
    chains = [entry.inline[::-1] for entry in set(entries)]
    first = min(chains, key=len)
    for level, frame in enumerate(first):
        if any(chain[level] != frame for chain in chains):
            return level
    return len(first)


def _place_at(entry: LineEntry, level: int) -> SourceLocation:
    """The place of an instruction as the caller ``level`` inlined calls inside the function sees it."""
    further_in = len(entry.inline) - level
    return entry.location if further_in == 0 else entry.inline[further_in - 1].call_site
