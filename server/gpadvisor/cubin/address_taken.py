# SPDX-License-Identifier: Apache-2.0
"""Functions whose address an image stores somewhere, and which a call through a register may reach."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from gpadvisor.cubin.elf import STT_FUNC, ElfImage, ElfSymbol

_CALL_GRAPH: Final = ".nv.callgraph"
_PAIR: Final = struct.Struct("<II")
_TAKEN: Final = 0xFFFF_FFFC
"""In the call graph the mark, as a callee of nobody, behind which pairs are (taker, function taken)."""
_FIRST_MARK: Final = 0xFFFF_FF00
_DATA: Final = (".nv.global.init", ".nv.constant")
_MAX_DATA_BYTES: Final = 4 << 20
"""Of a section: tables of functions are short, and other data need not be searched as a whole."""
_OTHER_ENTRY: Final = 0x10  # STO_CUDA_ENTRY


def address_taken(elf: ElfImage) -> frozenset[str]:
    """Names of device functions whose address is taken.

    A linked image lists them in its call graph. In one that was compiled as a whole, functions stand behind
    the kernel and their offsets are numbers in constant memory (of each kernel that has a virtual function or
    a pointer to one) or among initial values; another number that happens to be the same is taken for one.
    """
    symbols = {symbol.row: symbol for symbol in elf.symbols() if symbol.kind == STT_FUNC}
    rows = {symbols[row].row for row in _listed(elf) if row in symbols}
    placed: dict[int, list[ElfSymbol]] = {}
    for symbol in symbols.values():
        if symbol.value and not symbol.other & _OTHER_ENTRY:
            placed.setdefault(symbol.value, []).append(symbol)
    for section in elf.sections if placed else ():
        if section.name.startswith(_DATA):
            data = elf.contents(section)[:_MAX_DATA_BYTES]
            words = set(memoryview(data)[: len(data) // 8 * 8].cast("Q"))
            rows |= {symbol.row for value in placed.keys() & words for symbol in placed[value]}
    return frozenset(elf.symbol_name(symbols[row]) for row in rows)


def _listed(elf: ElfImage) -> Iterator[int]:
    """Symbols that the call graph has as taken."""
    section = elf.find(_CALL_GRAPH)
    data = b"" if section is None else elf.contents(section)
    mark = 0
    for caller, callee in _PAIR.iter_unpack(data[: len(data) // _PAIR.size * _PAIR.size]):
        if callee >= _FIRST_MARK:
            mark = callee
        elif mark == _TAKEN and caller:
            yield callee
