# SPDX-License-Identifier: Apache-2.0
"""One tree from the host's ways to launches down to lines of kernels, by traced runs and by profiles."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests import collection_writer as written
from tests.kernels import compile_text
from tests.ncu_writer import FrameSpec, LaunchSpec, write_report
from tests.sampled import sampled
from tests.schemas import published_schema
from tests.trace_values import Work, chrome_events, write_chrome, write_export

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

APP, LIBRARY = "/opt/app/app", "/opt/app/libsolve.so"
SOURCE = """\
__device__ __noinline__ float heavy(float x) { return __sinf(x) * x; }
extern "C" __global__ void run(float *a) {
  a[0] = heavy(a[1]) + a[2];
}
"""
WORK = (Work(0, 30, "run"), Work(30, 40, "run"), Work(40, 80, "other"), Work(80, 100))
# Outermost first: two calls of one function in the library, and main alone; no path of the copy.
PATHS = (
    (("main", APP, 0x10), ("solve", LIBRARY, 0x100)),
    (("main", APP, 0x10), ("solve", LIBRARY, 0x200)),
    (("main", APP, 0x30),),
    (),
)


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def launch() -> LaunchSpec:
    return sampled(compile_text(SOURCE, "/src/run.cu", "sm_80"), "run", seed="tree of run")


@pytest.fixture
def report(tmp_path: Path, launch: LaunchSpec) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([launch]))
    return path


def export_with_paths(path: Path) -> Path:
    """An export of the work with the call path of each launch, beside frames of CUDA and of the start."""
    write_export(path, WORK)
    texts: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN callchainId;
            CREATE TABLE CUDA_CALLCHAINS (id, symbol, module, unresolved, originalIP, stackDepth);"""
        )
        for at, frames in enumerate(PATHS):
            if not frames:
                continue
            inner = ("cudaLaunchKernel", "/opt/cuda/libcudart.so.12", 0x5)
            outer = ("__libc_start_main", "/lib/libc.so.6", 0x7)
            for depth, (name, module, address) in enumerate([inner, *reversed(frames), outer]):
                numbers = [texts.setdefault(text, 1000 + len(texts)) for text in (name, module)]
                database.execute(
                    "INSERT INTO CUDA_CALLCHAINS VALUES (?, ?, ?, 0, ?, ?)", (at, *numbers, address, depth)
                )
            database.execute(
                "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = ? WHERE correlationId = ?", (at, at)
            )
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(n, t) for t, n in texts.items()])
        database.commit()
    return path


