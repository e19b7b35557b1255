# SPDX-License-Identifier: Apache-2.0
"""What tests share in a run is made once for each content, and is gone afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from tests.kept import ANSWERS, FOLDER, kept, kept_answers, kept_disassembler, kept_together
from tests.tools import program


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


def test_a_later_run_has_what_tools_said_for_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    tool, newer = tmp_path / "nvdisasm", tmp_path / "newer"
    tool.write_text("13.0")
    newer.write_text("13.1")
    made: list[str] = []

    def answered(said: str) -> bytes:
        made.append(said)
        return said.encode()

    def run(tool: Path) -> None:
        monkeypatch.setenv(ANSWERS, os.fspath(kept_answers(tool)))
        with kept_together():
            for of_tool in (True, False):
                kept(("a",), b"", partial(answered, f"{tool.name} {of_tool}"), of_tool=of_tool)

    run(tool)
    run(tool)
    run(newer)
    assert made == ["nvdisasm True", "nvdisasm False", "nvdisasm False", "newer True", "newer False"]
    (answer,) = kept_answers(tool).iterdir()
    os.utime(answer, (time.time() - 8 * 24 * 3600,) * 2)
    made.clear()
    run(tool)
    assert made == ["nvdisasm True", "nvdisasm False"]


@pytest.mark.parametrize(
    ("end", "times"), [("sys.exit(3)", 2), ("print(sys.argv[-1])", 6), ("os.abort()", 6)]
)
def test_a_disassembler_is_asked_once_but_where_it_crashes_or_names_its_file(
    tmp_path: Path, end: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ANSWERS, "")
    says = "print(sys.argv[1:-1], open(sys.argv[-1]).read(), flush=True); print('said', file=sys.stderr)"
    count = f"open({str(tmp_path / 'asked')!r}, 'a').write('x')"
    tool = program(tmp_path / "nvdisasm", f"{count}\n{says}\n{end}")
    for file in ("own", "other"):
        (tmp_path / file).write_text("code")
    with kept_together():
        kept_one = kept_disassembler(tool)
        for file, option in (("own", "-json"), ("other", "-json"), ("other", "-c")):
            asked, answer = (
                subprocess.run([one, option, "-x", tmp_path / file], capture_output=True, check=False)
                for one in (tool, kept_one)
            )
            assert (answer.returncode, answer.stdout) == (asked.returncode, asked.stdout)
            assert answer.stderr == asked.stderr
    assert len((tmp_path / "asked").read_text()) == 3 + times
