# SPDX-License-Identifier: Apache-2.0
"""The parts of a line section: bytes, tables of strings, files and headers of a unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

_FORM_SIZES: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
_FORM_STRING: Final = 0x08
_FORM_BLOCK: Final = 0x09
_FORM_UDATA: Final = 0x0F
_FORM_STRP: Final = 0x0E
_FORM_LINE_STRP: Final = 0x1F
_CONTENT_PATH: Final = 1
_CONTENT_DIRECTORY: Final = 2
_NAME_MAX: Final = 4096
"""Bytes of a file's name: no system opens a longer path."""
_SYMBOL_MAX: Final = 1 << 16
"""Bytes of a function's name; templates make long ones."""


class DamagedLinesError(ValueError):
    """The line program cannot be followed further; what came before it stands."""


@dataclass(slots=True)
class Files:
    """The file table of one unit."""

    directories: list[str]
    names: list[tuple[str, int]]  # name, directory index
    first: int  # number of the first entry: 1 up to DWARF 4, 0 in DWARF 5
    paths: dict[int, str | None] = field(default_factory=dict)  # those that were asked for

    def path(self, number: int) -> str | None:
        """The path of a file number."""
        if number not in self.paths:
            self.paths[number] = self._path(number)
        return self.paths[number]

    def _path(self, number: int) -> str | None:
        index = number - self.first
        if not 0 <= index < len(self.names):
            return None
        name, directory = self.names[index]
        if name.startswith("/"):
            return name
        # Up to DWARF 4 directory 0 is the compiler's working directory, which is not in the table.
        place = directory - 1 if self.first else directory
        if not 0 <= place < len(self.directories):
            return name
        folder = self.directories[place]
        return f"{folder}/{name}" if folder else name


class Reader:
    """A cursor over the section."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, index: int, end: int) -> None:
        """Read ``data[at:end]``."""
        self.data = data
        self.at = index
        self.end = end

    def unsigned(self, size: int) -> int:
        """A fixed-size unsigned number."""
        end = self.at + size
        if end > self.end:
            raise DamagedLinesError("the line table ends early")
        value = int.from_bytes(self.data[self.at : end], "little")
        self.at = end
        return value

    def uleb(self) -> int:
        """A variable-length unsigned number of at most 64 bits."""
        data, index = self.data, self.at
        if index < self.end and data[index] < 0x80:  # nearly all are one byte long
            self.at = index + 1
            return data[index]
        value = shift = 0
        end = min(self.end, index + 10)
        while index < end:
            byte = data[index]
            index += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = index
                return value
            shift += 7
        raise DamagedLinesError("a number in the line table has no end")

    def sleb(self) -> int:
        """A variable-length signed number of at most 64 bits."""
        begin = self.at
        value = self.uleb()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def string(self) -> str:
        """A zero-ended string."""
        end = self.data.find(b"\0", self.at, self.end)
        if end < 0:
            raise DamagedLinesError("a name in the line table has no end")
        if end - self.at > _NAME_MAX:
            raise DamagedLinesError(f"a name in the line table is longer than {_NAME_MAX} bytes")
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text


class Header(NamedTuple):
    """What the state machine needs from a unit's header."""

    minimum_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: bytes
    files: Files


class Tables:
    """The tables of names that units share; each name is made once, however often it is named."""

    def __init__(self, line_strings: bytes, strings: bytes) -> None:
        """Take ``.debug_line_str`` and ``.debug_str``."""
        self._tables = (line_strings, strings)
        self._known: dict[tuple[int, int], str] = {}
        # Names may begin anywhere inside of another: of a sound table few do.
        self._room = 4 * (len(line_strings) + len(strings)) + (1 << 16)

    def name(self, table: int, offset: int) -> str:
        """The name at an offset of one of them; empty outside of it."""
        key = table, offset
        if key not in self._known:
            text = string_at(self._tables[table], offset, _NAME_MAX) or ""
            self._room -= len(text)
            if self._room < 0:
                raise DamagedLinesError("the names in the line table overlap")
            self._known[key] = text
        return self._known[key]


