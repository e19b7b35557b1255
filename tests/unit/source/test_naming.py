# SPDX-License-Identifier: Apache-2.0
"""Advice that names what the source says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import advice_values as values

from gpadvisor.model.advice import ScopeKind, Suggestion
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.source.naming import files_asked_about, name_source_tokens
from gpadvisor.source.reading import source_facts

NAMING = {rule.code: rule.naming for rule in OPTIMIZERS if rule.naming is not None}


def added(suggestion: Suggestion, texts: dict[str, str] | None = None) -> str:
    kernel = values.kernel(suggestions=(suggestion,))
    known = values.SOURCES if texts is None else texts
    facts = {
        path: source_facts(path, known[path]) for path in files_asked_about([kernel], NAMING) & known.keys()
    }
    (named,) = name_source_tokens([kernel], facts.get, NAMING)
    (only,) = named.suggestions
    assert only.advice.startswith(suggestion.advice)
    return only.advice.removeprefix(suggestion.advice).strip()


def test_the_double_literal() -> None:
    assert added(values.STRENGTH_REDUCTION) == "The source has the double literal 0.5 (line 10)."


def test_no_literal_is_named_for_integer_arithmetic() -> None:
    hotspot = replace(
        values.CONVERSION_HOTSPOT,
        definition=values.code(0x150, "MUFU.RCP R4, R2", values.at(9)),
        use=values.code(0x170, "F2I.U32 R4, R4", values.at(10)),
    )
    division = replace(values.STRENGTH_REDUCTION, hotspots=(hotspot,))
    assert added(division) == ""
    text = values.GATHER_SOURCE.replace("idx[k];", "idx[k % n] / blockDim.x;")
    assert "divisions idx[k % n] / blockDim.x (line 9), k % n (line 9)." in added(
        division, {values.GATHER_FILE: text}
    )


def test_the_pragma_that_is_there() -> None:
    assert added(values.LOOP_UNROLLING) == ""
    text = values.GATHER_SOURCE.replace(
        "    float acc = 0.0f;", "    float acc = 0.0f;\n    #pragma unroll 2"
    )
    text = text.replace('#include "load.cuh"\n', "", 1)
    assert (
        added(values.LOOP_UNROLLING, {values.GATHER_FILE: text}) == "The loop has #pragma unroll 2 already."
    )


@pytest.mark.parametrize("pragma", ["#pragma unroll U", "#pragma unroll 1", ""])
@pytest.mark.parametrize("other", [True, False])
def test_without_samples_loops_with_a_pragma_are_a_note(pragma: str, other: bool) -> None:
    """As of a distance whose loop has a factor that its caller gives; told beside a loop without one."""
    text = values.GATHER_SOURCE.replace("    float acc = 0.0f;", f"    float acc = 0.0f;\n    {pragma}")
    text = text.replace('#include "load.cuh"\n', "", 1)
    scope = replace(values.LOOP_UNROLLING.scope, kind=ScopeKind.KERNEL)
    lines = [9, 1] if other else [9]
    hotspots = tuple(
        replace(values.CONVERSION_HOTSPOT, definition=values.code(0x150, "LDG.E R2, [R2.64]", at), use=None)
        for at in map(values.at, lines)
    )
    suggestion = replace(values.LOOP_UNROLLING, scope=scope, hotspots=hotspots)
    facts = {values.GATHER_FILE: source_facts(values.GATHER_FILE, text)}
    (named,) = name_source_tokens([values.kernel(suggestions=(suggestion,))], facts.get, NAMING)
    if pragma == "#pragma unroll U" and not other:
        assert not named.suggestions
        assert named.notes[-1] == suggestion
    else:
        told = f"There is already {pragma} at gather.cu:8." if pragma else ""
        assert named.suggestions[0].advice.removeprefix(suggestion.advice).strip() == told


@pytest.mark.parametrize("pragma", ["#pragma unroll 1", "#pragma unroll(1)"])
def test_a_pragma_that_forbids_to_unroll(pragma: str) -> None:
    text = values.GATHER_SOURCE.replace("    float acc = 0.0f;", f"    float acc = 0.0f;\n    {pragma}")
    text = text.replace('#include "load.cuh"\n', "", 1)
    assert (
        added(values.LOOP_UNROLLING, {values.GATHER_FILE: text}) == "#pragma unroll 1 there forbids it now."
    )


def test_pointers_that_may_overlap() -> None:
    assert added(values.CODE_REORDERING) == ""  # to load for the next pass changes no pointer
    held = replace(values.CODE_REORDERING, remedies=(Remedy.RESTRICT,))
    assert added(held) == "Pointers without __restrict__: out, in, idx."
    text = values.GATHER_SOURCE.replace("*in", "*__restrict__ in")
    assert added(held, {values.GATHER_FILE: text}) == "Pointers without __restrict__: out, idx."


def test_pointers_that_are_marked_are_a_note() -> None:
    """One that is not marked overlaps with none of those that are; an element to keep is still told."""
    text = values.GATHER_SOURCE.replace("*in", "*__restrict__ in").replace("*idx", "*__restrict__ idx")
    facts = {values.GATHER_FILE: source_facts(values.GATHER_FILE, text)}
    held = replace(values.CODE_REORDERING, remedies=(Remedy.RESTRICT,))
    both = replace(held, remedies=(Remedy.RESTRICT, Remedy.KEEP_ELEMENT))
    (named,) = name_source_tokens([values.kernel(suggestions=(held, both))], facts.get, NAMING)
    assert named.suggestions == (both,)
    assert named.notes[-1] == held


def test_launch_bounds_that_are_there() -> None:
    assert added(values.THREAD_INCREASE) == ""
    text = values.GATHER_SOURCE.replace("void gather", "void __launch_bounds__(512) gather")
    assert added(values.THREAD_INCREASE, {values.GATHER_FILE: text}).endswith(
        "__launch_bounds__(512) already."
    )


@pytest.mark.parametrize(
    ("before", "launch", "said"),
    [
        ("#define THREADS 128\n", "gather<4><<<blocks, THREADS>>>()", ":18 with THREADS (line 1)."),
        (
            "constexpr int side = 16;\n",
            "gather<4><<<n, dim3(side, 8)>>>()",
            ":18 with side (line 1).",
        ),
        ("\n", "dim3 block(32, 8); gather<4><<<n, block>>>()", ":18."),
        ("\n", "other<<<blocks, 128>>>()", ""),
    ],
)
def test_where_a_block_size_is_written(before: str, launch: str, said: str) -> None:
    text = f"{before}{values.GATHER_SOURCE}\nvoid run(int n) {{\n    int blocks = n;\n    {launch};\n}}\n"
    found = added(values.THREAD_INCREASE, {values.GATHER_FILE: text})
    assert found.endswith(said)
    assert bool(said) == ("It is launched" in found)


TILED = """#define EDGE 16
template <int DIM, typename T>
__global__ void gather(float *out) {
    __shared__ T tile[DIM][DIM + 1];
    out[0] = tile[threadIdx.y][threadIdx.x];
}
void run(float *out) {
    dim3 block(EDGE, EDGE);
    gather<EDGE, float><<<64, block>>>(out);
}
"""
PLAIN = TILED.replace("template <int DIM, typename T>\n", "").replace(" T tile", " float tile")
PLAIN = PLAIN.replace("gather<EDGE, float>", "gather")


@pytest.mark.parametrize(
    ("text", "tied"),
    [
        (TILED, True),  # by the template
        (PLAIN.replace("DIM", "EDGE"), True),
        (PLAIN.replace("DIM", "SIDE").replace("#define", "#define SIDE 16\n#define"), False),
        (TILED.replace("#define EDGE 16", "").replace("void run", "template <int EDGE> void run"), True),
        (TILED.replace("gather<EDGE,", "gather<8,"), False),
        (TILED.replace("__shared__ ", ""), False),
        (TILED.replace("void run", "__global__ void gather(int n) {}\nvoid run"), False),  # which of the two?
    ],
)
def test_a_constant_of_block_and_tile_is_named(text: str, tied: bool) -> None:
    place = replace(values.THREAD_INCREASE.scope, location=values.at(5))
    launched = added(replace(values.THREAD_INCREASE, scope=place), {values.GATHER_FILE: text})
    assert "It is launched at" in launched
    assert ("EDGE sizes its shared arrays, too: both change with it." in launched) is tied
    results = (Remedy.SEVERAL_RESULTS,)
    reuse = replace(values.LOOP_UNROLLING, code="GPA107", scope=place, remedies=results)
    said = added(reuse, {values.GATHER_FILE: text})
    assert said.endswith(" sizes the block and its tiles: they need a constant each then.") is tied
    assert bool(said) is tied
    assert not added(replace(reuse, remedies=()), {values.GATHER_FILE: text})


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("Tables t, const float* x, int n, size_t m, float4 v", "Tables"),
        ("const Tables<4> t, double s", "Tables"),
        ("Tables t, Cell c", ""),  # which of the two?
        ("const float* x, int n", ""),
    ],
)
def test_the_parameter_that_is_copied_is_named_by_its_type(parameters: str, named: str) -> None:
    text = f"__global__ void pairs({parameters})\n{{\n    out[0] = t.sigma[n];\n}}\n"
    place = replace(values.THREAD_INCREASE.scope, location=values.at(3))
    copied = replace(values.LOOP_UNROLLING, code="GPA101", scope=place, remedies=(Remedy.GRID_CONSTANT,))
    said = added(copied, {values.GATHER_FILE: text})
    assert said == (f"It is the parameter of type {named}." if named else "")
    assert not added(replace(copied, remedies=()), {values.GATHER_FILE: text})


def test_other_rules_other_languages_and_missing_sources_stay_as_they_are() -> None:
    other = replace(values.STRENGTH_REDUCTION, code="GPA105")
    assert added(other) == ""
    assert added(values.STRENGTH_REDUCTION, {}) == ""
    python = replace(
        values.CONVERSION_HOTSPOT,
        use=values.code(0, "DADD R1, R2, R3", values.at(1, "k.py")),
        definition=None,
    )
    assert added(replace(values.STRENGTH_REDUCTION, hotspots=(python,)), {"k.py": "x = y * 0.5"}) == ""


def test_only_files_that_could_help_are_asked_about() -> None:
    def asked(*suggestions: Suggestion) -> set[str]:
        return files_asked_about([values.kernel(suggestions=suggestions)], NAMING)

    assert asked(values.STRENGTH_REDUCTION, values.THREAD_INCREASE) == {values.GATHER_FILE}
    assert asked(replace(values.STRENGTH_REDUCTION, code="GPA105")) == set()
    assert asked(replace(values.STRENGTH_REDUCTION, hotspots=())) == set()
