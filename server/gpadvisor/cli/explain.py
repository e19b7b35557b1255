# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor explain GPA102``: the page of one rule."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Print the page of a rule: what it finds, why warps stall, what to change, and when the advice is wrong.

  gpadvisor explain GPA106
  gpadvisor explain strength-reduction
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="the page of one rule",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "rule", metavar="CODE", help="a code such as GPA102, or a name such as strength-reduction"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from gpadvisor.cli.options import write_output
    from gpadvisor.pipeline.rule_pages import rule_page

    write_output(rule_page(arguments.rule), paged=not arguments.no_pager)
    return 0
