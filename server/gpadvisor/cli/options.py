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

from gpadvisor.errors import SettingsError
from gpadvisor.files import write_atomically
from gpadvisor.pipeline.formats import ADVICE_FORMATS
from gpadvisor.pipeline.launches import (
    ARGUMENT_KINDS,
    MAX_WHOLE,
    StatedArgument,
    is_whole,
    stated_argument,
)
from gpadvisor.sandbox.pager import page

FORMATS: Final = (*ADVICE_FORMATS, "html")

NO_LINES: Final = Path("none")
"""In place of a source: nothing is compiled for lines."""

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 120
PIPED_WIDTH: Final = 80


def add_selection(parser: argparse.ArgumentParser, *, launches: bool = True) -> None:
    """Options that choose what of an input is looked at; ``launches`` where it may have several."""
    parser.add_argument(
        "--kernel", metavar="REGEX", type=pattern, help="only kernels whose demangled or mangled name matches"
    )
    if launches:
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


def add_lines_from(parser: argparse.ArgumentParser) -> None:
    """The option that gives a profile without line information its lines."""
    parser.add_argument(
        "--lines-from",
        metavar="SOURCE|CUBIN|none",
        type=Path,
        action="append",
        default=[],
        help="lines for a report without any: of a source compiled now, or of a cubin built with -lineinfo "
        "(default: of the source that defines the kernel, where it is here); may be repeated",
    )


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Options that state a launch for the model."""
    group = parser.add_argument_group("the launch to model")
    group.add_argument("--grid", metavar="X[,Y[,Z]]", type=size, help="blocks of the grid")
    group.add_argument("--block", metavar="X[,Y[,Z]]", type=size, help="threads of a block")
    group.add_argument(
        "--loop",
        metavar="LINE=TRIPS",
        type=loop,
        action="append",
        default=[],
        help="how often the loop at a source line runs, where the code does not say; may be repeated",
    )
    group.add_argument(
        "--arguments",
        metavar="KIND[=VALUE],...",
        type=kernel_arguments,
        help="of the kernel, in order, such as pointer,int=1024,float: what loops and addresses depend on",
    )
    group.add_argument(
        "--dynamic-shared", metavar="BYTES", type=natural, help="dynamic shared memory of a block (default 0)"
    )
    group.add_argument(
        "--hit-rate",
        metavar="L1[,L2]",
        type=hit_rates,
        help="share of accesses that hit L1, and of the rest that hit L2 (default: by address, else 0.5,0.5)",
    )
    group.add_argument(
        "--sms", metavar="N", type=natural, help="SMs of the GPU (default: of the architecture's)"
    )
    group.add_argument("--seed", metavar="N", type=natural, help="of the model's random draws (default 1)")


def size(text: str) -> tuple[int, int, int]:
    """One to three positive numbers with commas."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(is_whole(part) and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not one to three numbers such as 32,8")
    x, y, z = (*(int(part) for part in parts), 1, 1)[:3]
    return x, y, z


def loop(text: str) -> tuple[int, int]:
    """``LINE=TRIPS``."""
    line, _, trips = text.partition("=")
    if not (is_whole(line) and is_whole(trips)):
        raise argparse.ArgumentTypeError(f"'{text}' is not LINE=TRIPS")
    return int(line), int(trips)


def rate(text: str) -> float:
    """A probability."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1") from error
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def hit_rates(text: str) -> tuple[float, float | None]:
    """``L1`` or ``L1,L2``."""
    first, comma, second = text.partition(",")
    return rate(first), rate(second) if comma else None


def kernel_arguments(text: str) -> tuple[StatedArgument, ...]:
    """``KIND[=VALUE]`` with commas."""
    arguments = []
    for part in text.split(","):
        kind, equals, value = part.strip().partition("=")
        if kind not in ARGUMENT_KINDS:
            kinds = ", ".join(ARGUMENT_KINDS)
            raise argparse.ArgumentTypeError(f"'{part}' is none of {kinds}, alone or with =VALUE")
        try:
            number = _number(value) if equals else None
            arguments.append(stated_argument(kind, number, f"'{part}'"))
        except (ValueError, SettingsError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return tuple(arguments)


def _number(text: str) -> float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression, or the error argparse shows."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from error


def natural(text: str) -> int:
    """An integer that is not negative."""
    if not is_whole(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to {MAX_WHOLE}")
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


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare ``--output``."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to a file instead of standard output"
    )


def write_output(text: str, path: Path | None = None, *, paged: bool = True) -> None:
    """Print, on a terminal through a pager where it is long, or write a file as a whole or not at all."""
    if path is None and paged and page(text):
        return
    if path is None:
        _print(text if text.endswith("\n") else text + "\n")
    else:
        write_atomically(path, text.encode())


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error
