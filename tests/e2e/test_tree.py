# SPDX-License-Identifier: Apache-2.0
"""Calling contexts of compiled code: nothing lost in any view or format, and what each row says."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.kernels import compile_text
from tests.ncu_writer import FrameSpec, LaunchSpec, write_report
from tests.sampled import sampled
from tests.schemas import published_schema

from gpadvisor.cli import main
from gpadvisor.cubin import read_cubin

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

SOURCE = """\
typedef float (*op)(float);
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float cube(float x) { return x * x * x + __sinf(x); }
__device__ __noinline__ float half(float x) { return square(x) / 2; }
__device__ op table[2] = {square, cube};
__device__ __noinline__ float walk(float *p, int n) { return n < 1 ? p[0] : walk(p, n / 2) + walk(p, n - 3); }
__device__ float other(float *p, int n);
__device__ __noinline__ float one(float *p, int n) { return n < 1 ? p[1] : p[n] + other(p, n - 1); }
__device__ __noinline__ float other(float *p, int n) { return n < 1 ? p[2] : p[n] * one(p, n - 2); }
template <typename T, int N> __device__ __noinline__ T scaled(T x) {
  T s = 0;
#pragma unroll 1
  for (int i = 0; i < N; ++i) s += x * s + i;
  return s;
}
__device__ __forceinline__ float twice(float x) { return x + __cosf(x); }
extern "C" __global__ void run(float *a, int n, int k) {
  op f = table[k & 1];
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 32) {
    a[i] = f(a[i]) + half(a[i + 1]);
    a[i] += scaled<float, 4>(a[i]) + scaled<float, 1000>(a[i]) + (float)scaled<double, 999>(a[i]);
    a[i] += twice(a[i]);
  }
  a[0] += walk(a, n) + one(a, n) + other(a, n);
}
"""
STACK = (
    FrameSpec(
        module="/opt/app/libsolve.so",
        address=0x1234,
        function="launch(float*)",
        file="/src/solve.cu",
        line=12,
    ),
    FrameSpec(module="/opt/app/app", address=0x99, function="main", file="/src/main.cpp", line=34),
)


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GPADVISOR_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)


def launch_of(text: str = SOURCE, **rest: Any) -> LaunchSpec:
    return sampled(compile_text(text, "/src/run.cu", "sm_80", "-default-device"), "run", seed="tree", **rest)


@pytest.fixture(scope="module")
def launch() -> LaunchSpec:
    return launch_of(call_stack=STACK, external={(1 << 40, "wait"): (90, 70)})


@pytest.fixture
def report(tmp_path: Path, launch: LaunchSpec) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([launch]))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def tree(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, "tree", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(published_schema("views.tree", "tree")).validate(value)
    for at, row in enumerate(value["rows"]):
        assert (row["parent"] is None) == (at == 0)
        assert row["parent"] is None or row["parent"] < at
    return value


def measured(launch: LaunchSpec) -> dict[str, int]:
    """Samples of each function, straight from the symbols."""
    assert launch.cubin is not None
    found: dict[str, int] = defaultdict(int)
    symbols = {section.name: section.symbols for section in read_cubin(launch.cubin).sections}
    for (section, pc, _), (total, _) in launch.samples.items():
        owner = max((one for one in symbols[section] if one.offset <= pc), key=lambda one: one.offset)
        found[owner.name.rpartition("$")[2]] += total
    return found


def own(value: dict[str, Any], name: str) -> float:
    """Samples of a function's own code, in all its places."""
    at = [metric["name"] for metric in value["metrics"]].index("samples")
    kinds = {"kernel", "function", "inlined", "outside"}
    return sum(
        row["exclusive"][at]
        for row in value["rows"]
        if row["kind"] in kinds and (row["name"] == name or row["name"].startswith(f"{name}("))
    )


