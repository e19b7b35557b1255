# SPDX-License-Identifier: Apache-2.0
"""The manual page, written from the parsers: every command with its options, for ``man``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from gpadvisor import __version__

_ABOUT = "why the warps of a CUDA kernel wait, what to change, and what that would gain"
_EXIT = (
    ("0", "done"),
    ("1", "a gate is met, fails or cannot be decided"),
    ("2", "wrong usage"),
    ("3", "an input cannot be used"),
    ("4", "a tool is missing or failed"),
)


def manual(parser: argparse.ArgumentParser) -> str:
    """The page in the language of ``man``, of the whole command line."""
    lines = [
        f'.TH GPADVISOR 1 "" "gpadvisor {__version__}" "User Commands"',
        ".SH NAME",
        f"gpadvisor \\- {_text(_ABOUT)}",
        ".SH SYNOPSIS",
        ".B gpadvisor\n.I COMMAND\n[options]",
        ".SH COMMANDS",
    ]
    for name, command in _commands(parser):
        lines += _command(name, command)
    lines.append(".SH EXIT STATUS")
    for code, meaning in _EXIT:
        lines += [".TP", f".B {code}", _text(meaning)]
    return "\n".join(lines) + "\n"


def _commands(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:  # noqa: SLF001 argparse tells its arguments nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 nor its commands
            for name, command in action.choices.items():
                yield f"{before}{name}", command
                yield from _commands(command, f"{before}{name} ")


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage:").split())
    lines = [f'.SS "{_text(name)}"', _text(usage), *_paragraphs(parser.description or "")]
    formatter = parser._get_formatter()  # noqa: SLF001 it alone fills defaults into help
    for action in parser._actions:  # noqa: SLF001 the same of its parts
        if action.help in {None, argparse.SUPPRESS} or action.nargs == argparse.PARSER:
            continue
        text = formatter._format_action_invocation(action)  # noqa: SLF001 the same of its parts
        words = formatter._expand_help(action)  # noqa: SLF001 the same of its parts
        lines += [".TP", f".B {_text(text)}", _text(words)]
    return lines + _paragraphs(parser.epilog or "")


def _paragraphs(text: str) -> list[str]:
    """Blocks between empty lines; what is indented is an example, as it is."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        for part in re.findall(r"(?:^[ ].*\n?)+|(?:^[^ \n].*\n?)+", block, re.MULTILINE):
            verbatim = part.startswith(" ")
            body = [_text(line) for line in part.rstrip("\n").split("\n")]
            lines += [".PP", *([".nf", *body, ".fi"] if verbatim else [" ".join(body)])]
    return lines


def _text(text: str) -> str:
    """Letters that ``man`` would take for its own as themselves."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + plain if plain.startswith((".", "'")) else plain
