# SPDX-License-Identifier: Apache-2.0
"""Text that is compiled in place of a file: copies with the original's name, mirrored folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpadvisor.errors import SourceError
from gpadvisor.toolchain import stand_ins
from gpadvisor.toolchain.stand_ins import Overlay, mirror, write_stand_in


def test_a_copy_has_the_lines_and_the_name_of_the_original(tmp_path: Path) -> None:
    source = tmp_path / 'a "b".cu'
    copy = write_stand_in(source, "\ufeffint a;\r\nint ü;\r\n".encode(), tmp_path)
    assert copy.name == "source.cu", "nothing that a shell could take for anything but a name"
    (tmp_path / "other").mkdir()
    assert write_stand_in(tmp_path / "plain_1.cu", b"", tmp_path / "other").name == "plain_1.cu"
    assert not source.exists()
    named = str(source).replace('"', "_")
    assert copy.read_bytes() == f'#line 1 "{named}"\nint a;\r\nint ü;\r\n'.encode()


def test_a_mirror_holds_links_and_the_changed_file(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "src" / "a.cu").write_text("a")
    (root / "linked").symlink_to(root / "src")
    (root / "src" / "deep" / "b.cuh").write_text("b")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "c.h").write_text("c")
    folder = tmp_path / "mirror"
    folder.mkdir()
    overlay = mirror(root, folder, root / "src" / "deep" / "b.cuh", "changed")
    folder /= "project"
    assert (folder / ".." / "beside" / "c.h").read_text() == "c"
    assert (folder / "src" / "a.cu").is_symlink()
    assert (folder / "src" / "a.cu").read_text() == "a"
    assert (folder / "src" / "deep" / "b.cuh").read_text() == "changed"
    assert (root / "src" / "deep" / "b.cuh").read_text() == "b"
    assert (folder / "linked" / "a.cu").read_text() == "a"
    assert not (folder / ".git").exists()
    assert overlay.seen(root / "src" / "a.cu") == folder / "src" / "a.cu"
    assert overlay.seen(Path("/elsewhere/a.h")) == Path("/elsewhere/a.h")
    assert overlay.named(str(folder / "src" / ".." / "src" / "a.cu")) == str(root / "src" / "a.cu")
    assert overlay.named("/elsewhere/a.h") == "/elsewhere/a.h"


def test_options_name_what_is_seen(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "project", tmp_path / "mirror")
    options = (
        f"--include-path={tmp_path}/project/include",
        "--include-path=include",
        "--include-path=/usr/include",
        f"--define-macro=PLACE={tmp_path}/project/include",
        "--restrict",
    )
    assert overlay.options(options) == (f"--include-path={tmp_path}/mirror/include", *options[1:])


def test_a_folder_too_large_and_a_file_outside_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, folder = tmp_path / "project", tmp_path / "mirror"
    (root / ".git").mkdir(parents=True)
    folder.mkdir()
    for name in ("a.cu", "b.cu", "c.cu"):
        (root / name).write_text("x")
    with pytest.raises(SourceError, match="not among the files"):
        mirror(root, folder, root / ".git" / "a.cuh", "x")
    monkeypatch.setattr(stand_ins, "MAX_MIRRORED", 2)
    with pytest.raises(SourceError, match="more than 2 files"):
        mirror(root, tmp_path / "other", root / "a.cu", "x")
