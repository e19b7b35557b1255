# SPDX-License-Identifier: Apache-2.0
"""Advice on a kernel speaks the language that the kernel is written in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.optimizer_values import listing, load_case

from gpadvisor.advice.evaluate import evaluate
from gpadvisor.advice.language import language_of
from gpadvisor.estimators import terms
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.fast_forms import FAST
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.language import Language, Term
from gpadvisor.rules import OPTIMIZERS

ROOT = Path(__file__).resolve().parents[2]
FOLDER, PACKAGE = ROOT / "fixtures" / "rules", ROOT / "server" / "gpadvisor"
CPP = re.compile(
    r"(?<!\w)__[a-z]\w+|#pragma|float4|template|cuda::|--use_fast_math|-dlto|-maxrregcount|suffix f"
    r"|(?<!cuda\.)(?:thread|block|grid)(?:Idx|Dim)\.[xyz]"
)


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


TERMS = {name: term for name, term in vars(terms).items() if isinstance(term, Term)}


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_a_term_is_of_its_language(term: Term) -> None:
    values = dict.fromkeys(re.findall(r"{(\w+)}", term.cuda), "x")
    for language in Language:
        said = term.of(language, **values)
        assert "{" not in said
        assert language is Language.CUDA or not CPP.findall(said), said


def test_each_language_has_its_own_term() -> None:
    said = [terms.UNROLLED.of(language, times=4) for language in Language]
    assert said == [
        " (#pragma unroll 4)",
        " by hand",
        " (@unroll, or by hand)",
        " (its unroll factor, or by hand)",
    ]


def _strings(path: Path) -> Iterator[ast.Constant]:
    """The strings of a module that are not its documents."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node


NAMES = {"--use_fast_math", "__internal_accurate_pow", *FAST.values()}
"""A flag that is tried, a routine of the compiler's, and what one term takes as its value."""


def test_terms_of_cuda_cpp_stand_in_one_table() -> None:
    files = [*(PACKAGE / "rules").glob("*.py"), *(PACKAGE / "estimators").glob("*.py")]
    found = [
        f"{path.name}:{node.lineno} {node.value}"
        for path in files
        if path.name != "terms.py"
        for node in _strings(path)
        if CPP.search(str(node.value)) and node.value not in NAMES and "__cuda_sm" not in str(node.value)
    ]
    assert not found
