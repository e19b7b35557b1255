# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor blame``: the dependency graph as a table."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.viewing import write_view

_DESCRIPTION = """\
Print the dependency graph that the advice rests on: for each sampled instruction the instructions
its stalls may come from, the samples each was blamed for, the distance, and for each pruned edge
the rule that cut it.

  gpadvisor blame run.ncu-rep --kernel gemm
  gpadvisor blame run.ncu-rep --top 0 --format csv -o edges.csv
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "blame",
        help="the dependency graph behind the advice, as a table",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="REPORT|SNAPSHOT", type=Path)
    options.add_selection(parser)
    options.add_lines_from(parser)
    parser.add_argument(
        "--rules",
        choices=("gpadvisor", "gpa2021"),
        default="gpadvisor",
        help="blaming rules (default: gpadvisor)",
    )
    parser.add_argument(
        "--top", metavar="N", type=options.natural, default=30, help="rows shown, 0 for all (default 30)"
    )
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="default: text")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table of each kernel."""
    from gpadvisor.pipeline.blame import blame_file

    return write_view(arguments, partial(blame_file, rules=arguments.rules, rows=arguments.top or None))
