# SPDX-License-Identifier: Apache-2.0
"""Line numbers inside of sentences follow the text, and only those that are certain."""

from __future__ import annotations

from dataclasses import replace

from tests.editor_values import FILE, HEADER, SOURCE, file_analysis

from gpadvisor.editor.place.placing import PlacedFile, place
from gpadvisor.editor.show.line_references import references_today

FILES: dict[str, PlacedFile] = {FILE: place(file_analysis(), "// new\n" + SOURCE)}


def test_files_and_lines_are_those_of_today() -> None:
    said = "LDG at gather.cu:6 is used at gather.cu:7; the loop at line 5 (#pragma unroll 4)"
    assert references_today(said, FILE, FILES) == (
        "LDG at gather.cu:7 is used at gather.cu:8; the loop at line 6 (#pragma unroll 4)"
    )


def test_what_is_not_placed_stays() -> None:
    assert references_today("lib.cuh:3, line 3", HEADER, FILES) == "lib.cuh:3, line 3"
    assert references_today("line 3", None, FILES) == "line 3"


def test_a_name_that_two_files_have_is_left() -> None:
    other = place(replace(file_analysis(), path="/other/gather.cu"), SOURCE)
    assert references_today("gather.cu:6", FILE, {**FILES, other.path: other}) == "gather.cu:6"


def test_numbers_that_are_no_lines_stay() -> None:
    said = "1.5:1, 12 lines, sm_80:3, at 12:30, pipeline 4"
    assert references_today(said, FILE, FILES) == said
