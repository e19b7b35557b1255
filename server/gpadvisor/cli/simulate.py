# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor simulate``: a modelled profile of a kernel, without a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.messages import answer, say
from gpadvisor.cli.progress import TerminalProgress

_DESCRIPTION = """\
Run the machine code of a kernel on a model of one SM and write the samples it would give as a
snapshot. Everything in it is marked as modelled, with what was assumed; it tells which stalls are
likely and how a change moves them, not how long the kernel takes.
"""

_EPILOG = """\
example:
  gpadvisor simulate kernel.cu --grid 32,32 --block 32,8 --loop 18=1024
  gpadvisor advise kernel.gpadvisor

launches may also stand in gpadvisor.toml, in a table [launches.KERNEL]
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "simulate",
        help="a modelled profile of a kernel, without a GPU",
        usage="gpadvisor simulate SOURCE|CUBIN [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("input", metavar="SOURCE|CUBIN", type=Path)
    options.add_selection(parser, launches=False)
    options.add_launch(parser)
    parser.add_argument("--arch", metavar="SM", help="architecture a .cu file is compiled for, such as sm_90")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="default: the input's name with .gpadvisor, here"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the snapshot and say what was simulated."""
    from gpadvisor.cli.advise import make_request
    from gpadvisor.cubin import demangle
    from gpadvisor.files import cache_folder
    from gpadvisor.pipeline.cache import Cache
    from gpadvisor.pipeline.modelled import simulate_file

    target = arguments.output or Path(arguments.input.name).with_suffix(".gpadvisor")
    cache = Cache(None if arguments.no_cache else cache_folder())
    progress = TerminalProgress()
    try:
        result = simulate_file(arguments.input, target, make_request(arguments), progress, cache)
    finally:
        progress.clear()
    for problem in result.problems:
        say(problem.message)
    for kernel, simulation in result.kernels:
        answer(
            f"{demangle(kernel)}: {simulation.profile.total_samples:,} samples of "
            f"{simulation.blocks:,} blocks in {simulation.simulated_cycles:,} cycles of one SM, "
            f"{len(simulation.assumptions)} assumptions"
        )
    answer(f"{target}: {target.stat().st_size:,} bytes")
    return 0
