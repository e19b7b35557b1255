# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor doctor``: what works on this machine, what blocks, and the one next command."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

_DESCRIPTION = """\
Look at the driver, its permission to read performance counters, the container, other profilers,
tools and versions, and say for each what it means for profiling, who can change it, and when trying
again cannot help. Nothing is changed. With an application, also whether its CUDA code has line
information.

exit codes: 0 PC samples can be taken here, 4 something blocks them
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        help="what works on this machine, what blocks, the next step",
        description=_DESCRIPTION,
    )
    parser.add_argument("application", metavar="APP", type=Path, nargs="?", help="look at its CUDA code too")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the diagnosis."""
    from gpadvisor.cli.options import use_color, write_output
    from gpadvisor.profiler.doctor import render_json, render_text
    from gpadvisor.profiler.doctor.examine import examine_machine

    diagnosis = examine_machine(arguments.application)
    if arguments.format == "json":
        sys.stdout.write(render_json(diagnosis))
    else:
        width = min(shutil.get_terminal_size().columns, 100)
        text = render_text(diagnosis, width=max(width, 40), color=use_color("auto"))
        write_output(text, paged=not arguments.no_pager)
    return 4 if diagnosis.blocked else 0
