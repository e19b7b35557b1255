# SPDX-License-Identifier: Apache-2.0
"""Sources parsed in a child process: the same facts, and only a problem where the child fails."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests import advice_values as values
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch

from gpadvisor.cli import main
from gpadvisor.errors import ToolFailedError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.pipeline.sources import facts as module
from gpadvisor.pipeline.sources.facts import read_source_facts
from gpadvisor.sandbox import children
from gpadvisor.source.facts import SourceFacts
from gpadvisor.source.reading import source_facts

MARKED = "__global__ void k(float *a) {\n  a[0] = 0.5 / a[1]; // gpadvisor: ignore[GPA102] exact\n}\n"


def child_that(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something else stand where Python is started."""
    script = folder / "child.py"
    script.write_text(body)
    start = folder / "python"
    start.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    start.chmod(0o755)
    monkeypatch.setattr(children.sys, "executable", str(start))


def problem_with(sources: set[module.Source], **limits: float) -> str:
    facts, problems = read_source_facts(sources, **limits)  # type: ignore[arg-type]  # both limits are numbers
    (problem,) = problems
    assert facts == {}
    assert problem.code is ProblemCode.SOURCE_NOT_READ
    return problem.message


def test_what_was_begun_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.cu"
    path.write_text(MARKED)
    module.begin_reading(path)
    ((_, future),) = module._begun.items()
    assert future.result() == source_facts("a.cu", MARKED)
    child_that("import sys; sys.exit(1)", tmp_path, monkeypatch)
    assert read_source_facts({("/src/a.cu", MARKED)}) == ({("/src/a.cu", MARKED): future.result()}, ())
    problem_with({("/src/a.cu", MARKED)})
    module.begin_reading(path)
    problem_with({("/src/a.cu", MARKED)})
    module.begin_reading(tmp_path / "none.cu")
    assert not module._begun


def test_the_facts_are_those_of_the_same_process() -> None:
    sources = {
        ("a.cu", MARKED),
        ("a.cu", MARKED.replace("0.5", "0.25")),
        ("k.py", "x = 1  # gpadvisor: ignore[GPA101] y\n"),
        ("odd.cu", "\ud800\x00 for (;;) \u2028 0.5;\r\n\x0c"),
        *values.SOURCES.items(),
    }
    facts, problems = read_source_facts(sources)
    assert problems == ()
    assert facts == {(path, text): source_facts(path, text) for path, text in sources}
    assert facts["a.cu", MARKED].comments[0].reason == "exact"


def test_without_sources_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "run_tool", pytest.fail)
    assert read_source_facts(()) == ({}, ())


def test_huge_lines_end_within_the_limits() -> None:
    line = "void f() { x = " + "((0.5 / y) % z) + " * 50_000 + "1; } // gpadvisor: ignore[GPA102] generated"
    facts, problems = read_source_facts({("a.cu", line)})
    assert problems == ()
    assert [comment.line for comment in facts["a.cu", line].comments] == [1]


def test_a_child_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child_that("import os\nos.kill(os.getpid(), 11)\n", tmp_path, monkeypatch)
    assert "that parses a.cu failed" in problem_with({("a.cu", MARKED)})


def test_a_child_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    child_that(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n",
        tmp_path,
        monkeypatch,
    )
    begun = time.monotonic()
    assert "took longer than 1 s and was stopped" in problem_with({("a.cu", MARKED)}, timeout_seconds=1)
    assert time.monotonic() - begun < 100
    noted = pid.read_text() if pid.exists() else ""  # it may have been stopped before it got so far
    assert not noted or not Path(f"/proc/{noted}").exists()


def test_a_child_without_memory() -> None:
    assert "failed" in problem_with({("a.cu", MARKED)}, memory_bytes=1 << 20)


LOOP = '{"line": 1, "last_line": 1, "unroll": null}'
SIZE = '{"text": "N", "line": 1}'


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "facts",
        "[]",
        "{}",
        "[" * 100_000,
        "[{}, {}]",
        "[[]]",
        '[{"more": []}]',
        '[{"divisions": [{"text": "0.5", "line": 0}]}]',
        '[{"divisions": [{"text": "0.5", "line": 5}]}]',
        '[{"divisions": [{"text": "0.5", "line": true}]}]',
        '[{"divisions": [{"text": "0.5", "line": 1.0}]}]',
        '[{"divisions": [{"text": 5, "line": 1}]}]',
        f'[{{"divisions": [{{"text": "{"x" * 61}", "line": 1}}]}}]',
        '[{"comments": [{"codes": ["all"], "reason": "", "line": 1, "first_line": 1, "last_line": 1}]}]',
        '[{"loops": [{"line": 2, "last_line": 1, "unroll": null}]}]',
        f'[{{"loops": [{", ".join([LOOP] * 10_001)}]}}]',
        f'[{{"launches": [{{"kernel": "k", "line": 1, "sizes": [{", ".join([SIZE] * 4)}]}}]}}]',
        '[{"launches": [{"kernel": "k", "line": 1, "sizes": [{"text": "N", "line": 9}]}]}]',
    ],
)
def test_a_child_that_answers_nonsense(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answer").write_text(answer)
    copy = f"import shutil, sys\nshutil.copyfile({str(tmp_path / 'answer')!r}, sys.argv[-3])\n"
    child_that(copy, tmp_path, monkeypatch)
    assert "gave no sensible answer" in problem_with({("a.cu", MARKED)})


def test_the_nonsense_is_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child_that("import sys\nopen(sys.argv[-3], 'w').write('[{}]')\n", tmp_path, monkeypatch)
    assert read_source_facts({("a.cu", MARKED)}) == ({("a.cu", MARKED): SourceFacts()}, ())


def test_problems_name_three_files() -> None:
    message = problem_with({(f"{name}.cu", MARKED) for name in "abcde"}, memory_bytes=1 << 20)
    assert "a.cu, b.cu, c.cu and 2 more" in message


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_advice_goes_on_without_them_and_such_an_answer_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([sampled_launch("gemm_strided")]))

    def fail(*arguments: object, **limits: object) -> None:
        raise ToolFailedError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(module, "call", fail)
        assert main(["advise", "--details", str(report)]) == 0
        without = capsys.readouterr().out
    assert main(["advise", "--details", str(report)]) == 0
    with_facts = capsys.readouterr().out
    assert "source_not_read" in without
    assert "source_not_read" not in with_facts
    assert without.splitlines()[:3] == with_facts.splitlines()[:3]
