# SPDX-License-Identifier: Apache-2.0
"""Launches as sources write them: what constants decide, and what is named because they do not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from tests.damage import damage, damaged, document_of

from gpadvisor.sandbox.codec import from_json
from gpadvisor.source.launch_reading import launch_sites
from gpadvisor.source.launch_sites import LaunchSite, LaunchSites

_KERNEL = "__global__ void k(float* x, const int n, double f) {}\n"


def _site(body: str, before: str = "") -> LaunchSite:
    (site,) = launch_sites([("a.cu", f"{_KERNEL}{before}\nvoid host(int argc, char** argv) {{ {body} }}")])
    return site


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        ("k<<<64, 256>>>(p, 5, 1.0);", (64, 1, 1), (256, 1, 1)),
        ("const int t = 256; int b = (1000 + t - 1) / t; k<<<b, t>>>(p, 5, 1.0);", (4, 1, 1), (256, 1, 1)),
        ("dim3 g(8, 4), b(16, 16); k<<<g, b>>>(p, 5, 1.0);", (8, 4, 1), (16, 16, 1)),
        ("int t = 32; dim3 b(t); k<<<dim3(2, 3, 4), b>>>(p, 5, 1.0);", (2, 3, 4), (32, 1, 1)),
        ("dim3 b; b.x = 8; b.y = 1 << 2; k<<<1, b>>>(p, 5, 1.0);", (1, 1, 1), (8, 4, 1)),
        ("dim3 b = {16, 2}; k<<<b.x * 2, b>>>(p, 5, 1.0);", (32, 1, 1), (16, 2, 1)),
        ("int m, t; m = t = 256; k<<<m / 8, t>>>(p, 5, 1.0);", (32, 1, 1), (256, 1, 1)),
        ("k<<<(int)ceil(1000 / (float)256), 0x80>>>(p, 5, 1.0);", (4, 1, 1), (128, 1, 1)),
    ],
)
def test_constants_decide_a_launch(
    body: str, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    site = _site(body)
    assert (site.kernel, site.grid, site.block, site.unknown) == ("k", grid, block, ())
    assert [(one.kind, one.value) for one in site.arguments] == [
        ("pointer", None),
        ("int", 5),
        ("double", 1.0),
    ]


def test_macros_decide_where_those_that_are_known_agree() -> None:
    body = "k<<<4, SIZE * SIZE>>>(p, SIZE, 1.0);"
    known = "#ifdef GIVEN\n#define SIZE GIVEN\n#else\n#define SIZE 16 // threads\n#endif"
    assert _site(body, known).block == (256, 1, 1)
    both = "#ifdef WIDE\n#define SIZE 32\n#else\n#define SIZE 16\n#endif"
    assert (_site(body, both).block, _site(body, both).unknown) == (None, ("SIZE",))


@pytest.mark.parametrize(
    "set_twice",
    [
        "int t = 256; if (argc > 1) t = atoi(argv[1]);",
        "int t = 256; t += 1;",
        "int t0 = 1, t = (t0 += 1);",
        "int t = 256; t++;",
        'int t = 256; scanf("%d", &t);',
        "int t = 256; while (argc--) t = 5;",
        "int t = atoi(argv[1]);",
        "int t;",
    ],
)
def test_what_changes_is_asked_for_by_name(set_twice: str) -> None:
    site = _site(f"{set_twice} k<<<64, t>>>(p, 5, 1.0);")
    assert (site.grid, site.block) == ((64, 1, 1), None)
    assert len(site.unknown) == 1
    assert "t" in site.unknown[0]


def test_a_parameter_is_no_global_of_its_name() -> None:
    site = _site("k<<<argc, 32, 4 * sizeof(float)>>>(p, 5, 1.0);", "const int argc = 7;")
    assert (site.grid, site.unknown, site.dynamic_shared_bytes) == (None, ("argc",), 16)


def test_what_is_included_counts_and_unknown_types_leave_the_arguments_out() -> None:
    texts = [
        ("a.cu", "void f() { k<float><<<N, 2 * N>>>(p, N); other<<<1, N>>>(p); }"),
        ("a.h", "#define N 8\ntemplate <class T> __global__ void k(T* x, unsigned int n) {}"),
        ("b.h", "__global__ void other(struct pair p) {}"),
    ]
    first, second = launch_sites(texts)
    assert (first.grid, first.block, first.file, first.line) == ((8, 1, 1), (16, 1, 1), 0, 1)
    assert [one.value for one in first.arguments] == [None, 8]
    assert (second.block, second.arguments) == ((8, 1, 1), ())
    sites = LaunchSites(sites=(first, second))
    assert from_json(document_of(sites), LaunchSites).of_texts([1, 2, 1]) == (first, second)


GOOD = LaunchSites(sites=(_site("k<<<8, 32, 16>>>(p, 5, 1.0);"),))


@given(damaged(GOOD))
def test_what_is_no_launch_is_a_value_error(document: object) -> None:
    try:
        sites = from_json(document, LaunchSites).of_texts([9])
    except ValueError:
        return
    assert from_json(document_of(sites), list[LaunchSite]) == list(sites)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("sites",), "no"),
        (("sites",), [["k"]]),
        (("sites",), document_of(GOOD)["sites"] * 201),
        (("sites", 0, "kernel"), "x" * 81),
        (("sites", 0, "file"), 1),
        (("sites", 0, "file"), -1),
        (("sites", 0, "line"), 0),
        (("sites", 0, "line"), 10),
        (("sites", 0, "grid"), [1, 1]),
        (("sites", 0, "grid"), [1, 0, 1]),
        (("sites", 0, "block"), [1 << 32, 1, 1]),
        (("sites", 0, "dynamic_shared_bytes"), -1),
        (("sites", 0, "dynamic_shared_bytes"), 1 << 64),
        (("sites", 0, "arguments"), [{"kind": "int", "value": 1}] * 201),
        (("sites", 0, "arguments"), [{"kind": "char", "value": 1}]),
        (("sites", 0, "arguments"), [{"kind": "int", "value": 1 << 64}]),
        (("sites", 0, "arguments"), [{"kind": "double", "value": math.inf}]),
        (("sites", 0, "arguments"), [{"kind": "double", "value": math.nan}]),
        (("sites", 0, "arguments"), [{"kind": "int", "value": "1"}]),
        (("sites", 0, "unknown"), ["n"] * 9),
    ],
)
def test_what_cannot_be_launches_is_an_error(path: tuple[Any, ...], value: object) -> None:
    document = damage(document_of(GOOD), *path, to=value)
    with pytest.raises(ValueError, match=r"no "):
        from_json(document, LaunchSites).of_texts([9])
