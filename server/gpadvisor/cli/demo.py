# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor demo``: advice for a profile that comes with this package, without a GPU and without a tool."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

NAME: Final = "demo"
"""What stands for that profile wherever advice is asked for, unless there is a file of that name."""
_FOLDER: Final = Path(__file__).parent / "data"

_DESCRIPTION = """\
Print the advice for a matrix product whose threads run down the rows: the profile of it is simulated
and comes along. Its name works in place of a file, too:

  gpadvisor why demo 1             how the estimate came about
  gpadvisor advise demo --details  every number
"""
_NEXT = "Your own: gpadvisor profile -- ./app, or gpadvisor advise REPORT.\n"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo",
        help="advice for an example that comes along",
        description=_DESCRIPTION,
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the advice, and what to do next."""
    advice = arguments.whole.parse_args(["advise", NAME])
    code = int(advice.run(advice))
    sys.stdout.write(_NEXT)
    return code


def beside(paths: Sequence[Path]) -> AbstractContextManager[None]:
    """The folder where a path means that profile, for the time of the context; else none is changed to."""
    if list(paths) == [Path(NAME)] and not paths[0].exists():
        return contextlib.chdir(_FOLDER)
    return contextlib.nullcontext()
