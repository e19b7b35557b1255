# SPDX-License-Identifier: Apache-2.0
"""Advice on a kernel speaks the language that the kernel is written in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.optimizer_values import listing, load_case

from gpadvisor.advice.evaluate import evaluate
from gpadvisor.advice.language import Language, in_language, language_of
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.model.advice import Match
from gpadvisor.model.ids import SourceLocation
from gpadvisor.rules import OPTIMIZERS

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "rules"
CPP = re.compile(r"\b__\w+|#pragma|float4|template|cuda::|--use_fast_math|-dlto|-maxrregcount|suffix f")


def _written_in(context: KernelContext, file: str) -> KernelContext:
    functions = tuple(
        replace(
            function,
            lines=tuple(
                None if entry is None else replace(entry, location=SourceLocation(file, entry.location.line))
                for entry in function.lines
            ),
        )
        for function in context.program.functions
    )
    return replace(context, program=replace(context.program, functions=functions))


@pytest.mark.parametrize("file", ["step.F90", "step.jl", "step.py"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.code)
def test_no_words_of_cuda_cpp_in_other_languages(optimizer: Optimizer, file: str) -> None:
    context = load_case(FOLDER / f"{optimizer.code}-{optimizer.slug}" / "fires.toml").context
    (found,), _ = evaluate(_written_in(context, file), [optimizer])
    said = f"{found.match.title} {found.match.advice} {found.match.cure}"
    assert not CPP.findall(said), said


@pytest.mark.parametrize(
    ("file", "language"),
    [
        ("/src/app.cu", Language.CUDA),
        ("/src/miniWeather.F90", Language.FORTRAN),
        ("kernels.CUF", Language.FORTRAN),
        ("/home/me/model.jl", Language.JULIA),
        ("/tmp/attention.py", Language.PYTHON),
    ],
)
def test_the_language_is_that_of_the_files(file: str, language: Language) -> None:
    context = load_case(FOLDER / "GPA201-loop-unrolling" / "fires.toml").context
    assert language_of(_written_in(context, file).program, context.kernel) is language


def test_code_without_lines_is_taken_for_cuda() -> None:
    assert language_of(listing("EXIT").program, "kernel") is Language.CUDA


def test_what_is_said_in_each_language() -> None:
    match = Match(title="", advice="Unroll the loop at a:3 (#pragma unroll 4), so that", regions=())
    said = {language: in_language(match, language).advice for language in Language}
    assert said[Language.CUDA] == match.advice
    assert said[Language.FORTRAN] == "Unroll the loop at a:3 by hand, so that"
