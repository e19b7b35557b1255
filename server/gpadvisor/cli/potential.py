# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor potential``: what each kind of change could save at most."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from gpadvisor.cli import options
from gpadvisor.cli.viewing import write_view

_ESSENTIAL = ("FP64", "tensor", "FP32", "FP16", "special functions", "integer")
_DESCRIPTION = """\
Divide the measured cycles of a kernel into the parts of a model (GPUPerf): essential instructions,
the bytes of DRAM, and what more parallelism, better memory accesses, less serialization and fewer
other instructions could save at most, beside what the samples say of the same.

  gpadvisor potential run.ncu-rep
  gpadvisor potential run.ncu-rep --kernel gemm --essential FP32
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "potential",
        help="what each kind of change could save at most",
        description=_DESCRIPTION,
    )
    parser.add_argument("input", metavar="REPORT|SNAPSHOT", type=Path)
    options.add_selection(parser)
    parser.add_argument(
        "--essential",
        choices=_ESSENTIAL,
        metavar="CLASS",
        help=f"the instructions that are the work: {', '.join(_ESSENTIAL)} (default: the busiest "
        "floating-point or tensor class)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the potential of each kernel."""
    from gpadvisor.pipeline.potential import potential_file

    return write_view(arguments, partial(potential_file, essential=arguments.essential))
