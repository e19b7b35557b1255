# SPDX-License-Identifier: Apache-2.0
"""Which changes of sources on disk matter to a profile that was read before."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editor_values import analysis, file_analysis

from gpadvisor.editor.place.remarks import remarks
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.outdated import is_outdated_by
from gpadvisor.lsp.profiles import Profiles
from gpadvisor.lsp.server import Server

TEXT = "a = b * 2.0;\n"
COMMENTED = "a = b * 2.0;  // gpadvisor: ignore[GPA102] exact\n"


def _is_outdated_by(local: Path | None, changed: Path) -> bool:
    file = file_analysis(
        path="/src/kernel.cu", local=None if local is None else str(local), remarks=remarks(TEXT)
    )
    return is_outdated_by(analysis(files=(file,)), str(changed))


@pytest.mark.parametrize(("text", "expected"), [("a = c;\n", False), (COMMENTED, True)])
def test_comments_matter_and_code_does_not(text: str, expected: bool, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(text, encoding="utf-8")
    assert _is_outdated_by(source, source) is expected


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    source, other = tmp_path / "kernel.cu", tmp_path / "other.cu"
    source.write_text(TEXT, encoding="utf-8")
    other.write_text(COMMENTED, encoding="utf-8")
    assert not _is_outdated_by(source, other)


def test_a_source_that_is_gone_may_be_the_one_that_came(tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.cu"
    renamed.write_text(TEXT, encoding="utf-8")
    assert _is_outdated_by(tmp_path / "kernel.cu", renamed)


def test_a_source_that_was_missed_is_looked_for_under_its_name(tmp_path: Path) -> None:
    assert _is_outdated_by(None, tmp_path / "kernel.cu")
    assert not _is_outdated_by(None, tmp_path / "other.cu")


@pytest.mark.asyncio
async def test_a_profile_is_not_read_again_at_each_save_of_a_source_it_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two files have the name, and neither is taken; one that is taken is asked about each time."""
    source = tmp_path / "kernel.cu"
    source.write_text(COMMENTED, encoding="utf-8")
    session, read = Server().session, []

    def put(local: str | None) -> None:
        file = file_analysis(path="/src/kernel.cu", local=local, remarks=remarks(TEXT))
        session.state.put(
            Entry(key="profile:run", analysis=analysis(files=(file,)), is_profile=True, age=1.0)
        )

    monkeypatch.setattr(Profiles, "read", lambda _self, path, **_: read.append(path))
    for local, times in ((None, 1), (str(source), 3)):
        put(local)
        read.clear()
        for _ in range(3):
            await session.profiles._source_changed(str(source))
        assert len(read) == times
