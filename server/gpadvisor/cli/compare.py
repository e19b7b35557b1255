# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor compare``: what was predicted beside what was achieved."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.progress import TerminalProgress

_DESCRIPTION = """\
Compare two reports or snapshots, one from before a change and one from after it: by kernel, what
each suggestion predicted beside what was achieved; by source line, where time was gained or lost.
Kernels are paired by name. To compare two kernels of one report, give it twice:

  gpadvisor compare before.ncu-rep after.ncu-rep
  gpadvisor compare run.ncu-rep run.ncu-rep --kernel naive --kernel-after tiled
  gpadvisor compare before.ncu-rep after.ncu-rep --format html -o page.html
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        help="two runs: what was predicted beside what was achieved",
        description=_DESCRIPTION,
    )
    parser.add_argument("before", metavar="BEFORE", type=Path)
    parser.add_argument("after", metavar="AFTER", type=Path)
    options.add_selection(parser)
    parser.add_argument(
        "--kernel-after",
        metavar="REGEX",
        type=options.pattern,
        help="kernels of AFTER (default: as --kernel)",
    )
    parser.add_argument("--merge", action="store_true", help="add launches of equal configuration up")
    parser.add_argument(
        "--top", metavar="N", type=options.natural, default=15, help="lines shown, 0 for all (default 15)"
    )
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="default: text")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    from dataclasses import replace

    from gpadvisor.cli.advise import make_request
    from gpadvisor.cli.html_page import render_html
    from gpadvisor.pipeline.compare import compare_files

    arguments.top, rows = None, arguments.top or None
    before = make_request(arguments)
    after = before if arguments.kernel_after is None else replace(before, kernel=arguments.kernel_after)
    if arguments.format == "html":
        page = render_html(arguments.after, after, before=(arguments.before, before))
        options.write_output(page.text, arguments.output, paged=False)
        return 0
    progress = TerminalProgress()
    try:
        text = compare_files(
            arguments.before,
            before,
            arguments.after,
            after,
            progress,
            output_format=arguments.format,
            rows=rows,
            width=options.output_width(),
        )
    finally:
        progress.clear()
    options.write_output(text, arguments.output, paged=not arguments.no_pager)
    return 0
