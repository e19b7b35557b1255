# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor tree``: which calls the time of a kernel's functions is due to."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.viewing import write_view

_DESCRIPTION = """\
The calling contexts of GPU code: from the host's way to the launch through kernels, called and
inlined functions and loops down to lines, with what each costs. Samples know no callers; what a
function costs is divided among its calls by how often each was executed. A database of HPCToolkit
(version 4) is shown as it was measured, also of other GPUs and of the host alone, and so is a file of
Proton, Triton's profiler (.hatchet), or of hatchet (.json). A traced run alone has the host's ways to
each kernel and copy, with their times.

  gpadvisor tree run.ncu-rep                    who calls what
  gpadvisor tree run.ncu-rep --view bottom-up   each function, who calls it
  gpadvisor tree run.ncu-rep --metric 'stalled = latency / samples'
  gpadvisor tree run.ncu-rep --format speedscope -o run.json
  gpadvisor tree run.ncu-rep --timeline run.sqlite   below the host's ways
  gpadvisor tree run.sqlite                     a traced run, with times
  gpadvisor tree proton.hatchet                 times by context
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "tree",
        usage="gpadvisor tree [options] REPORT|SNAPSHOT|DATABASE|TRACE",
        help="which calls the time of device functions is due to",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="REPORT|SNAPSHOT|DATABASE|TRACE", type=Path)
    options.add_selection(parser)
    options.add_lines_from(parser)
    parser.add_argument(
        "--timeline",
        metavar="TRACE",
        type=Path,
        help="a traced run, for the host's ways to each launch and the time there: nsys's SQLite export, "
        "or a trace of PyTorch",
    )
    parser.add_argument(
        "--view",
        choices=("top-down", "bottom-up", "flat"),
        default="top-down",
        help="callers above what they call, below it, or not at all (default: top-down)",
    )
    parser.add_argument(
        "--metric",
        metavar="[NAME =] FORMULA",
        action="append",
        default=[],
        help="a column (time, samples, latency, instructions, threads, a stall reason, a metric of the "
        "report) or a formula over columns with + - * / ^ ( ) min max; the first one orders; may be repeated "
        "(default: time, samples, latency, instructions)",
    )
    parser.add_argument(
        "--top", metavar="N", type=options.natural, default=40, help="rows of text, 0 for all (default 40)"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "folded", "speedscope"),
        default="text",
        help="folded: for flame graphs, one line a stack (default: text)",
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the tree."""
    from gpadvisor.pipeline.tree import tree_file
    from gpadvisor.views.tree.model import TreeView

    view = partial(
        tree_file,
        view=TreeView(arguments.view),
        metrics=arguments.metric,
        rows=arguments.top or None,
        color=arguments.output is None and options.use_color(arguments.color),
    )
    return write_view(arguments, view)
