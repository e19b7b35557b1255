# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor import``: a report becomes a snapshot that opens anywhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.advise import make_request
from gpadvisor.cli.messages import answer, say
from gpadvisor.cli.progress import TerminalProgress

_DESCRIPTION = """\
Convert an Nsight Compute report, the directory that the cupti collector left, or a database of
HPCToolkit (version 4) into a snapshot: one zip file with the samples, launches and metrics as Parquet,
the cubins and their disassembly, so that it can be analysed where neither Nsight Compute nor nvdisasm
is. A report without line information gets the lines of its kernels' source, where that is here, and
keeps them.

  gpadvisor import run.ncu-rep
  gpadvisor import run.ncu-rep --redact -o shared.gpadvisor
  gpadvisor import hpctoolkit-app-database --gpubins hpctoolkit-app-measurements
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
        "--gpubins",
        metavar="DIR",
        type=Path,
        help="GPU binaries of an HPCToolkit database: the folder of its measurements",
    )
    parser.add_argument(
        "--redact", action="store_true", help="remove paths, host names, command lines and sources"
    )
    parser.add_argument(
        "--source-root",
        metavar="DIR",
        type=Path,
        help="folder searched for the sources (default: the current one)",
    )
    options.add_lines_from(parser)
    parser.set_defaults(run=run, kernel=None)


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot and say how large it is."""
    from gpadvisor.pipeline.snapshots import import_profile

    input_path = arguments.input.resolve()
    target = arguments.output or Path(
        (input_path.name if input_path.is_dir() else input_path.stem) + ".gpadvisor"
    )
    progress = TerminalProgress()
    try:
        report = import_profile(
            arguments.input,
            target,
            make_request(arguments),
            redact=arguments.redact,
            progress=progress,
            gpubins=arguments.gpubins,
        )
    finally:
        progress.clear()
    for problem in report.problems:
        say(problem.message)
    answer(
        f"{target}: {report.kernels} launch{'' if report.kernels == 1 else 'es'}, "
        f"{report.samples:,} samples, {report.snapshot_bytes:,} bytes "
        f"({report.snapshot_bytes / report.report_bytes:.2f} of the report's {report.report_bytes:,})"
    )
    return 0
