# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor aggregate``: profiles of many ranks into one snapshot."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli.messages import answer, say
from gpadvisor.cli.progress import TerminalProgress

_DESCRIPTION = """\
Add up the profiles of many ranks: samples and counts by machine code, address and stall reason, with
the fewest, the most and whose that is. The result is a snapshot like any other, for 'gpadvisor
advise', the page and the editor: one launch of each kernel, which stands for all of them. Ranks that
are slow in everything, and kernels that are slow on some ranks, are told.

Rank and node are what the profile says, as one of 'gpadvisor profile' under srun or mpirun does, else
the file's name (app.rank17.gpadvisor, report17.ncu-rep, node3).

  gpadvisor aggregate run/*.gpadvisor -o all.gpadvisor
  gpadvisor aggregate /tmp/run/*.gpadvisor --partial -o part3.gpadvisor
  gpadvisor aggregate --merge part*.gpadvisor -o all.gpadvisor
  gpadvisor aggregate run/* --scheduler dask://node0:8786 -o all.gpadvisor
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "aggregate",
        help="add the profiles of many ranks up",
        usage="gpadvisor aggregate PROFILE... -o FILE [options]",
        description=_DESCRIPTION,
    )
    parser.add_argument("inputs", metavar="PROFILE", type=Path, nargs="+")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the snapshot to write"
    )
    parser.add_argument(
        "--by",
        choices=("rank", "node", "name"),
        help="what findings tell the profiles by (default: rank where every name has one, else name)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--partial", action="store_true", help="a part of the ranks, in less memory; to be merged"
    )
    how.add_argument("--merge", action="store_true", help="the inputs are such parts, and nothing else")
    how.add_argument(
        "--scheduler",
        metavar="dask://HOST:PORT",
        help="make parts and merge them on this cluster, whose workers see the files under the same paths",
    )
    parser.add_argument(
        "--cells",
        action="store_true",
        help="keep what each profile has at each place beside the sums, sorted by place",
    )
    parser.add_argument("--keep-going", action="store_true", help="name bad profiles and leave them out")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot and say what is in it."""
    from gpadvisor.pipeline.aggregate import Aggregation, aggregate_files
    from gpadvisor.pipeline.settings import find_settings

    progress = TerminalProgress()
    aggregation = Aggregation(
        by=arguments.by,
        partial=arguments.partial,
        merge=arguments.merge,
        keep_going=arguments.keep_going,
        cells=arguments.cells,
    )
    try:
        if arguments.scheduler is not None:
            from gpadvisor.pipeline.cluster import aggregate_on

            rank_sum = aggregate_on(
                arguments.scheduler, arguments.inputs, arguments.output, aggregation, progress
            )
        else:
            rank_sum = aggregate_files(
                arguments.inputs, arguments.output, aggregation, find_settings(Path.cwd()).settings, progress
            )
    finally:
        progress.clear()
    for name, why in rank_sum.bad.items():
        say(f"left out: {why if why.startswith(name) else f'{name}: {why}'}")
    profiles = f"{rank_sum.profiles:,} profile{'' if rank_sum.profiles == 1 else 's'}"
    kernels = f"{rank_sum.kernels:,} kernel{'' if rank_sum.kernels == 1 else 's'}"
    answer(f"{arguments.output}: sum over {profiles}, {kernels}, {len(rank_sum.data or b''):,} bytes")
    return 0
