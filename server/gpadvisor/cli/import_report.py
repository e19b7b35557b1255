# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor import``: a report becomes a snapshot that opens anywhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpadvisor.cli.messages import say
from gpadvisor.cli.progress import TerminalProgress

_DESCRIPTION = """\
Convert an Nsight Compute report, or the directory that the cupti collector left, into a snapshot:
one zip file with the samples, launches and metrics as Parquet, the cubins and their disassembly, so
that it can be analysed where neither Nsight Compute nor nvdisasm is.

  gpadvisor import run.ncu-rep
  gpadvisor import run.ncu-rep --redact -o shared.gpadvisor
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "import",
        help="convert a report into a snapshot",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="REPORT", type=Path)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="default: the report's name with .gpadvisor, here"
    )
    parser.add_argument(
        "--redact", action="store_true", help="remove paths, host names, command lines and sources"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot and say how large it is."""
    from gpadvisor.pipeline.settings import find_settings
    from gpadvisor.pipeline.snapshots import import_profile

    target = arguments.output or Path(arguments.input.name).with_suffix(".gpadvisor")
    progress = TerminalProgress()
    try:
        report = import_profile(
            arguments.input,
            target,
            find_settings(Path.cwd()).settings,
            redact=arguments.redact,
            progress=progress,
        )
    finally:
        progress.clear()
    for problem in report.problems:
        say(problem.message)
    sys.stdout.write(
        f"{target}: {report.kernels} launch{'' if report.kernels == 1 else 'es'}, "
        f"{report.samples:,} samples, {report.snapshot_bytes:,} bytes "
        f"({report.snapshot_bytes / report.report_bytes:.2f} of the report's {report.report_bytes:,})\n"
    )
    return 0
