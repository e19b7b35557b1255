# SPDX-License-Identifier: Apache-2.0
"""Paths of another machine matched to files of this one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.model.profile import SourceText
from gpadvisor.source.matching import (
    LocalFile,
    PathMapping,
    mapped_paths,
    match_sources,
    path_parts,
)


def match(
    path: str, *local: LocalFile | str, sha: str | None = None, text: str | None = None, maps: str = ""
) -> tuple[str | None, str]:
    files = [LocalFile(file, None) if isinstance(file, str) else file for file in local]
    mappings = [PathMapping(*maps.split("="))] if maps else []
    (found,) = match_sources([SourceText(path=path, sha256=sha, text=text)], files, mappings)
    assert found.report_path == path
    return found.local_path, found.how


def test_content_beats_a_longer_path() -> None:
    renamed, namesake = LocalFile("renamed.cu", "aa"), LocalFile("src/k.cu", "bb")
    assert match("/build/src/k.cu", renamed, namesake, sha="aa") == ("renamed.cu", "content hash")


def test_of_copies_the_one_with_the_longest_suffix() -> None:
    copies = [LocalFile("old/k.cu", "aa"), LocalFile("src/k.cu", "aa")]
    assert match("/build/src/k.cu", *copies, sha="aa") == ("src/k.cu", "content hash")


def test_copies_that_differ_in_nothing_are_ambiguous() -> None:
    copies = [LocalFile("old/k.cu", "aa"), LocalFile("new/k.cu", "aa")]
    assert match("/build/src/k.cu", *copies, sha="aa") == (None, "ambiguous")


def test_the_same_path() -> None:
    assert match("/build/src/k.cu", "/build/src/k.cu", "/other/src/k.cu") == ("/build/src/k.cu", "exact path")
    assert match("./src/../src/k.cu", "src/k.cu") == ("src/k.cu", "exact path")


def test_the_longest_suffix() -> None:
    assert match("/build/gpu/k.cu", "cpu/k.cu", "x/gpu/k.cu") == ("x/gpu/k.cu", "path suffix")


def test_a_suffix_of_components_not_of_letters() -> None:
    assert match("/build/k.cu", "mask.cu") == (None, "unmatched")


def test_two_equally_long_suffixes_are_ambiguous() -> None:
    assert match("/build/k.cu", "a/k.cu", "b/k.cu") == (None, "ambiguous")


def test_a_mapping_settles_what_is_ambiguous() -> None:
    found = match("/build/k.cu", "a/k.cu", "b/k.cu", maps="/build=b")
    assert found == ("b/k.cu", "source map")


def test_a_mapping_finds_what_no_suffix_does() -> None:
    assert match("/build/k.cu", "src/k2.cu", maps="/build/k.cu=src/k2.cu") == ("src/k2.cu", "source map")
    assert match("/build/k.cu", "src/k2.cu", maps="/elsewhere=src") == (None, "unmatched")


def test_a_file_that_was_edited_since_is_said_to_differ() -> None:
    found = match("/build/k.cu", LocalFile("k.cu", "bb"), sha="aa")
    assert found == ("k.cu", "path suffix, content differs")


def test_without_a_file_the_embedded_text_is_left() -> None:
    assert match("/build/k.cu", text="int x;") == (None, "embedded")
    assert match("/build/k.cu") == (None, "unmatched")


def test_windows_paths() -> None:
    assert match(r"C:\Users\Kim\Src\K.CU", "src/k.cu", "other/k.cu") == ("src/k.cu", "path suffix")
    assert match(r"src\k.cu", "src/k.cu") == ("src/k.cu", "exact path")
    assert match(r"C:\work\k.cu", "/mnt/k2/k.cu", "x/k.cu", maps=r"c:\WORK=x") == ("x/k.cu", "source map")


def test_letters_differ_by_case_elsewhere() -> None:
    assert match("/build/Src/k.cu", "src/k.cu", "other/k.cu") == (None, "ambiguous")


def test_one_file_listed_twice_is_one_file() -> None:
    assert match("/build/k.cu", "./a/k.cu", "a/k.cu") == ("./a/k.cu", "path suffix")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/./b//c.cu", ("/", "a", "b", "c.cu")),
        ("/a/../../b.cu", ("/", "b.cu")),
        ("../b.cu", ("..", "b.cu")),
        (r"D:\a\..\b.cu", ("D:", "b.cu")),
        (r"\\host\share\b.cu", ("/", "host", "share", "b.cu")),
        (r"/a/b\c.cu", ("/", "a", r"b\c.cu")),
        ("", ()),
        (".", ()),
    ],
)
def test_components(path: str, parts: tuple[str, ...]) -> None:
    assert path_parts(path) == parts


def test_the_most_specific_mapping_comes_first() -> None:
    mappings = [PathMapping("/build", "x"), PathMapping("/build/gpu", "y/"), PathMapping("/builds", "z")]
    assert mapped_paths("/build/gpu/k.cu", mappings) == ("y/k.cu", "x/gpu/k.cu")


def test_an_empty_target_is_the_current_folder() -> None:
    assert mapped_paths("/build/k.cu", [PathMapping("/build", ".")]) == ("./k.cu",)
    assert mapped_paths("/build/k.cu", [PathMapping("/build", "/")]) == ("/k.cu",)


names = st.sampled_from(["a", "b", "src", "k.cu", "K.cu", "..", ".", ""])
paths = st.lists(names, max_size=5).map("/".join)


@given(path=paths, local=st.lists(paths, max_size=6))
def test_a_match_is_one_of_the_files_and_ends_alike(path: str, local: list[str]) -> None:
    found, method = match(path, *local)
    if found is None:
        assert method in {"ambiguous", "unmatched"}
    else:
        assert found in local
        assert path_parts(found)[-1] == path_parts(path)[-1]


@given(path=paths, local=st.lists(paths, max_size=6))
def test_the_order_of_the_files_does_not_matter(path: str, local: list[str]) -> None:
    found, method = match(path, *local)
    again, method_again = match(path, *reversed(local))
    assert method == method_again
    assert (found is None) == (again is None)
    if found is not None and again is not None:
        assert path_parts(found) == path_parts(again)
