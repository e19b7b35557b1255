# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor completion``: what a shell reads to complete commands, options and files; the manual page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SHELLS = ("bash", "zsh", "tcsh")
MANUAL = "man"
_DESCRIPTION = """\
Print a script that makes a shell complete gpadvisor's commands, options and files:

  source <(gpadvisor completion bash)           # in ~/.bashrc
  gpadvisor completion zsh > ~/.zsh/_gpadvisor  # a folder of $fpath
  gpadvisor completion tcsh > ~/.gpadvisor.tcsh # source it in ~/.tcshrc

or the manual page:

  gpadvisor completion man > ~/.local/share/man/man1/gpadvisor.1
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "completion",
        help="completion for bash, zsh and tcsh; the manual page",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "shell", choices=(*SHELLS, MANUAL), metavar="SHELL|man", help=", ".join((*SHELLS, MANUAL))
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script, or the page."""
    if arguments.shell == MANUAL:
        from gpadvisor.cli.manual import manual

        sys.stdout.write(manual(arguments.whole))
        return 0
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
