# SPDX-License-Identifier: Apache-2.0
"""Smallest CUDA ELF images, for tests that need sections and symbols but no real machine code."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

STO_CUDA_ENTRY = 0x10
NOP = (0x7918, 0x000FC00000000000)
EXIT = (0x794D, 0x000FEA0003800000)


def tiny_cubin(
    sections: Mapping[str, Sequence[tuple[str, int]]],
    *,
    instructions: int = 8,
    sm: int = 86,
    abi: int = 7,
    listed: bool = False,
) -> bytes:
    """A cubin with one ``.text.<name>`` per entry of ``sections``: (symbol, offset) pairs beside the kernel.

    Every section has ``instructions`` instructions of 16 bytes that differ from each other; where ``listed``,
    they are the same that do nothing, and an end, which nvdisasm reads.
    """
    names = _Strings()
    bodies: list[tuple[int, int, bytes, int]] = [(0, 0, b"", 0)]  # name, type, content, link
    symbols = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
    size = 16 * instructions
    for index, (kernel, others) in enumerate(sections.items(), 1):
        words = [(index << 32 | at, at) for at in range(instructions)]
        if listed:
            words = [NOP] * (instructions - 1) + [EXIT]
        code = b"".join(struct.pack("<QQ", *word) for word in words)
        bodies.append((names.add(f".text.{kernel}"), 1, code, 0))
        rows = [(kernel, 0, STO_CUDA_ENTRY), *((name, offset, 0) for name, offset in others)]
        for name, offset, other in rows:
            bind = 0x12 if other else 0x02
            symbols.append(struct.pack("<IBBHQQ", names.add(name), bind, other, index, offset, size - offset))
    bodies.append((names.add(".symtab"), 2, b"".join(symbols), len(bodies) + 1))
    bodies.append((names.add(".strtab"), 3, names.data, 0))
    out = bytearray(64)
    rows = []
    for name, kind, content, link in bodies:
        entry = 24 if kind == 2 else 0
        registers, alignment = (4 << 24, 128) if listed and kind == 1 else (0, 8)
        fields = (name, kind, 6 if kind == 1 else 0, 0, len(out), len(content), link, registers, alignment)
        rows.append(struct.pack("<IIQQQQIIQQ", *fields, entry))
        out += content
    table = len(out)
    flags = sm if abi == 7 else sm << 8
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x33 if abi == 7 else 0x41, abi]) + bytes(7)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, table, flags, 64, 0, 0, 64, len(rows), len(rows) - 1
    )
    out[:64] = header
    return bytes(out) + b"".join(rows)


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text.encode()) - 1
