# SPDX-License-Identifier: Apache-2.0
"""Lines that sentences name follow the text, and only those that are certain."""

from __future__ import annotations

from dataclasses import replace

from tests.editor_values import FILE, HEADER, SOURCE, file_analysis

from gpadvisor.editor.place.placing import PlacedFile, lines_today, place
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence, line_mark

FILES: dict[str, PlacedFile] = {FILE: place(file_analysis(), "// new\n" + SOURCE)}


def _at(line: int, file: str = FILE, *, with_file: bool = True) -> str:
    return line_mark(SourceLocation(file, line), with_file=with_file)


def test_files_and_lines_are_those_of_today() -> None:
    said = Sentence(
        f"LDG at {_at(6)} is used at {_at(7)}; the loop at line {_at(5, with_file=False)} (#pragma unroll 4)"
    )
    assert said == "LDG at gather.cu:6 is used at gather.cu:7; the loop at line 5 (#pragma unroll 4)"
    assert said.at(lines_today(FILES)) == (
        "LDG at gather.cu:7 is used at gather.cu:8; the loop at line 6 (#pragma unroll 4)"
    )


def test_what_is_not_placed_stays() -> None:
    said = Sentence(f"{_at(3, HEADER)}, line {_at(3, HEADER, with_file=False)}")
    assert said.at(lines_today(FILES)) == said == "lib.cuh:3, line 3"


def test_another_spelling_of_a_path_is_followed_where_one_file_has_its_name() -> None:
    said = Sentence(_at(6, "/build/../src/gather.cu"))
    assert said.at(lines_today(FILES)) == "gather.cu:7"
    other = place(replace(file_analysis(), path="/other/gather.cu"), SOURCE)
    assert said.at(lines_today({**FILES, other.path: other})) == "gather.cu:6"


def test_words_that_only_look_like_lines_stay() -> None:
    said = Sentence(f"gather.cu:6, line 6, 1.5:1, at 12:30: {_at(6)}")
    assert said.at(lines_today(FILES)) == "gather.cu:6, line 6, 1.5:1, at 12:30: gather.cu:7"
