# SPDX-License-Identifier: Apache-2.0
"""Damaged collection files: a profile or one sentence, never anything else."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import collection_writer as made
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.collection.layout import RecordKind
from gpadvisor.store.load import load_profile

IMAGE = tiny_cubin({"add": []})
RECORDS = [
    made.process(),
    made.device(),
    made.context(),
    made.reasons([(1, "smsp__pcsamp_warps_issue_stalled_wait")]),
    made.module(IMAGE),
    made.name("add"),
    made.launch("add", 4),
    made.kernel("add", 4),
    made.samples([(77, 16, "add", 0, 1, 3)]),
    made.note(5, 35),
]
GOOD = made.header() + made.segment(RECORDS)
USED = len(made.header()) + sum(map(len, RECORDS)) + 16


def _read(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = made.write(Path(place) / "c", data, images=[IMAGE])
        with contextlib.suppress(ProfileFormatError):
            assert load_profile(folder).collector == "cupti"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, USED), st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(GOOD)
    for at, value in changes:
        data[at] = value
    _read(bytes(data))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(GOOD)))
def test_cut_anywhere(size: int) -> None:
    _read(GOOD[:size])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*RecordKind, 99]), st.binary(max_size=200)), max_size=6))
def test_records_of_any_content(records: list[tuple[int, bytes]]) -> None:
    """Checksums are right here, so that every reader of a record meets bytes that nobody wrote for it."""
    _read(made.header() + made.segment([*RECORDS[:6], *(made.record(kind, body) for kind, body in records)]))
