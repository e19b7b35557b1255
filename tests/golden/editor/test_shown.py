# SPDX-License-Identifier: Apache-2.0
"""The words that an editor shows for one kernel, stored and reviewed as diffs: leading findings alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch

from gpadvisor.editor.contents.analysis import advise_and_show
from gpadvisor.editor.place.placing import place
from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.hints import hints
from gpadvisor.editor.show.hover import hover
from gpadvisor.editor.show.lenses import lenses
from gpadvisor.editor.show.options import Options
from gpadvisor.editor.show.status import status
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

pytestmark = pytest.mark.usefixtures("reads_here")


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_a_measured_kernel(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "run.ncu-rep"
    launch = sampled_launch("thermal_stencil")
    path.write_bytes(write_report([launch]))
    request = Request(settings=Settings(), root=tmp_path)
    value = advise_and_show(path, request, lambda _: None, Cache(None))[1]
    (file,) = value.files
    text = file.baseline or ""
    placed = place(file, text)
    files, options = {file.path: placed}, Options()
    shown = diagnostics(value, placed, files, options, text)
    lines = [status(value, [placed], datetime(2026, 11, 21, tzinfo=UTC)).text]
    lines += [f"{lens.line}: {lens.title}" for lens in lenses(value, placed, options)]
    lines += [f"{hint.line}: {hint.text}" for hint in hints(value, placed, files, options)]
    leading = {finding.id for finding in file.findings if finding.leads}
    for one in shown:
        if one.id not in leading:
            continue
        lines += ["", f"{one.line}:{one.start}-{one.end} {one.severity.value} {one.code} {one.message}"]
        lines += [f"    {entry.place.line}: {entry.message}" for entry in one.related[:1]]
    hottest = max(shown, key=lambda one: (one.severity.value == "warning", one.code == "GPA102"))
    lines += ["", hover(value, placed, hottest.line, files, options) or ""]
    assert "\n".join(lines) == snapshot
