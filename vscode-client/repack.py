# SPDX-License-Identifier: Apache-2.0
"""Writes an archive anew, with nothing of when, where and by whom it was made: `repack.py MADE TARGET`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Final

_FIRST: Final = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows
_MODE: Final = 0o100644


def repack(made: Path, target: Path) -> None:
    """The same files with the same contents, sorted, all of one date and mode."""
    with zipfile.ZipFile(made) as before, zipfile.ZipFile(target, "w") as after:
        for name in sorted(before.namelist()):
            entry = zipfile.ZipInfo(name, _FIRST)
            entry.external_attr = _MODE << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            after.writestr(entry, before.read(name), compresslevel=9)


if __name__ == "__main__":
    repack(Path(sys.argv[1]), Path(sys.argv[2]))
