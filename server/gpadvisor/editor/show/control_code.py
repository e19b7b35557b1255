# SPDX-License-Identifier: Apache-2.0
"""The control code of an instruction in words."""

from __future__ import annotations

from gpadvisor.model.finding import SassInstruction


def control_words(row: SassInstruction) -> str:
    """The control code in the order of its bits, waits first: ``--2---:0:1:Y:04``."""
    waits = "".join(str(bit) if bit in row.waits else "-" for bit in range(6))
    read = "-" if row.read_barrier is None else str(row.read_barrier)
    write = "-" if row.write_barrier is None else str(row.write_barrier)
    return f"{waits}:{read}:{write}:{'Y' if row.yields else '-'}:{row.stall_cycles:02d}"
