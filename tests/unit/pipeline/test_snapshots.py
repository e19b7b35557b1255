# SPDX-License-Identifier: Apache-2.0
"""Reports that become snapshots, and those that have nothing to become one of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ncu_writer import write_report

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.snapshots import import_profile


def test_a_report_of_ranges_becomes_a_sentence_and_no_snapshot(tmp_path: Path) -> None:
    source, target = tmp_path / "range.ncu-rep", tmp_path / "range.gpadvisor"
    source.write_bytes(write_report([], others={7: 2}))
    with pytest.raises(ProfileMismatchError, match=r"2 ranges, measured as a whole.* --replay-mode kernel"):
        import_profile(
            source, target, Request(settings=Settings(), root=tmp_path), redact=False, progress=lambda _: None
        )
    assert not target.exists()
