# SPDX-License-Identifier: Apache-2.0
"""Replace directories, in paths and inside the debug sections of a cubin, by placeholders of equal length.

Equal length keeps every offset of the file, so line numbers, code and symbols stay as they are.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

_LINES: Final = (b"debug_line", b"debug_line_sass")
_LEAST_FOLDERS: Final = 2  # of a path that is told apart from other text
_LEAST_NAME: Final = 3  # letters of a folder that is told apart from numbers
_ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz"
_SEPARATORS: Final = re.compile(rb"([/\\])")
_NAME: Final = rb"[^\x00-\x1f\x7f\"<>|*?:/\\]+"
# A path of at least two components; shorter ones are more often text or numbers than paths.
_PATH: Final = re.compile(rb"(?:[A-Za-z]:)?[/\\]%s(?:[/\\]%s)+" % (_NAME, _NAME))
_IN_TEXT: Final = re.compile(
    rb"(?<![\w:/.])(?:[A-Za-z]:)?[/\\][^\s\"'<>|*?:/\\]+(?:[/\\][^\s\"'<>|*?:/\\,;)]+)+"
)
_BEFORE_SEPARATOR: Final = re.compile(rb"%s(?=[/\\])" % _NAME)
_FILE: Final = re.compile(rb"\.(?:cuh?|c|h|cc|hh|cpp|cxx|hpp|hxx|inl|inc|ipp|tcc|ptx|py|jl|so[\d.]*)$")
# What stays as it is: machine code, and tables of numbers and names that code refers to.
_NUMBERS: Final = re.compile(rb"(?:\.nv\.merc)?\.(?:text|nv\.info|rela?\.|symtab|nv\.callgraph)")
_DATA: Final = re.compile(rb"(?:\.nv\.merc)?\.nv\.constant|\.nv\.merc(?!.*(?:debug|global))")
"""Where only what is known for a folder's name is told apart from numbers."""


