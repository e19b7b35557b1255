# SPDX-License-Identifier: Apache-2.0
"""Numbers that programs get wrong, and changes of any bytes."""

from __future__ import annotations

import random

ODD = (
    *(0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF),
    *((1 << 53) - 1, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)


def bytes_(data: bytes, rng: random.Random) -> bytes:
    """Any bytes: flipped, cut, doubled, swapped, odd numbers put over them."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not out:
            return bytes(out)
        at = rng.randrange(len(out))
        size = rng.choice((1, 2, 4, 8, 16, 64))
        match rng.randrange(5):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at : at + size] = rng.choice(ODD).to_bytes(8, "little")[: min(size, 8)]
            case 2:
                del out[at : at + size]
            case 3:
                out[at:at] = out[at : at + size] * rng.choice((1, 2, 64))
            case _:
                other = rng.randrange(len(out))
                out[at : at + size], out[other : other + size] = (
                    out[other : other + size],
                    out[at : at + size],
                )
    return bytes(out)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, as of protobuf, DWARF and Thrift, and the place behind it.

    Raises:
        ValueError: it has no end.
    """
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    raise ValueError("no end")
