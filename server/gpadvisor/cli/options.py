# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from gpadvisor.workflow.files import write_atomically

FORMATS: Final = ("text", "json", "sarif", "markdown")

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 120
PIPED_WIDTH: Final = 80


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Options that choose what of an input is looked at."""
    parser.add_argument(
        "--kernel", metavar="REGEX", type=pattern, help="only kernels whose demangled or mangled name matches"
    )
    parser.add_argument(
        "--launch",
        metavar="N",
        type=natural,
        help="this launch of the report (from 0) instead of each kernel's longest",
    )
    parser.add_argument(
        "--machine", metavar="FILE", help="machine table to use instead of the shipped one (TOML)"
    )
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression, or the error argparse shows."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from error


def natural(text: str) -> int:
    """An integer that is not negative."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 upwards")
    return int(text)


def factor(text: str) -> float:
    """A speedup such as 1.2 or 1.2x."""
    try:
        value = float(text.removesuffix("x"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a speedup such as 1.2") from error
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a speedup such as 1.2")
    return value


def mapping(text: str) -> tuple[str, str]:
    """``OLD=NEW``."""
    old, separator, new = text.partition("=")
    if not (old and separator and new):
        raise argparse.ArgumentTypeError(f"'{text}' is not OLD=NEW")
    return old, new


def output_width() -> int:
    """Columns for text output: the terminal's within reason, 80 in a pipe."""
    if not sys.stdout.isatty():
        return PIPED_WIDTH
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns))


def use_color(choice: str) -> bool:
    """Whether to colour; ``auto`` means a terminal that does not object (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_output(text: str, path: Path | None) -> None:
    """Print, or write a file as a whole or not at all."""
    if path is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        write_atomically(path, text.encode())
