# SPDX-License-Identifier: Apache-2.0
"""Runs the command line: ``python -m gpadvisor``, and the installed command."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import NoReturn

from gpadvisor.cli import main as command_line


def main() -> NoReturn:
    """One command in a process of its own."""
    relax_collector()
    end(command_line())


def relax_collector() -> None:
    """Look for cyclic garbage seldom: a command is short, and nearly all that it makes lives to its end.

    With Python's own threshold, going through it all again and again took 40 % of building a large program,
    and going through it once 8 % of the advice: five million values are those of 200,000 instructions.
    """
    gc.freeze()
    gc.set_threshold(5_000_000, 20, 100)


def end(code: int) -> NoReturn:
    """End the process as it is: taking apart all that an analysis made took as long as a fifth of it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
