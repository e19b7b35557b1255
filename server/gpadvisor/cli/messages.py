# SPDX-License-Identifier: Apache-2.0
"""The one place where sentences go to the standard streams: names and paths in them are anybody's."""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any, Final, NoReturn

_LONGEST: Final = 4096


def say(sentence: str) -> None:
    """One line, without anything that moves a cursor, changes a colour or begins another line."""
    from gpadvisor.report.words import clean

    sys.stderr.write(f"gpadvisor: {clean(sentence, _LONGEST)}\n")


def answer(sentence: str) -> None:
    """The same as what was asked for, on standard output."""
    from gpadvisor.report.words import clean

    sys.stdout.write(f"{clean(sentence, _LONGEST)}\n")


_TOGETHER: Final = {
    "import": ("import, export", "make a snapshot of a report, and a folder of a snapshot"),
    "lsp": ("lsp, mcp, ci", "servers for editors and agents; checks in CI"),
}
_BESIDE: Final = frozenset({"export", "mcp", "ci"})
"""Commands that share a line of the list with another one."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Paragraphs as wide as the terminal; examples and tables, which are indented, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        lines: list[str] = []
        for verbatim, block in itertools.groupby(
            text.splitlines(), lambda line: not line or line.startswith(" ")
        ):
            part = list(block)
            lines += part if verbatim else textwrap.wrap(" ".join(part), width)
        return "".join(f"{indent}{line}\n" for line in lines)


class CommandsFormatter(HelpFormatter):
    """Lists the commands alone, to fit a screen: the few options are in the usage and below."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add a command's line; options and the heading of the commands have none."""
        if action.nargs == argparse.PARSER:
            for command in self._iter_indented_subactions(action):
                if command.dest in _TOGETHER:
                    command.metavar, command.help = _TOGETHER[command.dest]
                if command.dest not in _BESIDE:
                    super().add_argument(command)

    def format_help(self) -> str:
        """Without an empty line before the last paragraph, which would be one too many for a screen."""
        return "\n".join(super().format_help().rsplit("\n\n", 1))


class Parser(argparse.ArgumentParser):
    """Its errors quote the command line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """End with the usage and a clean sentence."""
        from gpadvisor.report.words import clean

        super().error(clean(message, _LONGEST))
