# SPDX-License-Identifier: Apache-2.0
"""Readable names of functions and files, from the names of symbol and line tables."""

from __future__ import annotations

import functools
import re
from typing import Final

_ESCAPED: Final = re.compile(r"((?:\\[23][0-7]{2})+)(/[23][0-7]{2})?")
"""Bytes beyond ASCII as the compiler writes them into PTX and ptxas into the line table: ``\303\266``.

ptxas takes the last backslash for the end of the folder, so that a slash may stand in its place.
"""


_WINDOWS: Final = re.compile(r"[A-Za-z]:\\\\")
"""A drive, and the backslash behind it as the compiler writes it: as two; the last of a folder is one."""
_SEPARATOR: Final = re.compile(r"\\+/?|/")


def unescaped_path(path: str) -> str:
    """The path with its escaped bytes as the characters they are; what is no UTF-8 stays as it stands."""
    if "\\" not in path:
        return path
    text = _ESCAPED.sub(_characters, path)
    return _SEPARATOR.sub(r"\\", text) if _WINDOWS.match(text) else text


def _characters(match: re.Match[str]) -> str:
    run, final = match.group(1), match.group(2) or ""
    for escaped, suffix in ((run + final.replace("/", "\\"), ""), (run, final)):
        try:
            return bytes(int(octal, 8) for octal in escaped.split("\\")[1:]).decode("utf-8") + suffix
        except UnicodeDecodeError:
            continue
    return match.group()


@functools.lru_cache(maxsize=65_536)
def demangle(name: str) -> str:
    """The C++ spelling of a symbol, or the name itself where it is no mangled name.

    A helper in the section of a kernel is called ``$<kernel>$<function>``; its own name is the last part.
    """
    # Reading its tables costs more than a tenth of a second of start-up, which most commands need not pay.
    import demangle as itanium  # noqa: PLC0415  # start-up time, as said above

    symbol = name.rsplit("$", 1)[-1] if name.startswith("$") else name
    return itanium.demangle(symbol or name, language="itanium", style="gnu")
