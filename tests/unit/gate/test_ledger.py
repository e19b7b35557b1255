# SPDX-License-Identifier: Apache-2.0
"""The ledger's file: whole under two writers and after a cut, honest by rule, anonymous when shared."""

from __future__ import annotations

import json
import multiprocessing
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.files import append_whole
from gpadvisor.gate.ledger import (
    MAX_BYTES,
    LedgerError,
    PredictionOutcome,
    RuleRecord,
    appended,
    export,
    parse,
    records,
)

ONE = PredictionOutcome(
    rule="GPA102", low=1.1, expected=1.2, high=1.4, paper=1.3, achieved=1.26, device="A100", arch="sm_80",
    version="0.1.0", compiler="13.0", evidence="measured", known_by="lines", fingerprint="f" * 64,
    kernel="secret_kernel", before="b" * 64, after="a" * 64,
)  # fmt: skip


def append(path: Path, *outcomes: PredictionOutcome) -> None:
    append_whole(path, lambda data: appended(data, path.name, outcomes), max_bytes=MAX_BYTES)


def read(path: Path) -> list[PredictionOutcome]:
    ledger = parse(path.read_bytes(), path.name)
    return list(ledger.outcomes)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    other = replace(ONE, after="c" * 64, paper=None, compiler="")
    append(path, ONE)
    append(path, other, ONE)
    assert read(path) == [ONE, other]
    assert len(path.read_text().splitlines()) == 3


def _write(path: Path, writer: int, many: int) -> None:
    for number in range(many):
        append(path, *(replace(ONE, after=f"{writer}-{number}-{at}" + "x" * 3_000) for at in range(3)))


def test_two_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, number, 20)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    ledger = parse(path.read_bytes(), path.name)
    assert ledger.damaged == 0
    assert len(set(ledger.outcomes)) == 180
    assert path.read_text().count("gpadvisor-ledger") == 1


def test_a_file_that_was_cut_anywhere_keeps_its_other_lines(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    append(path, *(replace(ONE, after=str(number)) for number in range(4)))
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    random_ = random.Random(1)
    for end in random_.sample(range(head, len(whole)), 30):
        path.write_bytes(whole[:end])
        complete = whole[:end].count(b"\n") - 1
        append(path, replace(ONE, after="new"))
        found = [one.after for one in read(path)]
        assert found[:complete] == ["0", "1", "2", "3"][:complete]
        assert found[-1] == "new"
        assert parse(path.read_bytes(), "x").damaged <= 1


def test_another_file_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for data in (
        b"my notes\n",
        b"{}\n",
        b'{"gpadvisor-baseline": 1}\n',
        b'{"gpadvisor-ledger": 2}\n',
        b"\xff\x00",
    ):
        path.write_bytes(data)
        with pytest.raises(LedgerError, match=r"notes\.txt"):
            append(path, ONE)
        assert path.read_bytes() == data
    with pytest.raises(OSError, match="regular"):
        append(tmp_path, ONE)


@given(st.binary(max_size=200))
def test_any_line_is_an_outcome_or_damaged(data: bytes) -> None:
    start = b'{"gpadvisor-ledger": 1}\n'
    ledger = parse(start + data.replace(b"\n", b" ") + b"\n" + appended(b"", "x", [ONE]), "x")
    assert ONE in ledger.outcomes


@pytest.mark.parametrize(
    "change",
    [
        {"low": "1"},
        {"low": True},
        {"expected": 0},
        {"rule": 5},
        {"achieved": None},
        {"beside": -1},
        {"rule": "x" * 5_000},
    ],
)
def test_lines_with_values_that_cannot_be(change: dict[str, object]) -> None:
    head, line = appended(b"", "x", [ONE]).decode().splitlines()
    damaged = json.dumps({**json.loads(line), **change})
    ledger = parse(f"{head}\n{damaged}\n{line}\n".encode(), "x")
    assert (ledger.outcomes, ledger.damaged) == ((ONE,), 1)


def test_share_inside_and_bias_by_rule() -> None:
    outcomes = [
        ONE,
        replace(ONE, achieved=1.0, after="1"),
        replace(ONE, achieved=1.8, after="2"),
        replace(ONE, achieved=9.0, beside=1, after="3"),
        replace(ONE, rule="GPA201", achieved=0.6, after="4"),
    ]
    assert records(outcomes) == (
        RuleRecord(rule="GPA102", pairs=3, inside=1, below=1, above=1, bias=1.26 / 1.2),
        RuleRecord(rule="GPA201", pairs=1, inside=0, below=1, above=0, bias=0.6 / 1.2),
    )


def test_what_is_shared_names_nothing() -> None:
    text = export([ONE, replace(ONE, kernel="other", after="9" * 64, achieved=1.1)])
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["achieved"] for row in rows] == [1.1, 1.26]
    for private in ("secret_kernel", "other", "f" * 64, "b" * 64, "a" * 64):
        assert private not in text
    assert {"rule", "low", "expected", "high", "paper", "achieved", "device", "version"} <= rows[0].keys()