@pytest.mark.parametrize("view", ["top-down", "bottom-up", "flat"])
def test_each_view_has_all_samples_of_each_function(
    view: str, capsys: pytest.CaptureFixture[str], report: Path, launch: LaunchSpec
) -> None:
    value = tree(capsys, report, "--view", view, "--metric", "samples")
    total = sum(measured(launch).values()) + 90
    assert value["rows"][0]["inclusive"] == [pytest.approx(total)]
    rows = value["rows"]
    if view != "top-down":  # below a function are its callers, or its parts, with the same samples again
        rows = [row for row in rows if row["parent"] in {None, 0}]
    known = {**value, "rows": rows}
    for symbol, name in (("_Z6squaref", "square"), ("_Z4cubef", "cube"), ("_Z4walkPfi", "walk"),
                         ("_Z3onePfi", "one"), ("_Z5otherPfi", "other"), ("_Z4halff", "half")):  # fmt: skip
        assert own(known, name) == pytest.approx(measured(launch)[symbol]), name
    assert own(known, "code outside of the cubin") == 90
    kinds = {"kernel", "function", "inlined", "outside"}
    assert sum(row["exclusive"][0] for row in rows if row["kind"] in kinds) == pytest.approx(total)
    stacked = value["stacked"]
    below: dict[int, float] = defaultdict(float)
    for row in value["rows"][1:]:
        below[row["parent"]] += row[stacked][0]
    for at, amount in below.items():
        assert amount <= value["rows"][at][stacked][0] * (1 + 1e-9)


