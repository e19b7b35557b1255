# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor rules``: all rules, a line each."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "rules",
        help="all rules, a line each",
        description="List every rule: code, name for the command line, category, title. "
        "'gpadvisor explain CODE' has the page of one.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from gpadvisor.cli.options import write_output
    from gpadvisor.pipeline.rule_pages import all_rules, kind_of

    lines = [f"{rule.code}  {rule.slug:<30}  {kind_of(rule):<17}  {rule.name}\n" for rule in all_rules()]
    write_output("".join(lines), paged=not arguments.no_pager)
    return 0
