# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor export``: the members of a snapshot as files."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli.messages import answer

_DESCRIPTION = """\
Unpack a snapshot: Parquet tables of launches, samples, counts and metrics, the cubins, and their
disassembly. docs/profile-format.md says what each column holds.

  gpadvisor export run.gpadvisor out
  duckdb -c "SELECT reason, sum(samples) FROM 'out/samples.parquet' GROUP BY 1"
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "export",
        help="unpack a snapshot into a folder",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="SNAPSHOT", type=Path)
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="a folder that does not exist yet, or is empty"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Unpack and list what was written."""
    from gpadvisor.pipeline.snapshots import export_profile

    for path in export_profile(arguments.input, arguments.directory):
        answer(str(path))
    return 0
