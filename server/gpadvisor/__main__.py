# SPDX-License-Identifier: Apache-2.0
"""Runs the command line: ``python -m gpadvisor``, and the installed command."""

from __future__ import annotations

import gc
import sys

from gpadvisor.cli import main as command_line


def main() -> int:
    """One command in a process of its own."""
    relax_collector()
    return command_line()


def relax_collector() -> None:
    """Look for cyclic garbage seldom: a command is short, and nearly all that it makes lives to its end.

    With Python's own threshold, going through it all again and again took 40 % of building a large program.
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


if __name__ == "__main__":
    sys.exit(main())
