# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor explain GPA102``: the page of one rule."""

from __future__ import annotations

import argparse
import sys


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="the page of one rule",
        description="Print what a rule finds, why warps stall, what to try, and when the advice is wrong.",
    )
    parser.add_argument(
        "rule", metavar="CODE", help="a code such as GPA102, or a name such as strength-reduction"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from gpadvisor.workflow.rule_pages import rule_page

    sys.stdout.write(rule_page(arguments.rule))
    return 0