class Placeholders:
    """One placeholder per directory name, the same wherever that name stands."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._replaced: dict[bytes, bytes] = {}  # whole folders

    def path(self, path: bytes, *, keep_last: bool = True) -> bytes:
        """The path with its directories replaced, and its last part too unless kept."""
        pieces = _SEPARATORS.split(path)
        replaced_parts = len(pieces) - 1 if keep_last else len(pieces)
        result = [
            piece
            if index >= replaced_parts or index % 2 or piece in {b"", b".", b".."}
            else self._component(piece)
            for index, piece in enumerate(pieces)
        ]
        if replaced_parts > 2 * _LEAST_FOLDERS:
            self._replaced[b"".join(pieces[:replaced_parts]).rstrip(b"/\\")] = b"".join(
                result[:replaced_parts]
            ).rstrip(b"/\\")
        return b"".join(result)

    def within(self, text: str) -> str:
        """A sentence with the directories of the paths in it replaced."""
        data = text.encode("utf-8", "surrogatepass")
        for folder in sorted(self._replaced, key=len, reverse=True):
            data = data.replace(folder, self._replaced[folder])
        return _IN_TEXT.sub(lambda match: self._unless_made(match[0]), data).decode("utf-8", "replace")

    def _unless_made(self, path: bytes) -> bytes:
        keeps = self._is_file(path)
        folders = _SEPARATORS.split(path)[2::2]
        stand_ins = set(self._known.values())
        return (
            path
            if stand_ins.issuperset(folders[: len(folders) - keeps])
            else self.path(path, keep_last=keeps)
        )

    def leaks(self, data: bytes) -> bytes | None:
        """A folder that was replaced elsewhere and still stands there."""
        return next((folder for folder in self._replaced if folder in data), None)

    def text(self, path: str) -> str:
        """The same for text; characters outside ASCII become placeholders, too."""
        return self.path(path.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    def _component(self, name: bytes) -> bytes:
        if name not in self._known:
            number = len(self._known)
            letters = bytearray(b"x" * len(name))
            for position in range(len(name) - 1, -1, -1):
                number, digit = divmod(number, len(_ALPHABET))
                letters[position] = _ALPHABET[(digit - 3) % len(_ALPHABET)]
                if not number:
                    break
            self._known[name] = bytes(letters)
        return self._known[name]

    def cubin(self, cubin: bytes) -> bytes:
        """The cubin with the directories in all its sections but code replaced."""
        out = bytearray(cubin)
        try:
            for name, start, end in _sections(cubin):
                if _NUMBERS.match(name):
                    continue
                if name.endswith(_LINES):
                    for index, stop, is_directory in _line_strings(cubin, start, end):
                        out[index:stop] = self.path(cubin[index:stop], keep_last=not is_directory)
                elif _DATA.match(name) is None:
                    for match in _PATH.finditer(cubin, start, end):
                        out[match.start() : match.end()] = self.path(
                            match[0], keep_last=self._is_file(match[0])
                        )
                self._replace_known(out, start, end)
        except (struct.error, IndexError, ValueError):
            return cubin if not _mentions_paths(cubin) else bytes(_blanked(cubin))
        return bytes(out)

    def _is_file(self, path: bytes) -> bool:
        file_name = _SEPARATORS.split(path)[-1]
        return _FILE.search(file_name) is not None and file_name not in self._known

    def _replace_known(self, out: bytearray, start: int, end: int) -> None:
        """Names of folders wherever a separator follows, as in a relative path that the code prints."""
        for match in list(_BEFORE_SEPARATOR.finditer(out, start, end)):
            text = match[0]
            begins = (
                index for index in range(len(text)) if not (index and text[index - 1 : index].isalnum())
            )
            suffix = next((text[begin:] for begin in begins if text[begin:] in self._known), b"")
            if len(suffix) >= _LEAST_NAME:
                out[match.end() - len(suffix) : match.end()] = self._known[suffix]


def _mentions_paths(cubin: bytes) -> bool:
    return _PATH.search(cubin) is not None


def _blanked(cubin: bytes) -> bytearray:
    """For an image whose sections cannot be walked: every path-like run of text is blanked."""
    out = bytearray(cubin)
    for match in _PATH.finditer(cubin):
        out[match.start() : match.end()] = b"x" * (match.end() - match.start())
    return out


def _sections(cubin: bytes) -> Iterator[tuple[bytes, int, int]]:
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQ", cubin, table + index * size) for index in range(count)]
    if not rows:
        return
    base = rows[names][4]
    for name, _, _, _, offset, length in rows:
        if offset + length <= len(cubin):
            yield cubin[base + name : cubin.index(b"\0", base + name)], offset, offset + length


def _line_strings(cubin: bytes, position: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Extent of each name in the headers of a DWARF 2 to 4 line section, and whether it is a directory."""
    while position + 15 < end:
        length, version, header = struct.unpack_from("<IHI", cubin, position)
        stop = position + 4 + length
        if stop > end or not 2 <= version <= 5:
            return
        if version == 5:  # describes its own tables, whose names may stand in place
            (size,) = struct.unpack_from("<I", cubin, position + 8)
            for match in _PATH.finditer(cubin, position + 12, min(position + 12 + size, stop)):
                yield *match.span(), _FILE.search(match.group()) is None
            position = stop
            continue
        header_end = min(position + 10 + header, stop)
        # Before the directories: the sizes of instructions and opcodes, and opcode_base
        opcode_base = position + 14 + (version >= 4)
        cursor = opcode_base + max(cubin[opcode_base], 1)
        for is_directory in (True, False):
            while cursor < header_end and cubin[cursor]:
                name_end = cubin.index(b"\0", cursor, header_end)
                yield cursor, name_end, is_directory
                cursor = name_end + 1
                for _ in range(0 if is_directory else 3):
                    while cubin[cursor] & 0x80:
                        cursor += 1
                    cursor += 1
            cursor += 1
        position = stop
