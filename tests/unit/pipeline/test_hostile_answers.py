# SPDX-License-Identifier: Apache-2.0
"""A child that was taken over answers what it likes: what is no value of the kind asked for is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.damage import damage, document_of

from gpadvisor.errors import NoTimelineError, ProfileError, ProfileFormatError, ToolFailedError, UsageError
from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind
from gpadvisor.model.timeline import (
    DeviceIdleness,
    KernelName,
    KernelTime,
    RunIdleness,
    RunStrip,
    RunTimes,
    StripLane,
)
from gpadvisor.pipeline.contexts import measured_contexts
from gpadvisor.pipeline.timeline import idle_of, run_times_of, strip_of
from gpadvisor.sandbox import children
from gpadvisor.sandbox.codec import Failure
from gpadvisor.store.child import ReadProfile
from gpadvisor.store.isolation import being_read
from gpadvisor.store.ranks.isolation import RankSum, sum_isolated
from gpadvisor.store.ranks.request import SumAnswer
from gpadvisor.toolchain.nvrtc import Nvrtc, NvrtcResult, compile_by_nvrtc
from gpadvisor.toolchain.nvrtc_child import NvrtcAnswer

Answering = Callable[[object], object]
PATH: Final = Path("run.sqlite")


@pytest.fixture
def answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Have children of this process answer a document, whatever they are asked."""
    monkeypatch.chdir(tmp_path)
    answer = tmp_path / "answer"
    code = f"import shutil, sys; shutil.copyfile({str(answer)!r}, sys.argv[-3])"
    monkeypatch.setattr(children, "_START", code)
    return lambda document: answer.write_text(json.dumps(document))


KERNEL = KernelTime(
    name=KernelName(mangled="k", demangled="k()"),
    shape=(1, 1, 1, 32, 1, 1),
    launches=1,
    alone_ns=1,
    shared_ns=1.5,
    union_ns=2,
)
DEVICE = DeviceIdleness(device=0, span_ns=9, busy_ns=4, gaps=1, by_call=(), by_end=())
TIMES = RunTimes(span_ns=9, busy_ns=4, kernels=(KERNEL, replace(KERNEL, shape=None)))
LANE = StripLane(kind="idle", label="", events=1, data="AAAA")
STRIP = RunStrip(
    span_ns=9, names=(("k", "kernel"),), lanes=(LANE,), left_out=0, merged_ns=0, devices=(DEVICE,)
)
IDLE = RunIdleness(devices=(DEVICE,), findings=())
ASKED: Final[dict[str, tuple[Callable[[Path], object], Any]]] = {
    "times": (run_times_of, TIMES),
    "strip": (strip_of, STRIP),
    "idle": (idle_of, IDLE),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_a_trace_says_is_taken(what: str, answering: Answering) -> None:
    ask, value = ASKED[what]
    answering(document_of(value))
    assert ask(PATH) == value
    answering(document_of(Failure(error="NoTimelineError", message="none")))
    with pytest.raises(NoTimelineError, match=r"^none$"):
        ask(PATH)
    answering(document_of(Failure(error="SystemExit", message="why")))
    with pytest.raises(ProfileFormatError, match=r"^why$"):
        ask(PATH)


@pytest.mark.parametrize(
    ("what", "path", "value"),
    [
        ("times", (), []),
        ("times", (), {"message": "x"}),
        ("times", ("span_ns",), 3),
        ("times", ("busy_ns",), -1),
        ("times", ("span_ns",), 1 << 62),
        ("times", ("span_ns",), "9"),
        ("times", ("kernels", 0, "shape"), [1.0]),
        ("times", ("kernels", 0, "launches"), True),
        ("times", ("kernels", 0, "name"), "k"),
        ("times", ("findings",), None),
        ("idle", ("devices", 0, "busy_ns"), 10),
        ("idle", ("devices", 0, "gaps"), None),
        ("idle", ("findings",), [{"code": "GPA501"}]),
        ("strip", ("lanes", 0, "data"), "A"),
        ("strip", ("lanes", 0, "more"), 1),
        ("strip", ("names",), [["k"]]),
        ("strip", ("devices", 0, "span_ns"), 1),
    ],
)
def test_what_no_trace_says_is_not(
    what: str, path: tuple[Any, ...], value: object, answering: Answering
) -> None:
    ask, good = ASKED[what]
    answering(damage(document_of(good), *path, to=value))
    with pytest.raises(ProfileFormatError, match=r"the process that read run\.sqlite failed"):
        ask(PATH)


CONTEXTS = MeasuredContexts(
    metrics=("time", "count"),
    units=("ns", ""),
    places=(MeasuredPlace(-1, PlaceKind.HOST, "main"), MeasuredPlace(0, PlaceKind.KERNEL, "k", line=3)),
    own=((0.0, 1.0), (2.5, 3.0)),
)


def test_contexts_are_taken(answering: Answering) -> None:
    answering(document_of(CONTEXTS))
    assert measured_contexts(PATH) == CONTEXTS
    answering(document_of(Failure(error="SystemExit", message="why")))
    with pytest.raises(ProfileFormatError, match="why"):
        measured_contexts(PATH)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), None),
        (("metrics",), [1, 2]),
        (("metrics",), ["time"]),
        (("places", 0, "parent"), 0),
        (("places", 1, "parent"), -2),
        (("places", 1, "parent"), 1),
        (("places", 1, "kind"), "nothing"),
        (("places", 1, "line"), 3.0),
        (("own", 0), [0.0]),
        (("own", 0, 0), -1.0),
        (("own", 0, 0), math.inf),
        (("own", 0, 0), math.nan),
        (("own", 0, 0), "1"),
        (("own",), [[0.0, 1.0]]),
    ],
)
def test_contexts_that_are_none_are_not(path: tuple[Any, ...], value: object, answering: Answering) -> None:
    answering(damage(document_of(CONTEXTS), *path, to=value))
    with pytest.raises(ProfileFormatError, match=r"the process that read run\.sqlite failed"):
        measured_contexts(PATH)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"document": {}},
        {"document": [], "blobs": []},
        {"document": {}, "blobs": [["binaries", "0" * 64]]},
        {"document": {}, "blobs": [["binaries", "0" * 64, 1.0]]},
        {"document": {}, "blobs": [], "more": 1},
        {"error": 1, "message": ""},
        document_of(ReadProfile(document={}, blobs=())),  # columns are missing
    ],
)
def test_a_profile_that_is_none_is_not_taken(document: object, answering: Answering) -> None:
    answering(document)
    with (
        pytest.raises(ProfileFormatError, match=r"that read run\.sqlite failed: gave no sensible answer"),
        being_read(PATH, timeout_seconds=60, memory_bytes=4 << 30) as profile,
    ):
        profile()


