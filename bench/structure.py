# SPDX-License-Identifier: Apache-2.0
"""The structure step alone: functions, loops, lines, inline chains and calls of a whole cubin."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpadvisor.__main__ import end, relax_collector
from gpadvisor.cubin import read_cubin
from gpadvisor.model.program import Program
from gpadvisor.toolchain.disassembly import disassemble


def structure(path: Path) -> Program:
    """Everything hpcstruct yields, and the instructions besides."""
    data = path.read_bytes()
    with ThreadPoolExecutor(1) as pool:
        disassembly = pool.submit(disassemble, data)
        from gpadvisor.analyzer import build_program  # imported while nvdisasm runs, as the command does

        return build_program(read_cubin(data), disassembly.result().listing)


def main(path: str) -> None:
    """Print what was found, so that a run that found nothing shows."""
    relax_collector()
    program = structure(Path(path))
    loops = sum(len(function.loops) for function in program.functions)
    calls = sum(len(function.calls) for function in program.functions)
    mapped = sum(line is not None for function in program.functions for line in function.lines)
    total = sum(len(function.instructions) for function in program.functions)
    print(
        f"{len(program.functions)} functions, {loops} loops, {calls} calls, {mapped} of {total} with a line"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
    end(0)
