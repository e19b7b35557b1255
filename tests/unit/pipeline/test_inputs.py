# SPDX-License-Identifier: Apache-2.0
"""Collections of the cupti collector as inputs: recognised, hashed as a whole, analysed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import collection_writer as made
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError, UsageError
from gpadvisor.pipeline.formats import RenderOptions
from gpadvisor.pipeline.inputs import InputKind, input_bytes, input_digest, input_kind
from gpadvisor.pipeline.render import render_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.snapshots import import_profile

IMAGE = tiny_cubin({"add": []})
REASONS = [(1, "smsp__pcsamp_warps_issue_stalled_long_scoreboard")]


def _collection(folder: Path, *, samples: int = 30) -> Path:
    body = made.segment(
        [
            made.process(),
            *(made.device(), made.context(), made.reasons(REASONS), made.module(IMAGE), made.name("add")),
            *(made.launch("add", 1), made.kernel("add", 1)),
            made.samples([(77, 16, "add", 0, 1, samples)]),
        ]
    )
    return made.write(folder, made.header() + body, images=[IMAGE])


def test_a_collection_is_a_profile(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "c")
    assert input_kind(folder) is InputKind.PROFILE
    assert input_kind(next(folder.glob("*.gpacupti"))) is InputKind.PROFILE
    with pytest.raises(ProfileFormatError, match="is a folder and no collection"):
        input_kind(tmp_path)


def test_every_file_of_a_collection_is_in_its_digest(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "c")
    file = next(folder.glob("*.gpacupti"))
    first, alone = input_digest(folder), input_digest(file)
    assert input_bytes(folder) == file.stat().st_size + len(IMAGE)
    (folder / "notes.txt").write_text("not of the collection")
    (folder / "cubins" / "link.cubin").symlink_to(file)
    os.mkfifo(folder / "pipe.gpacupti")  # reading it would never end
    assert (input_digest(folder), input_digest(file)) == (first, alone)
    (folder / "host-lines.json").write_text("{}")
    assert input_digest(folder) != first
    assert input_digest(file) != alone


@pytest.mark.nvdisasm
def test_advice_on_a_collection_changes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    folder = _collection(tmp_path / "c")
    shown = RenderOptions(format="json", width=100, color=False, use_cache=True)
    request = Request(settings=Settings(), root=tmp_path)

    def advice() -> str:
        return render_file(folder, request, shown, lambda _: None).text

    cold = advice()
    assert '"add"' in cold
    assert advice() == cold
    _collection(folder, samples=60)
    assert advice() != cold
    with pytest.raises(UsageError, match="'yaml' is no format; text, json, sarif, codequality, markdown are"):
        render_file(folder, request, shown._replace(format="yaml"), lambda _: None)


def test_a_collection_becomes_a_snapshot(tmp_path: Path) -> None:
    folder, target = _collection(tmp_path / "c"), tmp_path / "run.gpadvisor"
    done = import_profile(
        folder, target, Request(settings=Settings(), root=tmp_path), redact=False, progress=lambda _: None
    )
    assert (done.samples, done.kernels) == (30, 1)
    assert done.report_bytes == input_bytes(folder)
    assert input_kind(target) is InputKind.PROFILE
