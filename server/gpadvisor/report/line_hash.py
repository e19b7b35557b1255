# SPDX-License-Identifier: Apache-2.0
"""The hash of a line and of what follows it, by which GitHub tells whether two alerts are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

_BLOCK: Final = 100
_BASE: Final = 37
_MASK: Final = (1 << 64) - 1
_LEAVING: Final = pow(_BASE, _BLOCK, 1 << 64)
_END: Final = 0xFFFF


def line_hashes(text: str) -> list[str]:
    """``primaryLocationLineHash`` of each line, as the upload action of GitHub's code scanning has it.

    A polynomial over the next 100 UTF-16 code units that are neither a blank nor a tab, modulo 2**64; equal
    ones are numbered. The end of the text counts as one unit, zeros follow.
    """
    units: list[int] = []
    starts = [0]
    for unit in _units(text):
        units.append(unit)
        if unit == 10:
            starts.append(len(units))
    units += [_END] + [0] * _BLOCK
    line_starts, hash_of_line = set(starts), dict[int, str]()
    value = 0
    for index in range(starts[-1] + _BLOCK):
        value = _BASE * value + units[index]
        if index >= _BLOCK:
            value -= _LEAVING * units[index - _BLOCK]
        value &= _MASK
        if index - _BLOCK + 1 in line_starts:
            hash_of_line[index - _BLOCK + 1] = f"{value:x}"
    counts: Counter[str] = Counter()
    hashes = []
    for start in starts:
        counts[hash_of_line[start]] += 1
        hashes.append(f"{hash_of_line[start]}:{counts[hash_of_line[start]]}")
    return hashes


def _units(text: str) -> Iterable[int]:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "")
    return memoryview(plain.encode("utf-16-le", "surrogatepass")).cast("H")