def test_what_rows_say(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    rows = tree(capsys, report)["rows"]

    def path(row: dict[str, Any]) -> list[str]:
        found = []
        while row["parent"] is not None:
            row = rows[row["parent"]]
            found.append(row["name"])
        return found[::-1]

    def only(name: str, **facts: object) -> dict[str, Any]:
        (row,) = [
            one
            for one in rows
            if one["name"] == name and all(one[key] == value for key, value in facts.items())
        ]
        return row

    kernel = only("run", kind="kernel")
    assert path(kernel) == ["all", "main", "launch(float*)"]
    assert [rows[1]["file"], rows[1]["line"]] == ["/src/main.cpp", 34]
    half = only("half(float)")
    assert path(half)[-2:] == ["loop at run.cu:20", "run.cu:21"]
    assert not half["possible"]
    assert path(only("square(float)", possible=False))[-1] == "run.cu:4"
    # Counts are the same everywhere: all entries of square are from half, so the pointer was to cube.
    assert {row["name"] for row in rows if row["possible"]} == {"cube(float)"}
    templates = [row for row in rows if row["instances"] > 1 and row["kind"] == "function"]
    assert [(row["name"], row["instances"]) for row in templates] == [("scaled<...>", 3)]
    assert any(row["kind"] == "loop" and rows[row["parent"]] is templates[0] for row in rows)
    assert len([row for row in rows if row["name"] == "walk(float*, int)"]) == 1
    circles = [row for row in rows if row["kind"] == "circle"]
    assert {row["name"] for row in circles} == {"one, other"}
    assert any(row["kind"] == "inlined" and row["line"] == 23 for row in rows) or any(
        row["name"] == "run.cu:16" for row in rows
    )


def test_calls_through_a_register_share_what_other_calls_leave(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    assert launch.cubin is not None
    starts = {one.name.rpartition("$")[2]: one.offset for one in read_cubin(launch.cubin).sections[0].symbols}
    counts = {**launch.counts, ("run", starts["_Z6squaref"]): (4000, 128000)}
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(write_report([replace(launch, counts=counts)]))
    shares: dict[bool, float] = defaultdict(float)
    for row in tree(capsys, path, "--metric", "samples")["rows"]:
        if row["name"] == "square(float)":
            shares[row["possible"]] += row["exclusive"][0]
    assert shares[True] == pytest.approx(3 * shares[False]), "one of four entries is from half"
    path.write_bytes(write_report([replace(launch, counts={})]))
    rows = tree(capsys, path, "--metric", "samples")["rows"]
    assert {row["name"] for row in rows if row["possible"]} == {"square(float)", "cube(float)"}


def test_a_function_is_divided_by_executed_calls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Called from two lines, of which one runs three times as often."""
    text = """\
__device__ __noinline__ float heavy(float x) { return __sinf(x) * x; }
extern "C" __global__ void run(float *a) {
  a[0] = heavy(a[1]);
  a[2] = heavy(a[3]) + a[4];
}
"""
    launch = launch_of(text)
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(write_report([launch]))
    from gpadvisor.pipeline.analyse import analyse_file
    from gpadvisor.pipeline.cache import Cache
    from gpadvisor.pipeline.request import Request
    from gpadvisor.pipeline.settings import Settings

    program = (
        analyse_file(path, Request(settings=Settings()), lambda _: None, Cache(None))
        .kernels[0]
        .context.program
    )
    kernel = next(one for one in program.functions if one.calls)
    sites = {}
    for call in kernel.calls:
        entry = kernel.lines[call.index]
        assert entry is not None
        sites[entry.location.line] = kernel.instructions[call.index].pc
    counts = {**launch.counts, ("run", sites[3]): (3000, 96000), ("run", sites[4]): (1000, 32000)}
    path.write_bytes(
        write_report([LaunchSpec(kernel="run", cubin=launch.cubin, samples=launch.samples, counts=counts)])
    )
    value = tree(capsys, path, "--metric", "samples")
    shares = {
        value["rows"][row["parent"]]["line"]: (row["inclusive"][0], row["calls"])
        for row in value["rows"]
        if row["kind"] == "function"
    }
    assert shares[3][0] == pytest.approx(3 * shares[4][0])
    assert (shares[3][1], shares[4][1]) == (3000, 1000)
    # Without counts a call weighs the samples of its instruction.
    bare = {place: amount for place, amount in launch.samples.items() if place[:2] != ("run", sites[4])}
    path.write_bytes(write_report([LaunchSpec(kernel="run", cubin=launch.cubin, samples=bare)]))
    value = tree(capsys, path, "--metric", "samples")
    assert value["kernels"][0]["weights"] == "samples of calls"
    assert [value["rows"][row["parent"]]["line"] for row in value["rows"] if row["kind"] == "function"] == [3]


def test_kernels_and_their_launches_are_in_one_tree(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    path = tmp_path / "two.ncu-rep"
    other = launch_of('extern "C" __global__ void run(float *a) { a[threadIdx.x] *= 2; }', duration_ns=3e6)
    path.write_bytes(write_report([launch, other]))
    value = tree(capsys, path, "--metric", "time")
    assert value["rows"][0]["inclusive"] == [pytest.approx(1)]
    kernels = [row for row in value["rows"] if row["kind"] == "kernel"]
    assert [row["inclusive"][0] for row in kernels] == pytest.approx([0.75, 0.25])
    only = tree(capsys, path, "--launch", "0")
    assert len(only["kernels"]) == 1


def test_folded_stacks_are_whole_and_keep_each_functions_sum(
    capsys: pytest.CaptureFixture[str], report: Path, launch: LaunchSpec
) -> None:
    code, out, _ = run(capsys, "tree", report, "--format", "folded", "--metric", "samples")
    assert code == 0
    found = [re.fullmatch(r"(\S.*\S) (\d+)", line) for line in out.splitlines()]  # as flamegraph.pl reads it
    assert all(found)
    stacks = [(one[1].split(";"), int(one[2])) for one in found if one]
    assert sum(number for _, number in stacks) == sum(measured(launch).values()) + 90
    assert len({tuple(stack) for stack, _ in stacks}) == len(stacks)
    of_half = sum(
        number
        for stack, number in stacks
        if [one for one in stack if "(float" in one][-1:] == ["half(float)"]
    )
    assert of_half == measured(launch)["_Z4halff"]
    code, out, _ = run(capsys, "tree", report, "--format", "folded")
    assert sum(int(line.rpartition(" ")[2]) for line in out.splitlines()) == 1_000_000, "shares of the time"


@pytest.mark.parametrize("view", ["top-down", "bottom-up", "flat"])
def test_speedscope_files_have_the_shape_that_is_published(
    view: str, capsys: pytest.CaptureFixture[str], report: Path
) -> None:
    code, out, _ = run(capsys, "tree", report, "--format", "speedscope", "--view", view)
    assert code == 0
    value = json.loads(out)
    assert value["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = value["shared"]["frames"]
    assert all(frame.keys() <= {"name", "file", "line", "col"} and frame["name"] for frame in frames)
    assert [profile["name"] for profile in value["profiles"]] == [
        "time",
        "samples",
        "latency",
        "instructions",
    ]
    for profile in value["profiles"]:
        assert profile["type"] == "evented"
        assert profile["unit"] in {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
        opened: list[int] = []
        last = profile["startValue"]
        for event in profile["events"]:
            assert event.keys() == {"type", "frame", "at"}
            assert last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert opened.pop() == event["frame"]
        assert not opened
        assert 0 <= max(event["frame"] for event in profile["events"]) < len(frames)


def test_metrics_are_formulas(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    value = tree(capsys, report, "--metric", "stalled = latency / samples", "--metric", "samples - selected")
    assert [metric["name"] for metric in value["metrics"]] == ["stalled", "samples - selected"]
    assert [metric["additive"] for metric in value["metrics"]] == [False, True]
    assert all(0 <= row["inclusive"][0] <= 1 for row in value["rows"])
    assert any(row["exclusive"][0] is None for row in value["rows"]), "nothing divided by nothing"
    for wrong, said in (
        ("nonsense", "there is no column nonsense; there are time, samples, latency"),
        ("samples +", "it ends too early"),
        ("__import__('os').system('true')", "is no part of a formula"),
        ("(" * 60 + "samples" + ")" * 60, "more than 50 brackets"),
        ("samples" + " + samples" * 200, "a formula has at most 1,000"),
        ("1 + 2", "names no column"),
        ("", "it ends too early"),
    ):
        code, out, err = run(capsys, "tree", report, "--metric", wrong)
        assert (code, out) == (2, ""), wrong
        assert said in err
        assert err.count("\n") == 1
    code, _, err = run(capsys, "tree", report, "--metric", "latency / samples", "--format", "folded")
    assert code == 2
    assert "is no sum over code" in err
    code, _, err = run(capsys, "tree", report, "--metric", "latency - samples", "--format", "speedscope")
    assert code == 2
    assert "is below zero at" in err


def test_text_fits_and_says_what_is_left_out(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    for view in ("top-down", "bottom-up", "flat"):
        code, out, _ = run(capsys, "tree", report, "--view", view, "--top", "9")
        assert code == 0
        assert all(len(line) <= 80 for line in out.splitlines())
        assert "100.0 %" in out
        assert "smaller rows; --top 0 shows all" in out
        code, out, _ = run(capsys, "tree", report, "--view", view, "--top", "0", "--color", "always")
        assert "smaller row" not in out
        assert "\x1b[1m" in out
    _, out, _ = run(capsys, "tree", report, "--top", "0")
    assert "possibly cube(float)" in out
    assert "3 x scaled<...>" in out
    assert "circle of one, other" in out
    assert "! calls through registers" in out


def test_a_name_cannot_make_a_frame_or_move_the_cursor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    bad = FrameSpec(module="/opt/app", address=1, function="a;b \x1b[31m\n7")
    path = tmp_path / "bad.ncu-rep"
    hostile = replace(launch, call_stack=[bad], external={})
    path.write_bytes(write_report([hostile]))
    for form in ("text", "folded", "speedscope"):
        code, out, _ = run(capsys, "tree", path, "--format", form)
        assert code == 0
        assert "\x1b" not in out
    _, out, _ = run(capsys, "tree", path, "--format", "folded")
    assert all(line.startswith("all;a:b ") for line in out.splitlines())
