# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor completion SHELL``: what a shell reads to complete commands, options and files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SHELLS = ("bash", "zsh", "tcsh")
_DESCRIPTION = """\
Print a script that makes a shell complete gpadvisor's commands, options and files:

  source <(gpadvisor completion bash)           # in ~/.bashrc
  gpadvisor completion zsh > ~/.zsh/_gpadvisor  # a folder of $fpath
  gpadvisor completion tcsh > ~/.gpadvisor.tcsh # source it in ~/.tcshrc
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "completion",
        help="completion for bash, zsh and tcsh",
        description=_DESCRIPTION,
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    _complete_files(arguments.whole)
    sys.stdout.write(shtab.complete(arguments.whole, arguments.shell) + "\n")
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Let arguments that are paths complete to files or folders, those of the commands too."""
    import shtab

    for action in parser._actions:  # noqa: SLF001 argparse tells its arguments nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 nor its commands
            for command in action.choices.values():
                _complete_files(command)
        elif action.type is Path:
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined] # shtab reads this