def read_header(reader: Reader, offset_size: int, tables: Tables) -> Header:
    """The header of one unit, DWARF 2 to 5."""
    version = reader.unsigned(2)
    if not 2 <= version <= 5:
        raise DamagedLinesError(f"the line table has DWARF version {version}, and 2 to 5 are known")
    if version >= 5:
        reader.unsigned(2)  # sizes of an address and of a segment selector
    program_at = reader.unsigned(offset_size) + reader.at
    minimum_length = reader.unsigned(1)
    if version >= 4:
        reader.unsigned(1)  # operations per instruction; one on a GPU
    reader.unsigned(1)  # whether rows begin statements
    line_base, line_range, opcode_base = reader.unsigned(1), reader.unsigned(1), reader.unsigned(1)
    counts = bytes(reader.unsigned(1) for _ in range(max(opcode_base - 1, 0)))
    files = _files_5(reader, offset_size, tables) if version >= 5 else _files_2(reader)
    if not reader.at <= program_at <= reader.end or line_range == 0:
        raise DamagedLinesError("the header of the line table is damaged")
    reader.at = program_at
    signed_base = line_base - 256 if line_base > 127 else line_base
    return Header(minimum_length, signed_base, line_range, opcode_base, counts, files)


def _files_2(reader: Reader) -> Files:
    """Directory and file tables up to DWARF 4."""
    directories: list[str] = []
    while text := reader.string():
        directories.append(text)
    names: list[tuple[str, int]] = []
    while text := reader.string():
        names.append((text, file_tail(reader)))
    return Files(directories, names, first=1)


def file_tail(reader: Reader) -> int:
    """Directory index of a file entry; its time and size follow and say nothing here."""
    directory = reader.uleb()
    reader.uleb()
    reader.uleb()
    return directory


def _files_5(reader: Reader, offset_size: int, tables: Tables) -> Files:
    """Directory and file tables of DWARF 5, which describe their own format."""
    directories = [path for path, _ in _entries_5(reader, offset_size, tables)]
    return Files(directories, _entries_5(reader, offset_size, tables), first=0)


def _entries_5(reader: Reader, offset_size: int, tables: Tables) -> list[tuple[str, int]]:
    """Path and directory index of each entry of one table."""
    layout = [(reader.uleb(), reader.uleb()) for _ in range(reader.unsigned(1))]
    count = reader.uleb()
    if count and (not layout or count > reader.end - reader.at):
        raise DamagedLinesError("the file table is damaged")
    entries: list[tuple[str, int]] = []
    for _ in range(count):
        path, directory = "", 0
        for content, form in layout:
            value = _form(reader, form, offset_size, tables)
            if content == _CONTENT_PATH and isinstance(value, str):
                path = value
            elif content == _CONTENT_DIRECTORY and isinstance(value, int):
                directory = value
        entries.append((path, directory))
    return entries


def _form(reader: Reader, form: int, offset_size: int, tables: Tables) -> str | int:
    """The value of one attribute form that DWARF 5 allows in these tables."""
    size = _FORM_SIZES.get(form)
    if size is not None:
        return reader.unsigned(size)
    if form == _FORM_STRING:
        return reader.string()
    if form == _FORM_UDATA:
        return reader.uleb()
    if form in (_FORM_LINE_STRP, _FORM_STRP):
        return tables.name(int(form == _FORM_STRP), reader.unsigned(offset_size))
    if form == _FORM_BLOCK:
        reader.unsigned(reader.uleb())
        return 0
    raise DamagedLinesError(f"the file table uses the unknown form {form:#x}")


def string_at(table: bytes, offset: int, limit: int = _SYMBOL_MAX) -> str | None:
    """The zero-ended string at an offset, cut at a length, or None outside the table."""
    if offset >= len(table):
        return None
    end = table.find(b"\0", offset, offset + limit)
    return table[offset : end if end >= 0 else offset + limit].decode("utf-8", "replace")
