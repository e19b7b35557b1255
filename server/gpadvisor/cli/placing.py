# SPDX-License-Identifier: Apache-2.0
"""Options on where code scanning services show advice."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Final

from gpadvisor.errors import UsageError
from gpadvisor.pipeline.formats import ADVICE_FORMATS, Placing

FORMATS: Final = tuple(name for name, form in ADVICE_FORMATS.items() if form.placed)
PAGES: Final = "GPADVISOR_PAGES"
"""Environment variable: address of the folder with the rules' pages, set by the action for GitHub."""
_CATEGORY: Final = re.compile(r"[\w.+-]+(/[\w.+-]+)*")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    group = parser.add_argument_group(f"for code scanning services, with --format {' or '.join(FORMATS)}")
    group.add_argument(
        "--diff",
        metavar="BASE",
        help="show advice on lines that changed since this branch or commit, of those that it is about",
    )
    group.add_argument(
        "--category",
        metavar="NAME",
        type=category,
        help="of alerts: those of one that a later upload lacks are closed (default: gpadvisor/ARCHITECTURE)",
    )
    group.add_argument(
        "--omit-suppressed",
        action="store_true",
        help="leave out of SARIF what a comment silences, as some services show it all the same",
    )


def category(text: str) -> str:
    """A name of words and slashes."""
    if not _CATEGORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no name such as gpadvisor/gemm")
    return text


def placing(arguments: argparse.Namespace) -> Placing:
    """What the options say.

    Raises:
        UsageError: they are for another format, or the commit is not there.
    """
    if arguments.format not in FORMATS:
        for name in ("diff", "category", "omit_suppressed"):
            if getattr(arguments, name, None):  # those of "why" have none
                option = name.replace("_", "-")
                raise UsageError(f"--{option} is for --format {' or '.join(FORMATS)}; add one of them")
        return Placing()
    from gpadvisor.pipeline.changed_lines import changed_lines, repository_root

    root = repository_root(arguments.source_root or Path())
    return Placing(
        root=str(root),
        folder=str(Path.cwd()),
        changed=None if arguments.diff is None else changed_lines(root, arguments.diff),
        category=arguments.category or "",
        omit_suppressed=arguments.omit_suppressed,
        pages=os.environ.get(PAGES, ""),
    )
