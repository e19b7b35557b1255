# SPDX-License-Identifier: Apache-2.0
"""What a change is worth for a traced run: worked out by hand, of all formats, and of bad traces."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.advice_values import estimate, kernel
from tests.trace_values import Work, chrome_events, write_chrome, write_export

from gpadvisor.advice.in_run import in_run, part_of, run_times, worth
from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError, ProfileMismatchError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.timeline import KernelName, KernelTime, RunPart, RunTimes
from gpadvisor.pipeline.timeline import idle_of, in_timeline, run_times_of
from gpadvisor.store.timeline import read_timeline

pytestmark = pytest.mark.usefixtures("reads_here")

G1, G2 = (4, 1, 1, 64, 1, 1), (8, 1, 1, 64, 1, 1)
# a on one stream, a copy on another from 30 to 50, nothing from 50 to 60, a with another grid, then b.
RUN = [Work(0, 40, "a", G1), Work(30, 50), Work(60, 80, "a", G2), Work(80, 100, "b", G1)]
WRITERS = [write_export, write_chrome]
Writer = Callable[[Path, list[Work]], Path]


def of(times: RunTimes, name: str, shape: tuple[int, ...] | None = None) -> KernelTime:
    (found,) = [one for one in times.kernels if one.name.mangled == name and one.shape == shape]
    return found


@pytest.mark.parametrize("write", WRITERS)
def test_by_hand(tmp_path: Path, write: Writer) -> None:
    times = run_times_of(write(tmp_path / "run", RUN))
    assert (times.span_ns, times.busy_ns) == (100, 90)
    a, own, b = of(times, "a"), of(times, "a", G1), of(times, "b")
    assert (a.launches, a.alone_ns, a.shared_ns, a.union_ns) == (2, 50, 55.0, 60)
    assert (own.launches, own.alone_ns, own.shared_ns, own.union_ns) == (1, 30, 35.0, 40)
    assert (b.launches, b.alone_ns, b.shared_ns, b.union_ns) == (1, 20, 20.0, 20)
    part = RunPart(trace="run", span_ns=times.span_ns, busy_ns=times.busy_ns, time=a)
    assert part.of_busy * part.busy == pytest.approx(0.55)
    # Twice as fast: 1 / (1 - 0.5 + 0.25), 1 / (1 - 0.55 + 0.275), 1 / (1 - 0.6 + 0.3).
    found = worth(estimate(2.0, 2.0, 2.0, 2.0), part)
    assert found is not None
    assert found.low == pytest.approx(4 / 3)
    assert found.expected == pytest.approx(1 / 0.725)
    assert found.high == pytest.approx(10 / 7)
    # What may be slower loses the most where it runs at all.
    slower = worth(estimate(0.5, 1.0, 2.0, None), part)
    assert slower is not None
    assert (slower.low, slower.expected) == pytest.approx((1 / 1.6, 1.0))
    assert worth(None, part) is None


def test_shared_parts_add_up_to_the_busy_time(tmp_path: Path) -> None:
    draw = random.Random(5)
    work = []
    for _ in range(150):
        start = draw.randrange(800)
        work.append(
            Work(start, start + draw.randrange(30), draw.choice([None, "a", "b", "c"]), draw.choice([G1, G2]))
        )
    times = run_times(read_timeline(write_export(tmp_path / "run.sqlite", work)))
    active = np.zeros((len(work), 900), bool)
    for at, one in enumerate(work):
        active[at, one.start : one.end] = True
    number = active.sum(axis=0)
    assert times.busy_ns == int((number > 0).sum())
    part = np.where(active, 1 / np.maximum(number, 1), 0.0).sum(axis=1)
    assert part.sum() == pytest.approx(times.busy_ns)
    for name in "abc":
        for shape in (None, G1, G2):
            own = np.array([one.name == name and shape in {None, one.shape} for one in work])
            found = of(times, name, shape)
            assert found.launches == own.sum()
            assert found.shared_ns == pytest.approx(part[own].sum())
            assert found.union_ns == int(active[own].any(axis=0).sum())
            assert found.alone_ns == int((active[own].any(axis=0) & ~active[~own].any(axis=0)).sum())


def test_launches_of_the_same_grid_count_else_all(tmp_path: Path) -> None:
    one = kernel()
    assert one.launch is not None
    shape = (*one.launch.grid, *one.launch.block)
    others = [Work(10, 20, one.mangled, G1), Work(20, 40, "other", G1)]
    times = run_times_of(write_export(tmp_path / "b.sqlite", others))
    told = in_run(one, part_of(one, times, "b.sqlite"))
    assert told.in_run is not None
    assert told.in_run.time.shape is None
    assert told.time_share == pytest.approx(1 / 3)
    times = run_times_of(write_export(tmp_path / "a.sqlite", [Work(0, 10, one.mangled, shape), *others]))
    ((told,), _) = in_timeline([one], tmp_path / "a.sqlite")
    assert told.in_run is not None
    assert (told.in_run.time.shape, told.in_run.time.launches) == (shape, 1)
    assert [s.program_speedup is None for s in told.suggestions] == [
        s.speedup is None for s in told.suggestions
    ]


def test_names_of_pytorch_are_the_readable_ones() -> None:
    one = replace(kernel(), mangled="_Z1kILi4EEvv", name="void k<(int)4>(float*, int)")
    name = "void k<4>(float *,int)"
    time = KernelTime(
        name=KernelName(mangled=name, demangled=name),
        shape=None,
        launches=1,
        alone_ns=1,
        shared_ns=1.0,
        union_ns=1,
    )
    assert part_of(one, RunTimes(span_ns=2, busy_ns=1, kernels=(time,)), "t") is not None


def test_a_kernel_that_did_not_run_says_so_and_another_program_is_an_error(tmp_path: Path) -> None:
    one, other = kernel(), replace(kernel(), mangled="other", name="other")
    path = write_export(tmp_path / "run.sqlite", [Work(0, 10, one.mangled)])
    (told, missing), _ = in_timeline([one, other], path)
    assert told.in_run is not None
    assert {s.program_speedup for s in missing.suggestions} == {None}
    assert ProblemCode.NOT_IN_TIMELINE in {problem.code for problem in missing.problems}
    with pytest.raises(ProfileMismatchError, match="another program or of another build"):
        in_timeline([other], path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"traceEvents": []}', "no kernel, copy or memset"),
        ("[]", "no kernel, copy or memset"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1}]}', "no kernel, copy or memset"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 5, "dur": -1}]}', "ends before it begins"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": -5, "dur": 1}]}', "ends before it begins"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": "x", "dur": 1}]}', "an event has the times"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1}]}', "an event has the times"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1e99, "dur": 1}]}', "where whole numbers are"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel"', "cannot be read as a Chrome trace"),
        ('{"traceEvents": [NaN]}', "cannot be read as a Chrome trace"),
        ("{" * 100_000, "cannot be read as a Chrome trace"),
        ('{"traceEvents": ' + "[" * 5_000, "cannot be read as a Chrome trace"),
        ("words", "is no timeline"),
        ("", "is no timeline"),
    ],
)
def test_bad_traces(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ProfileFormatError, match=words):
        run_times_of(path)
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_odd_events_are_read_over(tmp_path: Path) -> None:
    odd: list[object] = [1, None, "x", [], {"ph": "X"}, {"ph": "X", "cat": ["kernel"], "args": 3}]
    odd.append({"ph": "X", "cat": "kernel", "ts": 0.1, "dur": 0.01, "name": None, "args": {"grid": [1, "x"]}})
    path = tmp_path / "run.json"
    path.write_text(json.dumps([*odd, *chrome_events(RUN)]))
    assert of(run_times_of(path), "a").launches == 2
    packed = tmp_path / "run.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert run_times_of(packed) == run_times_of(path)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ProfileFormatError, match="cannot be read as a Chrome trace"):
        run_times_of(packed)
    assert idle_of(path).devices[-1].idle_ns == 10


def test_a_large_trace_is_read_in_little_memory(tmp_path: Path) -> None:
    """The events of 60 MB, which take more than 200 MB as objects of Python, in 20 MB of columns."""
    import tracemalloc

    filler = json.dumps({"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 2, "name": "x" * 900})
    path = tmp_path / "run.json"
    with path.open("w") as file:
        file.write('{"traceEvents": [')
        for _ in range(60_000):
            file.write(filler + ",")
        file.write(json.dumps(chrome_events([Work(0, 10, "a")])[1]) + "]}")
    tracemalloc.start()
    try:
        assert len(read_timeline(path).work.start_ns) == 1
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.rank_values import rank_profile, write_rank

    report = write_rank(tmp_path, 0, rank_profile({1: (50, 20)}))
    launch = rank_profile({1: (50, 20)}).kernels[0].launch
    shape = (*launch.grid, *launch.block)
    run = [Work(0, 10, launch.kernel, shape), Work(10, 20, "b"), Work(90, 100, "b")]
    trace = write_export(tmp_path / "run.sqlite", run)
    assert main(["advise", str(report), "--timeline", str(trace), "--format", "json"]) == 0
    (told,) = [
        one for one in json.loads(capsys.readouterr().out)["kernels"] if one["mangled"] == launch.kernel
    ]
    assert told["time_share"] == pytest.approx(1 / 3, rel=1e-6)
    assert told["run"] == {
        "trace": "run.sqlite",
        "span_ns": 100,
        "busy_ns": 30,
        "launches": 1,
        "same_grid": True,
        "alone_ns": 10,
        "shared_ns": 10.0,
        "union_ns": 10,
    }
    assert main(["advise", str(report), "--timeline", str(trace), "--details"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "in run.sqlite this kernel has 33.3 % of the busy time in 1 launch" in text
    assert main(["advise", str(report), "--timeline", str(trace)]) == 0
    assert "No GPU works in 70 % of the run" in " ".join(capsys.readouterr().out.split())
    write_export(tmp_path / "other.sqlite", [Work(0, 10, "b")])
    assert main(["advise", str(report), "--timeline", str(tmp_path / "other.sqlite")]) != 0
    assert "of another program" in capsys.readouterr().err
    assert main(["advise", str(report), "--timeline", str(tmp_path / "none")]) != 0
    assert "No such file" in capsys.readouterr().err


TRACES = Path(os.environ.get("GPADVISOR_TRACES", ""))


@pytest.mark.skipif(
    not (TRACES / "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz").is_file(),
    reason="GPADVISOR_TRACES has no rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
    " (facebookresearch/HolisticTraceAnalysis)",
)
def test_a_public_trace_of_pytorch() -> None:
    times = run_times_of(TRACES / "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz")
    assert sum(one.launches for one in times.kernels if one.shape is None) == 4350
    (idle,) = idle_of(TRACES / "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz").devices
    assert (idle.span_ns, idle.busy_ns) == (times.span_ns, times.busy_ns)
    assert sum(one.idle_ns for one in idle.by_call) == pytest.approx(idle.idle_ns)
