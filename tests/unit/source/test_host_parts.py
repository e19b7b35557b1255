# SPDX-License-Identifier: Apache-2.0
"""What may be cut of a source: only what the host runs, and every line stays where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.source.host_parts import HostParts

SOURCE = """\
#include <x>
namespace a {
struct Both { Image m; __device__ int f() { return one; } };
struct Host { Image m; };
template <class T, int N> __global__ void k(T *a) { a[0] = one; }
static void run(int n) {
  if (n > 0) {
    one(n);
    Image x(1, 2);
#ifdef U
    k<float, 4><<<1, one>>>(0);
#endif
  } else { fine(); }
  foo([&] { one; });
  thrust::for_each([=] __device__ (int i) {
    one(i);
  });
  return one;
}
__constant__ Image here;
Image global;
}
DEVICE_INLINE int macro() { return one; }
constexpr int known() { return one; }
#if A
int main(int argc) {
#else
int main() {
#endif
    for (int i = 0; i < 3; one++) { ok(); }
    const char *text = "} /* {"; // }
    return 0;
}
"""


def cut(*lines: int, source: str = SOURCE) -> list[int] | None:
    """The lines that are other ones after errors on some; None where an error may be in device code."""
    parts = HostParts(source)
    if not parts.cut_at([(line, None) for line in lines]):
        return None
    then, now = source.splitlines(), parts.device_text.splitlines()
    assert len(then) == len(now)
    assert all(was == is_ for was, is_ in zip(then, now, strict=True) if was.startswith("#"))
    return [number for number, (was, is_) in enumerate(zip(then, now, strict=True), 1) if was != is_]


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        (8, [8]),
        (9, [9]),
        (11, [11]),
        (14, [14]),
        (18, [18]),
        (4, [4]),  # with all its members: a class without one of them is another class
        (21, [21]),
        (30, [30]),
        (31, [31]),
        (6, [6, 7, 8, 9, 11, 13, 14, *range(15, 20)]),
    ],
)
def test_the_smallest_part_goes(line: int, gone: list[int]) -> None:
    source = SOURCE.replace("[=] __device__ (int i)", "[=](int i)") if line == 6 else SOURCE
    assert cut(line, source=source) == gone


@pytest.mark.parametrize("line", [1, 3, 5, 16, 20, 23, 24, 99])
def test_what_may_be_device_code_stays(line: int) -> None:
    assert cut(line) is None


def test_a_column_tells_statements_of_a_line_apart() -> None:
    parts = HostParts("void f() { one(); two(); }\n")
    assert parts.cut_at([(1, 20)])
    assert parts.device_text == "void f() { one(); ;      }\n"


def test_a_launch_leaves_its_instance_until_that_fails_too() -> None:
    parts = HostParts(SOURCE)
    assert parts.cut_at([(11, None)])
    assert "(void)&k<float, 4>;" in parts.device_text
    assert parts.cut_at([(11, None)])
    assert "k<float, 4>" not in parts.device_text
    assert "fine()" in parts.device_text
    assert parts.cut_at([(11, None)])
    assert "fine()" not in parts.device_text


def test_host_functions_go_and_their_launches_are_named() -> None:
    source = SOURCE.replace("[=] __device__ (int i)", "[=](int i)")
    parts = HostParts(source)
    assert parts.cut_functions() == ("k<float, 4>",)
    text = parts.device_text
    assert "run(" not in text
    assert "main(" not in text
    for line in (3, 5, 20, 23, 24):
        assert text.splitlines()[line - 1] == source.splitlines()[line - 1]


def test_members_that_only_the_host_calls_leave_the_class_as_large_as_it_is() -> None:
    parts = HostParts(
        "struct P {\n  float *a;\n  P(int n) { one(n); }\n  __device__ float f() { return *a; }\n};\n"
    )
    assert parts.cut_at([(3, 14)])
    assert parts.device_text.splitlines()[2].split() == ["P(int", "n)", "{", ";", "}"]
    assert parts.cut_at([(3, 14)])
    assert parts.device_text.splitlines()[2].split() == [";"]


@given(st.text(alphabet="{}();<>\"'/*#\\\n ab=,", max_size=80), st.integers(1, 5))
def test_any_text_keeps_its_lines(text: str, line: int) -> None:
    parts = HostParts(text)
    parts.cut_at([(line, None)])
    parts.cut_functions()
    assert parts.device_text.count("\n") == text.count("\n")