def test_errors_of_a_reader_are_those_it_may_raise(answering: Answering) -> None:
    for name, kind, words in (
        ("ProfileError", ProfileError, "^why$"),
        ("NoRoom", ProfileError, r"cannot hold its parts \(why\)"),
        ("MemoryError", ProfileFormatError, "more than the 4 GiB"),
        ("SystemExit", ProfileFormatError, r"does not expect \(why\)"),
    ):
        answering(document_of(Failure(error=name, message="why")))
        with (
            pytest.raises(kind, match=words),
            being_read(PATH, timeout_seconds=60, memory_bytes=4 << 30) as profile,
        ):
            profile()


def summed() -> RankSum:
    return sum_isolated([(PATH, "run")], by=None, merge=False, keep_going=True, memory_bytes=1 << 20)


SUM = SumAnswer(bad={"run": "why"}, profiles=0, kernels=0, numbered=False)


def test_a_sum_is_taken(answering: Answering) -> None:
    answering(document_of(SUM))
    assert summed().bad == {"run": "why"}
    answering(document_of(Failure(error="UsageError", message="why")))
    with pytest.raises(UsageError, match=r"^why$"):
        summed()
    answering(document_of(Failure(error="SystemExit", message="why")))
    with pytest.raises(ProfileError, match=r"^why$"):
        summed()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), []),
        (("bad",), []),
        (("bad", "run"), 1),
        (("profiles",), "1"),
        (("profiles",), 1),  # no file has the sum
        (("kernels",), None),
        (("numbered",), 0),
        (("more",), 0),
    ],
)
def test_a_sum_that_is_none_is_not(path: tuple[Any, ...], value: object, answering: Answering) -> None:
    answering(damage(document_of(SUM), *path, to=value))
    with pytest.raises(ProfileError, match="the process that summed up 1 profiles failed"):
        summed()


def compiled(folder: Path) -> NvrtcResult:
    copy = Nvrtc(library=Path("libnvrtc.so"), major=13, headers=())
    return compile_by_nvrtc(
        copy,
        Path("a.cu"),
        "sm_90",
        (),
        directory=folder,
        folder=folder,
        timeout_seconds=60,
        memory_bytes=4 << 30,
        cancelled=None,
    )


ANSWER = NvrtcAnswer(version=(13, 0), architectures=(90,), log="no such header")


def test_what_nvrtc_says_is_taken(tmp_path: Path, answering: Answering) -> None:
    answering(document_of(ANSWER))
    result = compiled(tmp_path)
    assert (result.cubin, result.log, result.version) == (b"", "no such header", "13.0")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), None),
        (("version",), "13.0"),
        (("version",), [13]),
        (("architectures",), ["90"]),
        (("log",), None),
        (("status",), 0),
    ],
)
def test_what_nvrtc_does_not_say_is_not(
    path: tuple[Any, ...], value: object, tmp_path: Path, answering: Answering
) -> None:
    answering(damage(document_of(ANSWER), *path, to=value))
    with pytest.raises(ToolFailedError, match="gives no answer"):
        compiled(tmp_path)