def chrome_with_paths(path: Path) -> Path:
    """A Chrome trace whose calls are in frames of Python."""
    events = chrome_events(WORK)
    for start, end, name in (
        (0, 100, "train.py(40): <module>"),
        (0, 39.5, "train.py(5): step"),
        (0, 29.5, "torch/nn/modules/linear.py(30): forward"),
        (39.5, 79, "train.py(9): loss"),
    ):
        event = {"ph": "X", "cat": "python_function", "name": name, "pid": 3, "tid": 4}
        events.append({**event, "ts": start / 1000, "dur": (end - start) / 1000})
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def tree(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code = main(["tree", *map(str, arguments), "--format", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(published_schema("views.tree", "tree")).validate(value)
    return value


def above(rows: Sequence[dict[str, Any]], row: dict[str, Any]) -> list[str]:
    names = []
    while row["parent"]:
        row = rows[row["parent"]]
        names.append(row["name"] if row["address"] is None else f"{row['name']}+{row['address']:#x}")
    return names[::-1]


def kernels(value: dict[str, Any]) -> dict[tuple[str, ...], list[float]]:
    """By the way to a kernel or a copy what it has with all below it."""
    rows = value["rows"]
    return {
        (*above(rows, row), row["name"]): row["inclusive"]
        for row in rows
        if row["kind"] in {"kernel", "copy"}
    }


NATIVE = {
    ("main+0x10", "solve+0x100", "cudaLaunchKernel", "run"): 30,
    ("main+0x10", "solve+0x200", "cudaLaunchKernel", "run"): 10,
    ("main+0x30", "cudaLaunchKernel", "other"): 40,
    ("cudaLaunchKernel", "copy"): 20,
}
PYTHON = {
    ("<module>", "step", "forward", "cudaLaunchKernel", "run"): 30,
    ("<module>", "step", "cudaLaunchKernel", "run"): 10,
    ("<module>", "loss", "cudaLaunchKernel", "other"): 40,
    ("<module>", "cudaLaunchKernel", "copy to the device"): 20,
}


@pytest.mark.parametrize("native", [True, False])
def test_a_kernel_is_below_the_ways_to_all_its_launches(
    native: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path, launch: LaunchSpec
) -> None:
    trace = export_with_paths(tmp_path / "run.sqlite") if native else chrome_with_paths(tmp_path / "run.json")
    wanted = NATIVE if native else PYTHON
    samples = sum(total for total, _ in launch.samples.values())
    value = tree(capsys, report, "--timeline", trace, "--metric", "time", "--metric", "samples")
    found = kernels(value)
    assert {way: amounts[0] for way, amounts in found.items()} == {
        way: pytest.approx(time / 100) for way, time in wanted.items()
    }
    assert {way[-1]: 0 for way, (_, own) in found.items() if not own}.keys() == {
        way[-1] for way in wanted
    } - {"run"}
    by_time = {way: own for way, (_, own) in found.items() if way[-1] == "run"}
    assert by_time == {way: pytest.approx(samples * wanted[way] / 40) for way in by_time}
    rows = value["rows"]
    assert rows[0]["inclusive"] == [pytest.approx(1.0), pytest.approx(samples)]
    heavy = [row for row in rows if row["name"] == "heavy(float)"]
    assert len(heavy) == 2
    first, second = sorted(row["inclusive"][1] for row in heavy)
    assert second == pytest.approx(3 * first), "what is called is divided as the launches are"
    assert len([row for row in rows if row["name"] == ("main" if native else "<module>")]) == (
        2 if native else 1
    ), "frames are one by module and offset, else by name and line"
    assert {row["kind"] for row in rows} >= {"host", "kernel", "function", "copy"}
    assert sum(row["calls"] for row in rows if row["kind"] == "kernel") == 3


@pytest.mark.parametrize("native", [True, False])
def test_a_trace_alone_has_the_ways_to_gpu_work(
    native: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = export_with_paths(tmp_path / "run.sqlite") if native else chrome_with_paths(tmp_path / "run.json")
    found = kernels(tree(capsys, trace))
    assert found == {way: [time, 1] for way, time in (NATIVE if native else PYTHON).items()}


def test_traces_without_call_paths_have_the_calls(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: Path
) -> None:
    for trace in (write_export(tmp_path / "a.sqlite", WORK), write_chrome(tmp_path / "a.json", WORK)):
        found = kernels(tree(capsys, report, "--timeline", trace, "--metric", "time"))
        assert found[("cudaLaunchKernel", "run")] == [pytest.approx(0.4)]


def test_launches_of_a_profile_are_divided_by_their_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec
) -> None:
    """A report whose launches of one kernel come from two calls."""
    launches = []
    for address, metrics in (
        (0x100, {"gpu__time_duration.sum": 3000}),
        (0x200, {"gpu__time_duration.sum": 1000}),
    ):
        stack = (
            FrameSpec(module=LIBRARY, address=address, function="solve"),
            FrameSpec(module=APP, address=0x10, function="main"),
        )
        launches.append(replace(launch, call_stack=stack, metrics={**launch.metrics, **metrics}))
    path = tmp_path / "two.ncu-rep"
    path.write_bytes(write_report(launches))
    value = tree(capsys, path, "--metric", "time", "--metric", "samples")
    samples = sum(total for total, _ in launch.samples.values())
    assert kernels(value) == {
        ("main+0x10", "solve+0x100", "run"): [pytest.approx(0.75), pytest.approx(0.75 * samples)],
        ("main+0x10", "solve+0x200", "run"): [pytest.approx(0.25), pytest.approx(0.25 * samples)],
    }


@pytest.mark.parametrize("mode", [1, 2], ids=["continuous", "serialized"])
@pytest.mark.parametrize("timed", [True, False], ids=["timed", "counted"])
def test_a_collection_is_below_its_own_call_paths(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, launch: LaunchSpec, mode: int, timed: bool
) -> None:
    """As the cupti collector leaves it: two functions launch a kernel, for 3 and 1 us, three times and once.

    In continuous mode samples are of the kernel, in serialized mode of a launch, one of which stands for all.
    """
    assert launch.cubin is not None
    reasons = sorted({reason for _, _, reason in launch.samples})
    places = list(launch.samples.items())
    body = [
        *(written.process(mode=mode), written.device(minor=0), written.context(mode=mode)),
        written.reasons([(at, reason) for at, reason in enumerate(reasons)]),
        *(written.name(name) for name in {"run", *(section for section, _, _ in launch.samples)}),
        *(written.frame(1, "main", 10), written.frame(2, "solve", 20), written.frame(3, "check", 30)),
        *(written.path(7, [2, 1]), written.path(8, [3, 1]), written.module(launch.cubin)),
    ]
    for correlation, way in enumerate((7, 7, 7, 8), 1):
        body.append(written.launch("run", correlation, path=way))
        if timed:
            body.append(written.kernel("run", correlation, nanoseconds=1000))
        rows = [
            (77, pc, section, correlation if mode == 2 else 0, reasons.index(reason), total)
            for (section, pc, reason), (total, _) in places
        ]
        body.append(written.samples(rows))
    path = written.write(
        tmp_path / "collection", written.header() + written.segment(body), images=[launch.cubin]
    )
    snapshot = tmp_path / "run.gpadvisor"
    assert main(["import", str(path), "-o", str(snapshot)]) == 0
    for source in (path, snapshot):
        capsys.readouterr()
        value = tree(capsys, source, "--metric", "samples")
        found = {
            tuple(name.partition("+")[0] for name in way): samples for way, samples in kernels(value).items()
        }
        samples = (4 if mode == 1 else 1) * sum(total for _, (total, _) in places)
        assert found == {
            ("main", "solve", "run"): [pytest.approx(0.75 * samples)],
            ("main", "check", "run"): [pytest.approx(0.25 * samples)],
        }
        assert any(row["name"].startswith("heavy") for row in value["rows"])


def test_the_page_has_the_ways_of_the_run(
    tmp_path: Path, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpadvisor.editor.contents.page import page_contents
    from gpadvisor.pipeline.cache import Cache
    from gpadvisor.pipeline.request import Request
    from gpadvisor.pipeline.settings import Settings

    trace = export_with_paths(tmp_path / "run.sqlite")
    request = Request(settings=Settings(), timeline=trace)
    document: Any = page_contents(report, request, lambda _: None, Cache(None)).document
    (kernel,) = document["kernels"]
    names = [row["name"] for row in kernel["tree"]["rows"]]
    assert names.count("solve") == 2
    assert "other" not in names


def test_what_is_no_trace_is_said(tmp_path: Path, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "run.txt"
    text.write_text("no trace")
    assert main(["tree", str(report), "--timeline", str(text)]) == 3
    assert "is no timeline" in capsys.readouterr().err
