# SPDX-License-Identifier: Apache-2.0
"""Line tables are decoded in a child process; what it does wrong costs the lines and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cubin_parts import COPY, END, Part, Sym, address, advance, code, elf, file, inlined, line, unit
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch

from gpadvisor.cli import main
from gpadvisor.cubin import decode_lines, dump_lines, line_program, lines, load_lines, read_cubin
from gpadvisor.errors import CancelledError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.pipeline import line_tables
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.line_tables import read_lines
from gpadvisor.pipeline.programs import Disassembled, kernel_program, open_cubin
from gpadvisor.sandbox import children
from gpadvisor.sass.listing import SassLine, dump_listing

PROGRAM = line(9) + COPY + file(2) + inlined(1, 1) + line(4) + advance(32) + COPY + advance(96) + END
IMAGE = elf(
    [
        *(Part(f".text.{name}", code(8)) for name in ("k", "other")),
        Part(".debug_line", unit(address() + PROGRAM)[0]),
        Part(
            ".rel.debug_line", (unit(b"")[1] + 3).to_bytes(8, "little") + (1 << 32 | 2).to_bytes(8, "little")
        ),
        Part(".debug_str", b"\0callee\0"),
    ],
    [Sym("k", ".text.k", 0, 128), Sym("other", ".text.other", 0, 128)],
)
CUBIN = read_cubin(IMAGE)
ASKED = {"sections": None}
PYTHON = sys.executable


def opened(cache: Path | None = None) -> Disassembled:
    listing = dump_listing({name: (SassLine(None, "NOP", ""),) * 8 for name in ("k", "other")})
    return open_cubin(IMAGE, {"k"}, stored=listing, timeout_seconds=60, cache=Cache(cache))


def read(timeout_seconds: float = 60.0) -> str:
    found, (problem,) = read_lines(
        CUBIN,
        IMAGE,
        ASKED,
        cache=Cache(None),
        cancelled=lambda: False,
        timeout_seconds=timeout_seconds,
    )
    assert not found.sections
    assert problem.code is ProblemCode.LINES_NOT_READ
    assert "addresses in place of lines" in problem.message
    return problem.message


def test_the_child_decodes_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries are those of this process, which is not asked."""
    expected = decode_lines(CUBIN, {"k"})
    assert [entry is not None and len(entry.inline) for entry in expected.sections["k"]] == [0] * 2 + [1] * 6
    for module in (lines, line_program):
        monkeypatch.setattr(module, "sequences", pytest.fail)
    lines._decoded.cache_clear()
    source = opened()
    assert source.lines == expected
    (function,) = kernel_program(source, {"k"}).functions
    assert function.lines == expected.sections["k"]


def test_they_are_kept_with_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = opened(tmp_path).lines
    monkeypatch.setattr(children.sys, "executable", "/bin/false")
    assert opened(tmp_path).lines == before
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    assert [problem.code for problem in opened(tmp_path).problems] == [ProblemCode.LINES_NOT_READ]


def test_without_memory_there_are_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_tables, "_MEMORY_BYTES", 1 << 24)
    assert "needed too much memory" in read()


def test_a_child_that_dies_hangs_or_says_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = json.loads(dump_lines(decode_lines(CUBIN, None)))
    other["sections"]["k"] = [[9, 0]]
    start = tmp_path / "python"
    monkeypatch.setattr(children.sys, "executable", str(start))
    for body, words, seconds in (
        ("import os; os.kill(os.getpid(), 11)", "failed", 60.0),
        ("import time; time.sleep(100)", "took longer than 0.5 s", 0.5),
        ("import sys; open(sys.argv[-3], 'w').write('[' * 100000)", "no sensible answer", 60.0),
        (f"import sys; open(sys.argv[-3], 'w').write({json.dumps(other)!r})", "no sensible answer", 60.0),
    ):
        (tmp_path / "child.py").write_text(body)
        start.write_text(f'#!/bin/sh\nexec {PYTHON} {tmp_path}/child.py "$@"\n')
        start.chmod(0o755)
        assert words in read(timeout_seconds=seconds), body


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_advice_goes_on_without_lines_and_such_an_answer_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("run.ncu-rep").write_bytes(write_report([sampled_launch("gemm_strided")]))
    with monkeypatch.context() as broken:
        broken.setattr(line_tables, "_MEMORY_BYTES", 1 << 24)
        assert main(["advise", "--details", "run.ncu-rep"]) == 0
        without = capsys.readouterr().out
    assert main(["advise", "--details", "run.ncu-rep"]) == 0
    after = capsys.readouterr().out
    assert "addresses in place of lines" in " ".join(without.split())
    assert "before.cu" not in without
    assert "before.cu" in after


def test_it_is_stopped_as_asked() -> None:
    with pytest.raises(CancelledError):
        read_lines(CUBIN, IMAGE, ASKED, timeout_seconds=60, cache=Cache(None), cancelled=lambda: True)


@pytest.mark.parametrize(
    "change",
    [
        {"texts": []},
        {"texts": [1, 2, 3]},
        {"entries": [[0, "x"]]},
        {"entries": [[-1, 1]]},
        {"entries": [[0, 1, 0]]},
        {"entries": []},
        {"sections": {"k": [[7, 0]]}},
        {"sections": {"k": [[9, 0], [-1, 0]]}},
        {"sections": {"none": []}},
        {"sections": []},
        {"damage": []},
        {"more": 1},
        {"entries": [[True, 1]]},
        {"sections": {"k": [[8, 0, 0]]}},
    ],
)
def test_an_answer_of_another_shape_is_none(change: dict[str, object]) -> None:
    document = json.loads(dump_lines(decode_lines(CUBIN, {"k"})))
    assert load_lines(json.dumps(document).encode(), CUBIN) == decode_lines(CUBIN, {"k"})
    with pytest.raises(ValueError, match=r"no _StoredLines|line|place|zip"):
        load_lines(json.dumps({**document, **change}).encode(), CUBIN)
