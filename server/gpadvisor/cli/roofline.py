# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor roofline``: how far a kernel, its loops and its lines are below the peaks of the device."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.viewing import write_view

_DESCRIPTION = """\
The instruction roofline: how many instructions a second the kernel executes, how many for each
transaction of L1, shared memory, L2 and DRAM, and how near that is to the peaks of issue, memory
and pipes. Names the nearest ceiling and what it allows, the accesses that move more than they need,
and the suggestion that follows.

  gpadvisor roofline run.ncu-rep
  gpadvisor roofline run.ncu-rep --kernel gemm --region line
  gpadvisor roofline run.ncu-rep --format svg -o gemm.svg  of the longest kernel
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "roofline",
        help="how far a kernel is below the peaks of the device",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="REPORT|SNAPSHOT", type=Path)
    options.add_selection(parser)
    options.add_lines_from(parser)
    parser.add_argument(
        "--region",
        choices=("kernel", "loop", "line"),
        default="loop",
        help="what each kernel is divided into (default: loop)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=options.natural,
        default=12,
        help="rows of each table of text, 0 for all (default 12)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "csv", "svg"),
        default="text",
        help="svg holds one kernel, the longest of those wanted (default: text)",
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the roofline of each kernel."""
    from gpadvisor.pipeline.roofline import roofline_file
    from gpadvisor.views.roofline.model import RegionKind

    view = partial(roofline_file, kind=RegionKind(arguments.region), rows=arguments.top or None)
    return write_view(arguments, view)
