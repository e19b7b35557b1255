# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor ledger``: how well ranges held, by rule, in a file that ``compare --ledger`` writes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpadvisor.cli import options
from gpadvisor.cli.messages import say
from gpadvisor.errors import UsageError
from gpadvisor.files import append_whole, read_file
from gpadvisor.model.figures import percent

if TYPE_CHECKING:
    from gpadvisor.gate.ledger import PredictionOutcome, RuleRecord

DEFAULT: Final = Path(".gpadvisor-ledger.jsonl")
_DESCRIPTION: Final = """\
Show for each rule how often the measured speedup of a change lay in the range that was promised, and how it
stood to the expected value: the median of achieved / expected, below 1 where a rule promises too much.
The file is written by 'compare BEFORE AFTER --ledger'. Changes that answered several suggestions at once
are left out.

  gpadvisor compare before.ncu-rep after.ncu-rep --ledger
  gpadvisor ledger .gpadvisor-ledger.jsonl
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "ledger", help="how well predictions held, by rule", description=_DESCRIPTION
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", default=DEFAULT, help=f"default: {DEFAULT}"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "--export", action="store_true", help="its lines without kernels, files and fingerprints, to share"
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the summary, or the lines to share."""
    from gpadvisor.gate.ledger import MAX_BYTES, export, parse, records

    try:
        ledger = parse(read_file(arguments.file, max_bytes=MAX_BYTES), arguments.file.name)
    except FileNotFoundError as error:
        raise UsageError(
            f"{arguments.file} is not there; 'compare BEFORE AFTER --ledger' writes it"
        ) from error
    if ledger.damaged:
        say(f"{ledger.damaged} lines are damaged and left out")
    rule_records = records(ledger.outcomes)
    if arguments.export:
        text = export(ledger.outcomes)
    elif arguments.format == "json":
        joint = sum(bool(outcome.beside) for outcome in ledger.outcomes)
        text = (
            json.dumps({"rules": [asdict(record) for record in rule_records], "joint": joint}, indent=2)
            + "\n"
        )
    else:
        text = _text(rule_records, ledger.outcomes)
    options.write_output(text, arguments.output)
    return 0


def write(path: Path, outcomes: Sequence[PredictionOutcome]) -> None:
    """Append outcomes, and say what was.

    Raises:
        LedgerError: the file is no ledger.
    """
    from gpadvisor.gate.ledger import MAX_BYTES, appended
    from gpadvisor.report.words import plural

    new = (
        append_whole(path, lambda data: appended(data, path.name, outcomes), max_bytes=MAX_BYTES)
        if outcomes
        else b""
    )
    lines = new.count(b'"rule"')
    if lines:
        say(f"{path}: {plural(lines, 'prediction')} written, with what was achieved")
    elif outcomes:
        say(f"{path} has these predictions already")
    else:
        say(
            f"{path}: nothing to write, as no suggestion with an estimate was answered by a measured change; "
            "--applied CODE says that one was"
        )


def _text(records: Sequence[RuleRecord], outcomes: Sequence[PredictionOutcome]) -> str:
    if not outcomes:
        return "No prediction has an outcome yet.\n"
    rows = [
        f"{record.rule:<6} {record.pairs:>5} {record.inside:>7} {record.below:>6} {record.above:>6}"
        f"   {record.bias:.2f}"
        for record in records
    ]
    alone = sum(record.pairs for record in records)
    inside = sum(record.inside for record in records)
    lines = (
        [f"{'rule':<6} {'pairs':>5} {'inside':>7} {'below':>6} {'above':>6}   achieved / expected", *rows]
        if rows
        else []
    )
    if alone:
        lines.append(f"{inside} of {alone} outcomes lie in the range ({percent(inside / alone, 0)}).")
    if joint := len(outcomes) - alone:
        lines.append(f"{joint} more are of changes that answered several suggestions at once.")
    return "\n".join(lines) + "\n"
