# SPDX-License-Identifier: Apache-2.0
"""The language that a kernel is written in, by the files of its lines."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Final

from gpadvisor.analyzer.places import is_library
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.language import Language
from gpadvisor.model.program import Program

_SUFFIXES: Final = MappingProxyType(
    {
        **dict.fromkeys(("f", "for", "f77", "f90", "f95", "f03", "f08", "cuf"), Language.FORTRAN),
        "jl": Language.JULIA,
        "py": Language.PYTHON,
    }
)


def language_of(program: Program, kernel: str) -> Language:
    """The language of most of a kernel's lines, by their files; CUDA C++ where there are none."""
    function = kernel_function(program, kernel)
    lines = () if function is None else function.lines
    counts: Counter[Language] = Counter()
    for file, count in Counter(entry.location.file for entry in lines if entry is not None).items():
        if not is_library(file):
            counts[_SUFFIXES.get(file.rpartition(".")[2].lower(), Language.CUDA)] += count
    return counts.most_common(1)[0][0] if counts else Language.CUDA
