# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor why FILE N``: how one estimate came about."""

from __future__ import annotations

import argparse

from gpadvisor.cli import advise

_DESCRIPTION = """\
Show one suggestion in full: its equation with the numbers, what the letters stand for, why the range
departs from it, and the instructions that wait.

  gpadvisor why run.ncu-rep 1         by its number in the advice
  gpadvisor why run.ncu-rep GPA106    by its rule
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command, which is ``advise FILE --why N``."""
    parser = commands.add_parser(
        "why",
        help="how one estimate came about",
        usage="gpadvisor why REPORT|SNAPSHOT|CUBIN|SOURCE N [options]",
        description=_DESCRIPTION,
    )
    advise.add_input(parser)
    parser.add_argument("why", metavar="N", help="its number in the advice, or the code of its rule")
    advise.add_options(parser)
    parser.set_defaults(
        run=advise.run, format="text", details=False, fail_on=[], baseline=None, update_baseline=False
    )
