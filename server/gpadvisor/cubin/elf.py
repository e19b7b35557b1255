# SPDX-License-Identifier: Apache-2.0
"""The 64-bit ELF container of a cubin: section headers, symbols and strings, read with bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpadvisor.errors import CubinError

EM_CUDA: Final = 190
SHT_SYMTAB: Final = 2
SHT_NOBITS: Final = 8
STT_FUNC: Final = 2
STT_SECTION: Final = 3

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SHN_XINDEX: Final = 0xFFFF
# Names of one image may share bytes, so a small hostile file can ask for far more text than it holds.
_NAME_BYTES_MAX: Final = 1 << 26

_HOST_MACHINES: Final = {3: "x86", 62: "x86-64", 183: "aarch64", 21: "ppc64", 243: "riscv"}


class SectionHeader(NamedTuple):
    """One section header with its name resolved."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


class ElfSymbol(NamedTuple):
    """One symbol table row; the name stays an offset until somebody asks for it."""

    row: int
    name_offset: int
    kind: int
    other: int
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class ElfHeader:
    """The fields of the ELF header that tell one cubin dialect from another."""

    os_abi: int
    abi_version: int
    kind: int
    flags: int


class ElfImage:
    """Bounded access to the sections, symbols and strings of one ELF file."""

    __slots__ = ("_data", "_name_bytes", "_names", "_strtab", "header", "sections")

    def __init__(self, data: bytes) -> None:
        """Read the headers; raise CubinError for anything but a 64-bit little-endian CUDA ELF."""
        self._data = data
        self._names: dict[tuple[int, int], str] = {}
        self._name_bytes = 0
        fields = _read_header(data)
        ident, kind, _, _, _, _, section_offset, flags, _, _, _, entry_size, count, names_index = fields
        self.header = ElfHeader(os_abi=ident[7], abi_version=ident[8], kind=kind, flags=flags)
        rows = _section_rows(data, section_offset, entry_size, count)
        if names_index == _SHN_XINDEX and rows:
            names_index = rows[0][6]
        names = _span(data, rows[names_index]) if names_index < len(rows) else b""
        self.sections = tuple(
            SectionHeader(self._string(names, names_index, r[0]), r[1], r[2], r[4], r[5], r[6], r[7])
            for r in rows
        )
        self._strtab: tuple[int, bytes] = (-1, b"")

    def contents(self, section: SectionHeader) -> bytes:
        """The bytes of a section; empty for one that takes no space in the file."""
        if section.kind == SHT_NOBITS:
            return b""
        end = section.offset + section.size
        if end > len(self._data):
            raise CubinError(
                f"cubin is truncated: section {section.name or '(unnamed)'} ends at byte {end} of "
                f"{len(self._data)}; copy or build it again"
            )
        return self._data[section.offset : end]

    def find(self, name: str) -> SectionHeader | None:
        """The first section with this name."""
        return next((s for s in self.sections if s.name == name), None)

    def symbols(self) -> Iterator[ElfSymbol]:
        """The rows of the symbol table, in order."""
        table = next((s for s in self.sections if s.kind == SHT_SYMTAB), None)
        if table is None:
            return
        if table.link < len(self.sections):
            self._strtab = (table.link, self.contents(self.sections[table.link]))
        raw = self.contents(table)
        usable = len(raw) - len(raw) % _SYMBOL.size
        for index, (name, info, visibility, section, value, size) in enumerate(
            _SYMBOL.iter_unpack(raw[:usable])
        ):
            yield ElfSymbol(index, name, info & 15, visibility, section, value, size)

    def symbol_name(self, symbol: ElfSymbol) -> str:
        """The name of a symbol that ``symbols`` has yielded."""
        index, table = self._strtab
        return self._string(table, index, symbol.name_offset)

    def _string(self, table: bytes, index: int, offset: int) -> str:
        """The zero-ended string at an offset of a string table, decoded once."""
        name = self._names.get((index, offset))
        if name is not None:
            return name
        end = table.find(b"\0", offset)
        raw = table[offset : end if end >= 0 else len(table)]
        self._name_bytes += len(raw)
        if self._name_bytes > _NAME_BYTES_MAX:
            raise CubinError("cubin is damaged: its names overlap to more than 64 MiB of text; rebuild it")
        text = raw.decode("utf-8", "replace")
        self._names[index, offset] = text
        return text


def _read_header(
    data: bytes,
) -> tuple[bytes, int, int, int, int, int, int, int, int, int, int, int, int, int]:
    """The unpacked ELF header of a CUDA image."""
    if data[:4] != b"\x7fELF":
        raise CubinError(_foreign(data))
    if len(data) < _HEADER.size:
        raise CubinError(f"cubin is truncated: {len(data)} bytes are less than one ELF header; rebuild it")
    if data[4] != 2 or data[5] != 1:
        raise CubinError("not a cubin: the ELF file is not 64-bit little-endian; build it with nvcc -cubin")
    fields = _HEADER.unpack_from(data)
    machine = fields[2]
    if machine != EM_CUDA:
        text = _HOST_MACHINES.get(machine, f"machine {machine}")
        raise CubinError(
            f"not a cubin: this is an ELF file of the host ({text}); "
            "extract its cubins with cuobjdump -xelf all"
        )
    return fields


def _section_rows(data: bytes, offset: int, entry_size: int, count: int) -> list[tuple[int, ...]]:
    """The raw section headers."""
    if entry_size != _SECTION.size or offset == 0:
        raise CubinError("cubin is damaged: it has no readable section headers; rebuild it")
    if count == 0 and offset + entry_size <= len(data):
        # More than 65,279 sections: the count moves into the first header.
        count = _SECTION.unpack_from(data, offset)[5]
    end = offset + count * entry_size
    if count == 0 or end > len(data):
        raise CubinError(
            f"cubin is truncated: its section headers end at byte {end} of {len(data)}; "
            "copy or build it again"
        )
    return list(_SECTION.iter_unpack(data[offset:end]))


def _span(data: bytes, row: tuple[int, ...]) -> bytes:
    """The bytes that a raw section header points at, as far as the file has them."""
    _, _, _, _, offset, size, *_ = row
    return data[offset : offset + size]


def _foreign(data: bytes) -> str:
    """One sentence that says what bytes without an ELF mark are."""
    if not data:
        return "not a cubin: the file is empty; build it with nvcc -cubin -lineinfo"
    if data[:4] == b"\x50\xed\x55\xba" or data[:4] == b"\xb1\x43\x62\x46":
        return "not a cubin but a fatbin, which may hold several; extract them with cuobjdump -xelf all"
    head = data[:4096]
    if b".version" in head and (b".target" in head or b".address_size" in head):
        return "not a cubin but PTX text; assemble it with ptxas -arch=sm_XX --generate-line-info"
    return (
        f"not a cubin: it starts with {data[:4].hex(' ')} instead of an ELF mark; build it with nvcc -cubin"
    )
