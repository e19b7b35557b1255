# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor idle``: what a GPU waits for between kernels and copies."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli import options

_DESCRIPTION = """\
The time in which no stream of a device works, shared equally among what the CPU threads do then: the
call of CUDA that each is in, else the application's own code; and by the call that launched what ended
each gap. Then what host code leaves idle, on its line where the trace has call paths: waits that
nothing needs, copies that could overlap, launches that are too small (rules GPA501 to GPA503). The
input is a snapshot of gpadvisor profile --timeline, the SQLite export of an Nsight Systems report with
CUDA traced, a trace of PyTorch's profiler, or a database of HPCToolkit with a trace.

  gpadvisor profile --timeline -o run.gpadvisor -- ./app
  gpadvisor idle run.gpadvisor

  nsys profile --trace cuda -o run ./app
  nsys export --type sqlite run.nsys-rep
  gpadvisor idle run.sqlite
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "idle",
        help="what the GPU waits for in a traced run",
        usage="gpadvisor idle TRACE [options]",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="TRACE", type=Path)
    parser.add_argument(
        "--top", metavar="N", type=options.natural, default=10, help="rows of text, 0 for all (default 10)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the idle time."""
    from gpadvisor.pipeline.timeline import idle_of
    from gpadvisor.report.idle import idle_json, idle_text

    idleness = idle_of(arguments.input)
    text = (
        idle_json(str(arguments.input), idleness)
        if arguments.format == "json"
        else idle_text(arguments.input.name, idleness, arguments.top or None)
    )
    options.write_output(text, arguments.output, paged=not arguments.no_pager and arguments.format == "text")
    return 0
