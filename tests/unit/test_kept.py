# SPDX-License-Identifier: Apache-2.0
"""What tests share in a run is made once for each content, and is gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kept import FOLDER, kept, kept_together


def test_the_processes_of_a_run_have_a_folder() -> None:
    assert Path(os.environ[FOLDER]).is_dir()


def test_an_answer_is_made_once_for_each_question_and_content() -> None:
    made: list[str] = []

    def answer(asked: str, content: bytes) -> bytes:
        def make() -> bytes:
            made.append(asked)
            return asked.encode() + content

        return kept((asked,), content, make)

    run = os.environ[FOLDER]
    with kept_together():
        for _ in range(2):
            assert answer("a", b"1") == b"a1"
            assert answer("a", b"2") == b"a2"
            assert answer("b", b"1") == b"b1"
        own = Path(os.environ[FOLDER])
        assert len(list(own.iterdir())) == 3
    assert made == ["a", "a", "b"]
    assert not own.exists()
    assert os.environ[FOLDER] == run
