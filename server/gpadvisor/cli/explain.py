# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor explain GPA102|long_scoreboard``: the page of a rule or of a stall reason."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Print the page of a rule (what it finds, why warps stall, what to change, when the advice is wrong), or
of a stall reason (what the hardware waits for, what helps, what it is mistaken for, which rules answer it).

  gpadvisor explain GPA106
  gpadvisor explain strength-reduction
  gpadvisor explain long_scoreboard
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="the page of a rule or a stall reason",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a rule such as GPA102 or strength-reduction, or a stall reason such as long_scoreboard",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from gpadvisor.cli.options import write_output
    from gpadvisor.pipeline.stall_pages import explain

    write_output(explain(arguments.name), paged=not arguments.no_pager)
    return 0
