# SPDX-License-Identifier: Apache-2.0
"""A sentence reads as a string, and tells its lines by values."""

from __future__ import annotations

import json

import pytest
from tests.editor_values import finding

from gpadvisor.model.finding import Finding
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence, capitalised, joined, line_mark, lines_of, uncapitalised
from gpadvisor.report.words import cleaned
from gpadvisor.sandbox.codec import from_json, to_json

USE = SourceLocation("/src/gather.cu", 7)
LOOP = SourceLocation("/src/gather.cu", 5)
SAID = Sentence(f"used at {line_mark(USE)}, in the loop of line {line_mark(LOOP, with_file=False)}")


def test_it_reads_as_a_string_and_knows_its_lines() -> None:
    assert SAID == "used at gather.cu:7, in the loop of line 5"
    assert lines_of(SAID) == (USE, LOOP)
    assert Sentence(SAID) is SAID


def test_lines_are_told_as_they_are_today() -> None:
    today = {USE: "9"}
    assert SAID.at(today.get) == "used at gather.cu:9, in the loop of line 5"
    assert joined([SAID, "done"]).at(today.get) == "used at gather.cu:9, in the loop of line 5; done"


def test_they_cross_the_border_of_a_process_and_are_cleaned_with_the_words() -> None:
    value = finding(advice=SAID)
    back = from_json(json.loads(json.dumps(to_json(value))), Finding)
    assert back == value
    assert lines_of(cleaned(back).advice) == (USE, LOOP)
    line = line_mark(SourceLocation("a\x1b.cu", 1))
    hostile = Sentence(f"\x1b[31m {line}")
    assert cleaned(finding(advice=hostile)).advice == "\\x1b[31m a\\x1b.cu:1"


def test_strings_of_others_make_no_line() -> None:
    for text in ("\x02gather.cu:7", "\x02gather.cu:x\x1f/src\x03", "a\x03b\x1fc", "\x02\x03"):
        assert lines_of(text) == ()
    assert Sentence("of \x02gather.cu:x\x1f/src\x03 only") == "of gather.cu:x/src only"


@pytest.mark.parametrize(
    ("text", "begun", "inside"),
    [
        ("unroll the Loop", "Unroll the Loop", "unroll the Loop"),
        ("Unroll it. Then", "Unroll it. Then", "unroll it. Then"),
        ("", "", ""),
    ],
)
def test_the_first_letter_says_whether_a_sentence_begins(text: str, begun: str, inside: str) -> None:
    assert (capitalised(text), uncapitalised(text)) == (begun, inside)
