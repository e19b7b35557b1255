# SPDX-License-Identifier: Apache-2.0
"""Damaged reports and snapshots give a profile or one sentence, never another exception."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ncu_writer import FrameSpec, LaunchSpec, RuleSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileError
from gpadvisor.store.load import load_bytes
from gpadvisor.store.ncu import metrics, wire
from gpadvisor.store.snapshot import snapshot_bytes

SPEC = LaunchSpec(
    kernel="k",
    cubin=tiny_cubin({"k": [("helper", 32)], "other": []}),
    samples={("k", 64, "wait"): (300, 1), ("other", 16, "selected"): (4, 0)},
    counts={("k", 0): (1, 32)},
    pc_metrics={"memory_type": {("k", 0): 1.0}},
    reasons=["wait"],
    rules=[RuleSpec(identifier="a", message="b", speedup_percent=3.0)],
    call_stack=[FrameSpec(module="m", address=1, function="f")],
    sources={"a.cu": "text"},
)
WRITTEN = {
    "int": write_report([SPEC, SPEC]),
    "float": write_report([SPEC], numbers="float", layout="loaded", family="warp_stall"),
}
EXTREMES = [b"\xff\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\x80" * 11, b"\x01\x00\x00\x00"]


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[str, float, bytes]]:
    """Edits at places given as shares of the length, so that they fit any file."""
    edit = st.tuples(
        st.sampled_from(["put", "insert", "delete", "copy"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=6) | st.sampled_from(EXTREMES),
    )
    return draw(st.lists(edit, min_size=1, max_size=6))


def mutated(data: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    out = bytearray(data)
    for kind, share, content in edits:
        at = int(share * len(out))
        if kind == "put":
            out[at : at + len(content)] = content
        elif kind == "insert":
            out[at:at] = content
        elif kind == "delete":
            del out[at : at + len(content)]
        else:
            out[at:at] = out[at : at + 64 * len(content)]
    return bytes(out)


def check(data: bytes) -> None:
    profile = error = None
    try:
        profile = load_bytes(data)
    except ProfileError as caught:
        error = str(caught)
    if profile is None:
        assert error
        assert "\n" not in error
        return
    for kernel in profile.kernels:
        assert (kernel.samples.latency <= kernel.samples.total).all()
        assert kernel.samples.reason.max(initial=0) < max(len(kernel.reasons), 1)


@settings(max_examples=300)
@given(st.sampled_from(sorted(WRITTEN)), mutations())
def test_written_reports(name: str, edits: list[tuple[str, float, bytes]]) -> None:
    check(mutated(WRITTEN[name], edits))


@given(mutations())
def test_compressed_reports(edits: list[tuple[str, float, bytes]]) -> None:
    check(mutated(zstandard.ZstdCompressor().compress(WRITTEN["int"]), edits))


@functools.cache
def _snapshot() -> bytes:
    return snapshot_bytes(load_bytes(WRITTEN["int"]))


@given(mutations())
def test_snapshots(edits: list[tuple[str, float, bytes]]) -> None:
    check(mutated(_snapshot(), edits))


@settings(max_examples=40)
@given(st.data())
def test_snapshots_with_a_damaged_member(data: st.DataObject) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_snapshot())) as archive:
        victim = data.draw(st.sampled_from(archive.namelist()))
        with zipfile.ZipFile(out, "w") as copy:
            for name in archive.namelist():
                content = archive.read(name)
                copy.writestr(name, mutated(content, data.draw(mutations())) if name == victim else content)
    check(out.getvalue())


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    check(data)
    check(b"NVR\0" + data)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_message(data: bytes) -> None:
    for decode in (wire.parse, metrics.decode_metric, metrics.decode_instances, metrics.decode_value):
        with contextlib.suppress(wire.WireError):
            decode(data)


@st.composite
def instance_rows(draw: st.DrawFn) -> list[tuple[int, int | float]]:
    numbers = st.integers(0, (1 << 64) - 1)
    values = draw(
        st.sampled_from([numbers, st.floats(allow_nan=False), numbers | st.floats(allow_nan=False)])
    )
    return draw(st.lists(st.tuples(numbers, values), max_size=20))


@given(instance_rows())
def test_columns_and_single_decoding_agree(rows: list[tuple[int, int | float]]) -> None:
    from tests.ncu_writer import _Writer

    writer = _Writer("relocation", "int", "warp_stall", True, None, "app")  # type: ignore[arg-type] # unused here
    encoded = writer.metric("name", None, rows)
    found = metrics.decode_instances(encoded)
    starts, ends = metrics._instance_bounds(encoded)
    slow = metrics._slow_instances(encoded, starts, ends)
    assert list(found.ids) == list(slow.ids) == [key for key, _ in rows]
    assert list(found.values) == list(slow.values)


FOLDER = os.environ.get("GPADVISOR_REPORTS")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep*")) if FOLDER else []


@pytest.mark.reports
@settings(max_examples=25)
@given(mutations(), st.integers(0, 1 << 16))
def test_real_reports(edits: list[tuple[str, float, bytes]], choice: int) -> None:
    check(mutated(_content(REPORTS[choice % len(REPORTS)]), edits))


@functools.cache
def _content(path: Path) -> bytes:
    return path.read_bytes()
