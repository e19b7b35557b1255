# SPDX-License-Identifier: Apache-2.0
"""Which line an instruction is shown on, where a kernel is defined, which text lines were counted in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hand_made import KERNEL, function, program

from gpadvisor.editor.contents.places import Places, baselines, kernel_file, kernel_place
from gpadvisor.model.finding import BaselineKind, Place
from gpadvisor.model.ids import FunctionId, SourceLocation
from gpadvisor.model.profile import Profile, SourceText
from gpadvisor.model.program import CallSite, Function, FunctionKind, InlineFrame, LineEntry
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.source.facts import KernelSite, SourceFacts

OWN, TOOLKIT = "/src/app.cu", "/usr/local/cuda/include/crt/sm_32_intrinsics.hpp"


def _places(**local: str) -> Places:
    return Places(local={path.replace("|", "/"): here for path, here in local.items()}, root=Path("/project"))


def _chain(*places: tuple[str, int]) -> LineEntry:
    """A location and the call sites around it, innermost first."""
    (file, line), *sites = places
    frames = tuple(InlineFrame("f", SourceLocation(*site)) for site in sites)
    return LineEntry(SourceLocation(file, line), frames)


def _function(*entries: LineEntry | None, **changes: object) -> Function:
    count = max(len(entries), 4)
    return replace(function(count, **changes), lines=(*entries, *[None] * (count - len(entries))))


def test_library_code_stands_where_it_was_inlined() -> None:
    code = _function(_chain((TOOLKIT, 50), (TOOLKIT, 10), (OWN, 7), (OWN, 3)))
    places = _places()
    assert places.of(code, 0) == Place(file=OWN, line=7)
    assert places.call_sites(code, 0) == (Place(file=OWN, line=3),)
    assert places.of(code, 1) is None
    assert places.of(code, 99) is None


def test_library_code_that_nothing_inlined_stands_where_it_is() -> None:
    assert _places().of(_function(_chain((TOOLKIT, 50))), 0) == Place(file=TOOLKIT, line=50)


def test_own_headers_are_not_skipped() -> None:
    code = _function(_chain(("/src/lib.cuh", 2), (OWN, 7)))
    assert _places().of(code, 0) == Place(file="/src/lib.cuh", line=2)


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp", True),
        ("/opt/nvidia/hpc_sdk/Linux/cuda/12/include/cub/block.cuh", True),
        ("/home/me/venv/lib/python3.11/site-packages/triton/language/standard.py", True),
        ("C:\\env\\Lib\\site-packages\\triton\\language\\core.py", True),
        ("/home/me/.julia/packages/CUDA/DfvRa/src/device/shuffle.jl", True),
        ("./int.jl", True),
        ("/home/me/project/kernels/gemm.cu", False),
        ("/home/me/cuda_kernels/gemm.cu", False),
        ("gemm.cu", False),
        ("/home/me/src/jl/IndexSpaces/kernels/bb.jl", False),
    ],
)
def test_what_is_a_library(path: str, library: bool) -> None:
    assert _places().is_library(path) is library


def test_what_lies_in_the_project_is_its_own_but_for_packages() -> None:
    header, package = "/project/cuda/include/tile.cuh", "/project/.venv/lib/site-packages/triton/core.py"
    places = Places(local={header: header, package: package}, root=Path("/project"))
    assert not places.is_library(header)
    assert places.is_library(package)


def test_one_file_has_one_name() -> None:
    places = Places(local={"./a.cu": "/p/a.cu", "/p/a.cu": "/p/a.cu", "b.cu": "/p/b.cu"}, root=Path("/p"))
    assert [places.name(path) for path in ("./a.cu", "/p/a.cu", "b.cu", "c.cu")] == [
        "./a.cu",
        "./a.cu",
        "b.cu",
        "c.cu",
    ]


def test_line_zero_is_no_line() -> None:
    assert _places().of(_function(_chain((OWN, 0), (OWN, 4))), 0) == Place(file=OWN, line=4)
    assert _places().of(_function(_chain((OWN, 0))), 0) is None


def _with_helper(*callers: LineEntry) -> tuple[Function, Function]:
    calls = tuple(CallSite(index, FunctionId(1), "helper") for index in range(len(callers)))
    kernel = replace(_function(*callers), calls=calls)
    helper = _function(*[_chain((OWN, 99))] * 4, number=1, name="_Z6helper", kind=FunctionKind.MATH_HELPER)
    return kernel, helper


@pytest.mark.parametrize(
    ("callers", "place"),
    [
        ([_chain((OWN, 5))], Place(file=OWN, line=5)),
        ([_chain((OWN, 5)), _chain((OWN, 5), (OWN, 2))], Place(file=OWN, line=5)),
        ([_chain((OWN, 5)), _chain((OWN, 6))], None),
        ([], None),
    ],
)
def test_a_routine_of_the_compiler_stands_where_it_is_called(
    callers: Sequence[LineEntry], place: Place | None
) -> None:
    kernel, helper = _with_helper(*callers)
    places = _places()
    places.know(program(kernel, helper))
    assert places.of(helper, 0) == place
    assert places.call_sites(helper, 0) == ()


def test_a_kernel_begins_in_the_file_that_it_is_written_in() -> None:
    code = _function(
        _chain(("/src/lib.cuh", 2), (OWN, 9)), _chain((OWN, 12)), _chain((TOOLKIT, 1)), _chain((TOOLKIT, 2))
    )
    places = _places()
    assert kernel_file(places, program(code), KERNEL) == Place(file=OWN, line=9)
    assert kernel_file(places, program(code), "_Zother") is None
    assert kernel_file(places, program(_function()), KERNEL) is None


def test_a_kernel_stands_on_its_head() -> None:
    first = Place(file=OWN, line=9)
    facts = SourceFacts(kernels=(KernelSite(line=7, last_line=20, launch_bounds=None, unrestricted=()),))
    assert kernel_place(first, "k", {OWN: facts}, {}) == Place(file=OWN, line=7)
    assert kernel_place(first, "k", {}, {}) == first
    assert kernel_place(None, "k", {OWN: facts}, {}) is None


@pytest.mark.parametrize(
    ("file", "text", "name", "line"),
    [
        ("k.py", "@jit\ndef add(\n    x):\n    y = x\n", "add_0d1d", 2),
        ("k.py", "def add(x):\n    def other(y):\n        pass\n    y = x\n", "add", 1),
        ("k.py", "x = 1\ny = 2\n\nz = 3\n", "add", 4),
        ("k.jl", "@inbounds function bb(x)\n  y = x\n  z\n  w\n", "julia_bb_4477", 1),
        ("k.cu", "def add(x):\n\n\n\n", "add", 4),
    ],
)
def test_kernels_of_other_languages_stand_on_their_head(file: str, text: str, name: str, line: int) -> None:
    found = kernel_place(Place(file=file, line=4), name, {}, {file: text})
    assert found == Place(file=file, line=line)


def _profile(**sources: SourceText) -> Profile:
    return Profile(
        sha256="ab", collector="ncu", collector_version=None, command=None, host=None, created=None,
        kernels=(), sources=sources,
    )  # fmt: skip


def _found(profiled: dict[str, str], local: dict[str, str]) -> FoundSources:
    return FoundSources(matches=(), profiled=profiled, local=local, wanted={}, problems=())


def test_baselines_by_what_is_known(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"same").hexdigest()
    profile = _profile(hashed=SourceText(path="hashed", sha256=digest, text=None))
    sources = _found({"embedded": "then"}, {"embedded": "now", "hashed": "same", "found": "text"})
    names = ["embedded", "hashed", "found", "unknown"]
    found = baselines(names, _places(), sources, profile, Cache(tmp_path), sha256="ab", compiled=False)
    assert {name: (one.text, one.kind) for name, one in found.items()} == {
        "embedded": ("then", BaselineKind.EMBEDDED),
        "hashed": ("same", BaselineKind.EMBEDDED),
        "found": ("text", BaselineKind.HASHED),
        "unknown": (None, BaselineKind.UNKNOWN),
    }
    compiled = baselines(names, _places(), sources, None, Cache(None), sha256="ab", compiled=True)
    assert compiled["found"].kind is BaselineKind.COMPILED
    assert compiled["unknown"].kind is BaselineKind.UNKNOWN


def test_what_was_first_seen_is_kept_for_each_profile(tmp_path: Path) -> None:
    def text(now: str, sha256: str) -> str | None:
        sources = _found({}, {"a.cu": now})
        found = baselines(["a.cu"], _places(), sources, None, Cache(tmp_path), sha256=sha256, compiled=False)
        return found["a.cu"].text

    assert text("first", "ab") == "first"
    assert text("second", "ab") == "first"
    assert text("second", "cd") == "second"
    assert text("third", "ab") == "first"
