# SPDX-License-Identifier: Apache-2.0
"""Advice in the words of the language that a kernel is written in; the optimizers speak CUDA C++."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from gpadvisor.analyzer.places import is_library
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.advice import Match
from gpadvisor.model.program import Program


class Language(Enum):
    """What kernels are written in, as far as words differ."""

    CUDA = "CUDA C++"
    FORTRAN = "Fortran"
    JULIA = "Julia"
    PYTHON = "Python"


_SUFFIXES: Final = MappingProxyType(
    {
        **dict.fromkeys(("f", "for", "f77", "f90", "f95", "f03", "f08", "cuf"), Language.FORTRAN),
        "jl": Language.JULIA,
        "py": Language.PYTHON,
    }
)
_Words = tuple[str, str, str]  # Fortran, Julia, Python

_PHRASES: Final[tuple[tuple[re.Pattern[str], _Words], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"add the suffix f to literals and call the float form of math functions",
            (
                "write literals in single precision (2.0, not 2.0d0)",
                "write literals as Float32 (2.0f0)",
                "make literals and constants float32",
            ),
        ),
        (
            r"call the fast forms or compile with --use_fast_math if the accuracy allows",
            (
                "compile with -gpu=fastmath if the accuracy allows",
                "launch with fastmath=true or write @fastmath if the accuracy allows",
                "compile with fastmath=True, or call fast forms, if the accuracy allows",
            ),
        ),
        (r" \(fast: [^)]*\)", ("", "", "")),
        (
            r"mark (?:them|the pointers) (?:const )?__restrict__",
            ("say that the loop is independent", "pass them as Const", "load into a variable first"),
        ),
        (
            r"Mark it __forceinline__, with its definition visible to the caller \(a header, or -dlto\)",
            (
                "Compile with -Minline, both in one file",
                "Mark it @inline",
                "Write its body where it is called",
            ),
        ),
        (r" \(__forceinline__\)", ("", " (@inline)", "")),
        (
            r"Mark (.+) __noinline__, which is inlined",
            (
                r"Keep \1 from being inlined, which is",
                r"Mark \1 @noinline, which is inlined",
                r"Keep \1 from being inlined, which is",
            ),
        ),
        (
            r"a __noinline__ function",
            ("a function that is not inlined", "a @noinline function", "a function that is not inlined"),
        ),
        (
            r" \(#pragma unroll(?: \d+)?\)",
            (" by hand", " (@unroll, or by hand)", " (its unroll factor, or by hand)"),
        ),
        (
            r"(?:make|pass) the divisor (?:as )?a template parameter",
            (
                "make the divisor a named constant",
                "pass the divisor as a Val",
                "make the divisor a constexpr",
            ),
        ),
        (r" \(__umulhi\)", ("", "", "")),
        (
            r"size its arrays at the launch \(extern __shared__\) or by a template parameter",
            (
                "size its arrays at the launch",
                "size its arrays at the launch (CuDynamicSharedArray) or by a Val",
                "give its arrays the size that this launch needs",
            ),
        ),
        (r"__syncthreads\(\)", ("syncthreads()", "sync_threads()", "syncthreads()")),
        (r"__syncwarp\(\)", ("syncwarp()", "sync_warp()", "syncwarp()")),
        (r" \(__shfl_down_sync\(\), in a scan __shfl_up_sync\(\)\)", ("", "", "")),
        (r"the second number of __launch_bounds__, ", ("", "", "")),
        (
            r"-maxrregcount or maxnreg",
            ("-gpu=maxregcount", "the maxregs of its launch", "the limit on its registers"),
        ),
        (r" \(float4\)", ("", "", "")),
        (r" \(const __restrict__\)", ("", "", "")),
        (r" \(__int_as_float\([^)]*\)[^)]*\)", ("", "", "")),
        (r" with cuda::memcpy_async or __pipeline_memcpy_async", (" asynchronously",) * 3),
        (r" \(shuffles or __reduce_add_sync\)", (" (shuffles)",) * 3),
        (r" or packed \(__ffma2_rn\)", ("",) * 3),
        (r" \(__launch_bounds__, -maxrregcount\)", ("",) * 3),
        (
            r"__launch_bounds__(?:\([^)]*\))?",
            ("its launch bounds", "the maxthreads of its launch", "its launch bounds"),
        ),
        (r" \(count with __activemask\(\) [^)]*\(\), pass on with __shfl_sync\(\)\)", ("", "", "")),
    )
)
_ORDER: Final = (Language.FORTRAN, Language.JULIA, Language.PYTHON)


def language_of(program: Program, kernel: str) -> Language:
    """The language of most of a kernel's lines, by their files; CUDA C++ where there are none."""
    function = kernel_function(program, kernel)
    lines = () if function is None else function.lines
    counts: Counter[Language] = Counter()
    for file, count in Counter(entry.location.file for entry in lines if entry is not None).items():
        if not is_library(file):
            counts[_SUFFIXES.get(file.rpartition(".")[2].lower(), Language.CUDA)] += count
    return counts.most_common(1)[0][0] if counts else Language.CUDA


def in_language(match: Match, language: Language) -> Match:
    """The same finding in the words of another language."""
    if language is Language.CUDA:
        return match
    return replace(
        match,
        title=_said(match.title, language),
        advice=_said(match.advice, language),
        cure=_said(match.cure, language),
    )


def _said(text: str, language: Language) -> str:
    for pattern, words in _PHRASES:
        text = pattern.sub(words[_ORDER.index(language)], text)
    return text
