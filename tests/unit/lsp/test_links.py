# SPDX-License-Identifier: Apache-2.0
"""Folders and documents that the client reaches through links."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.lsp.paths import file_path
from gpadvisor.lsp.state import State


def test_files_of_a_linked_folder_have_the_clients_names(tmp_path: Path) -> None:
    """Else each would stand in the editor's list of problems twice."""
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "real" / "src" / "a b.cu").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    state = State()
    state.set_folders([(tmp_path / "link").as_uri()])
    path = file_path((tmp_path / "link" / "src" / "a b.cu").as_uri())
    assert path == str(tmp_path / "real" / "src" / "a b.cu")
    assert state.now.uri_of(path) == (tmp_path / "link" / "src" / "a b.cu").as_uri()
    outside = str(tmp_path / "other.cu")
    assert state.now.uri_of(outside) == (tmp_path / "other.cu").as_uri()


def test_an_open_document_keeps_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("", encoding="utf-8")
    (tmp_path / "b.cu").symlink_to(tmp_path / "a.cu")
    state = State()
    state.set_folders([tmp_path.as_uri()])
    document = state.open((tmp_path / "b.cu").as_uri(), "", 1)
    assert document is not None
    assert state.now.uri_of(document.path) == (tmp_path / "b.cu").as_uri()


def test_a_link_belongs_to_the_folder_that_it_is_in(tmp_path: Path) -> None:
    """With its settings: the file that it leads to may be anywhere."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "a.cu").write_text("", encoding="utf-8")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "b.cu").symlink_to(tmp_path / "shared" / "a.cu")
    state = State()
    (folder,) = state.set_folders([(tmp_path / "project").as_uri()])
    document = state.open((tmp_path / "project" / "b.cu").as_uri(), "", 1)
    assert document is not None
    assert state.now.folder_of(document.path) == folder
    state.close(document.uri)
    assert state.now.folder_of(document.path) != folder
