# SPDX-License-Identifier: Apache-2.0
"""A run along the clock: every event is in its lane, gaps say what was done then, large runs get coarser."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from tests.host_traces import Host, write_host_trace
from tests.kernels import ROOT

from gpadvisor.advice.idleness import idleness
from gpadvisor.advice.strip import run_strip
from gpadvisor.cli import main
from gpadvisor.model.timeline import RunStrip, StripLane
from gpadvisor.store.timeline import read_timeline

pytestmark = pytest.mark.usefixtures("reads_here")

DEMO = ROOT / "server" / "gpadvisor" / "cli" / "data" / "demo"
Row = tuple[int, int, str]


def rows(strip: RunStrip, lane: StripLane) -> list[Row]:
    """Start, end and name of each event, as a reader of the format has them."""
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(lane.data):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    found, start = [], 0
    for since, length, name in np.reshape(numbers, (-1, 3)).tolist():
        start += since
        found.append((start, start + length, strip.names[name][0]))
    assert len(found) == lane.events
    return found


def one_run(steps: int = 30) -> Host:
    host = Host(name="matmul")
    for step in range(steps):
        host.call("cudaMemcpyAsync", 3_000, "load", 1, copy=(20_000, "HtoD", True), stream=7)
        host.call("cudaLaunchKernel", 5_000, "step", 2, kernel=40_000 + 100 * step, stream=7)
        host.call("cudaLaunchKernel", 5_000, "step", 3, kernel=30_000, stream=8)
        host.wait("cudaDeviceSynchronize", "step", 4)
        host.run(15_000)
    return host


@pytest.mark.parametrize("kind", ["sqlite", "json"])
def test_every_event_is_in_its_lane(tmp_path: Path, kind: str) -> None:
    host = one_run()
    strip = run_strip(read_timeline(write_host_trace(tmp_path / f"run.{kind}", host)))
    origin = min(host.calls[0].start, host.work[0].start)
    lanes = {lane.label: rows(strip, lane) for lane in strip.lanes}
    assert [lane.kind for lane in strip.lanes] == ["idle", "stream", "stream", "thread"]
    for stream in (7, 8):
        expected = [
            (one.start - origin, one.end - origin, "copy to the GPU" if one.copy else "matmul")
            for one in host.work
            if one.stream == stream
        ]
        assert lanes[f"GPU 0, stream {stream}"] == expected
    (thread,) = (found for label, found in lanes.items() if label.startswith("thread"))
    assert thread == [(one.start - origin, one.end - origin, one.name) for one in host.calls]
    assert (strip.merged_ns, strip.left_out) == (0, 0)


def test_gaps_are_the_idle_time_with_most_of_what_was_done(tmp_path: Path) -> None:
    timeline = read_timeline(write_host_trace(tmp_path / "run.sqlite", one_run()))
    strip = run_strip(timeline)
    (lane,) = (one for one in strip.lanes if one.kind == "idle")
    gaps = rows(strip, lane)
    (device,) = idleness(timeline)
    assert sum(end - start for start, end, _ in gaps) == device.idle_ns
    assert len(gaps) == device.gaps
    # 2 us until the wait returns, 15 of the application, 3 of the copy's launch.
    assert {name for _, _, name in gaps} == {"application code"}


def test_a_run_with_more_events_gets_coarser_and_loses_no_time(tmp_path: Path) -> None:
    timeline = read_timeline(write_host_trace(tmp_path / "run.sqlite", one_run(200)))
    whole, coarse = run_strip(timeline), run_strip(timeline, most=100)
    assert sum(lane.events for lane in coarse.lanes) <= 100
    assert coarse.merged_ns > 0
    for before, after in zip(whole.lanes, coarse.lanes, strict=True):
        small, large = rows(whole, before), rows(coarse, after)
        assert (large[0][0], max(end for _, end, _ in large)) == (small[0][0], max(e for _, e, _ in small))
        for start, end, _ in small:
            assert any(first <= start and end <= last for first, last, _ in large)
        assert {name for *_, name in large} & {"several, close together"}


def test_the_page_has_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write_host_trace(tmp_path / "run.sqlite", one_run())
    page = tmp_path / "page.html"
    assert main(["advise", str(DEMO), "--timeline", str(trace), "--format", "html", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    start = text.index('id="gpadvisor-data">') + len('id="gpadvisor-data">')
    document = json.loads(text[start : text.index("</script>", start)])
    assert document["run"]["trace"] == "run.sqlite"
    assert [lane["label"] for lane in document["run"]["lanes"]][:2] == ["GPU 0 idle", "GPU 0, stream 7"]
    assert document["run"]["devices"][0]["gaps"] == 29
    assert document["advice"]["kernels"][0]["run"]["trace"] == "run.sqlite"
    assert [one["code"] for one in document["advice"]["run_findings"]][:1] == ["GPA501"]
    assert main(["advise", str(DEMO), "--format", "html", "-o", str(page)]) == 0
    assert '"run":null' in page.read_text(encoding="utf-8")
