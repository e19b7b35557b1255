# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor compare``: what was predicted beside what was achieved."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpadvisor.cli import ledger, options
from gpadvisor.cli.messages import say
from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.errors import UsageError

if TYPE_CHECKING:
    from gpadvisor.gate.limits import GateLimit

_DESCRIPTION = """\
Compare two reports or snapshots, one from before a change and one from after it: by kernel, what
each suggestion predicted beside what was achieved; by source line, where time was gained or lost.
Kernels are paired by name. To compare two kernels of one report, give it twice:

  gpadvisor compare before.ncu-rep after.ncu-rep
  gpadvisor compare run.ncu-rep run.ncu-rep --kernel naive --kernel-after tiled
  gpadvisor compare before.ncu-rep after.ncu-rep --format html -o page.html
  gpadvisor compare a.ncu-rep b.ncu-rep --gate 5% --gate kernel=gemm:2%
  gpadvisor compare before.cubin after.cubin --gate spills=0 --gate registers=0

A gate ends with exit code 1 where something grew by more than it allows, and where that cannot be told: times
of fewer than three launches, or of less than 10 us, are noise. Without a GPU cubins have registers, spills
(instructions), shared (bytes of a block) and findings; profiles have insts, executed instructions, too.
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
    parser.add_argument(
        "--format",
        choices=("text", "json", "markdown", "junit", "html"),
        default="text",
        help="default: text",
    )
    parser.add_argument(
        "--gate",
        metavar="LIMIT",
        type=limit,
        action="append",
        default=[],
        help="exit 1 if time grew by more than 5%%, insts by more than 1%% (insts=1%%), spills at all "
        "(spills=0); kernel=REGEX:3%% for some kernels; may be repeated",
    )
    parser.add_argument(
        "--ledger",
        metavar="FILE",
        type=Path,
        nargs="?",
        const=ledger.DEFAULT,
        help="append what suggestions promised and what came, where the change touched their lines "
        f"(default file: {ledger.DEFAULT})",
    )
    parser.add_argument(
        "--applied",
        metavar="CODE|FINGERPRINT",
        action="append",
        default=[],
        help="a suggestion that the change answers, wherever it was made; may be repeated",
    )
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    from gpadvisor.cli.advise import make_request
    from gpadvisor.cli.html_page import render_html
    from gpadvisor.gate.limits import GateOutcome
    from gpadvisor.pipeline.compare import CompareOptions, compare_files

    if arguments.format == "junit" and not arguments.gate:
        raise UsageError("--format junit has a test case for each gate; add --gate 5% or another")
    if arguments.applied and arguments.ledger is None:
        raise UsageError("--applied says what a ledger is to record; add --ledger")
    if arguments.format == "html" and arguments.ledger is not None:
        raise UsageError("--format html makes a page and writes no ledger; take another format")
    if arguments.format == "html" and arguments.gate:
        raise UsageError("--format html makes a page without gates; take another format")
    arguments.top, rows = None, arguments.top or None
    before = make_request(arguments)
    after = before if arguments.kernel_after is None else before._replace(kernel=arguments.kernel_after)
    if arguments.format == "html":
        page = render_html(arguments.after, after, before=(arguments.before, before))
        options.write_output(page.text, arguments.output, paged=False)
        return 0
    progress = TerminalProgress()
    compare_options = CompareOptions(
        format=arguments.format,
        rows=rows,
        width=options.output_width(),
        limits=tuple(arguments.gate),
        applied=None if arguments.ledger is None else tuple(arguments.applied),
    )
    try:
        compared = compare_files(arguments.before, before, arguments.after, after, progress, compare_options)
    finally:
        progress.clear()
    options.write_output(compared.text, arguments.output, paged=not arguments.no_pager)
    if arguments.ledger is not None:
        ledger.write(arguments.ledger, compared.came)
    if compared.outcome is GateOutcome.PASS:
        return 0
    say(f"the gate says {compared.outcome.value}")
    return 1


def limit(text: str) -> GateLimit:
    """A ``--gate`` limit.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    from gpadvisor.gate.limits import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
