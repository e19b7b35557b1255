# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor rules``: all rules, a line each."""

from __future__ import annotations

import argparse
import sys


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("rules", help="all rules, a line each", description="List every rule.")
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace) -> int:
    """Print the list."""
    from gpadvisor.workflow.rule_pages import all_rules

    for rule in all_rules():
        category = rule.category.value.replace("_", " ")
        sys.stdout.write(f"{rule.code}  {rule.slug:<30}  {category:<17}  {rule.name}\n")
    return 0
