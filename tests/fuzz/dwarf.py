# SPDX-License-Identifier: Apache-2.0
"""Changes of a cubin's line table, instruction by instruction, with its units' lengths made right."""

from __future__ import annotations

import random
import struct

from tests.cubin_parts import COPY, END, address, advance, file, inlined, line, special, uleb
from tests.fuzz.odd import ODD, bytes_, varint

_OPCODE_BASE = 13
_SPARE = 64
"""Bytes of an ELF header of either kind."""


def lines(data: bytes, rng: random.Random) -> bytes:
    """A cubin with another line table, behind everything else."""
    found = _section(data)
    if found is None:
        return bytes_(data, rng)
    row, table = found
    made = _table(table, rng)
    out = bytearray(data)
    struct.pack_into("<QQ", out, row + 24, len(out), len(made))
    return bytes(out) + made


def _section(data: bytes) -> tuple[int, bytes] | None:
    """The header of a ``.debug_line`` section, and what it holds."""
    if len(data) < _SPARE:
        return None
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [table + index * size for index in range(count)]
    if size != _SPARE or not rows or names >= count or rows[-1] + size > len(data):
        return None
    (strings,) = struct.unpack_from("<Q", data, rows[names] + 24)
    for row in rows:
        (name,) = struct.unpack_from("<I", data, row)
        if data[strings + name : strings + name + 12] == b".debug_line\0":
            start, length = struct.unpack_from("<QQ", data, row + 24)
            return row, data[start : start + length]
    return None


def _table(table: bytes, rng: random.Random) -> bytes:
    units = []
    at = 0
    while at + 10 < len(table):
        (length,) = struct.unpack_from("<I", table, at)
        units.append(table[at + 4 : at + 4 + length])
        at += 4 + length
    if not units or rng.random() < 0.05:
        return bytes_(table, rng)
    chosen = rng.randrange(len(units))
    units[chosen] = _unit(units[chosen], rng)
    if rng.random() < 0.05:
        units *= rng.choice((2, 100))
    return b"".join(struct.pack("<I", len(unit)) + unit for unit in units)


def _unit(unit: bytes, rng: random.Random) -> bytes:
    """One unit without its length: names and numbers of its header, or instructions."""
    if len(unit) < 12:
        return bytes_(unit, rng)
    (version,) = struct.unpack_from("<H", unit, 0)
    at = 4 if version >= 5 else 2
    (length,) = struct.unpack_from("<I", unit, at)
    program = at + 4 + length
    if rng.random() < 0.25:
        header = bytes_(unit[at + 4 : program], rng)
        return unit[:at] + struct.pack("<I", len(header)) + header + unit[program:]
    steps = _steps(unit[program:])
    for _ in range(rng.choice((1, 2, 8))):
        _change(steps, rng)
    return unit[:program] + b"".join(steps)


def _steps(program: bytes) -> list[bytes]:
    """The instructions of a line program; what cannot be told apart is one."""
    steps, at = [], 0
    while at < len(program):
        begin, opcode = at, program[at]
        at += 1
        try:
            if opcode == 0:
                length, at = varint(program, at)
                at += length
            elif opcode == 9:
                at += 2
            elif opcode in {2, 3, 4, 5, 12}:
                at = varint(program, at)[1]
        except ValueError:
            at = len(program)
        steps.append(program[begin:at])
    return steps


def _change(steps: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(steps) + 1)
    match rng.randrange(5):
        case 0:
            steps[at:at] = [_step(rng)] * rng.choice((1, 1, 3, 1000))
        case 1:
            del steps[at : at + rng.choice((1, 1, 4))]
        case 2:
            steps[at:at] = steps[: rng.choice((1, 4, 64))] * rng.choice((1, 16))
        case 3 if at < len(steps):
            steps[at] = _step(rng)
        case _:
            rng.shuffle(steps)


def _step(rng: random.Random) -> bytes:
    number = rng.choice((*ODD, rng.randrange(300)))
    makers = (
        lambda: COPY,
        lambda: END,
        lambda: advance(number),
        lambda: line(rng.choice((number, -number))),
        lambda: file(number),
        lambda: address(number & (1 << 64) - 1),
        lambda: inlined(number, rng.choice(ODD)),
        lambda: inlined(rng.randrange(8), rng.randrange(8)),
        lambda: special(rng.randrange(17), rng.randrange(-5, 8)),
        lambda: b"\x03" + uleb(number)[:-1] + b"\xff",  # no end
        lambda: b"\0" + uleb(number) + b"\x02",  # a length that does not fit
        lambda: b"\0\x06\x03a.h\0"[:7] + b"\0\0\0",  # a file in the midst of the program
        lambda: bytes([rng.randrange(_OPCODE_BASE)]),
    )
    return rng.choice(makers)()
