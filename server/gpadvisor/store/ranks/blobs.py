# SPDX-License-Identifier: Apache-2.0
"""Binaries, listings and sources of many snapshots, each once."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

from gpadvisor.files import open_file
from gpadvisor.store.snapshot import checked_blob, opened

KINDS: Final = ("binaries", "disassembly", "sources")


def new_blobs(
    files: Iterable[tuple[Path, tuple[str, ...]]], known_blobs: Container[tuple[str, str]], folder: Path
) -> dict[tuple[str, str], Path]:
    """Those that none before had, by kind and digest, in files of a folder.

    Args:
        files: archives with the names of such members.
        known_blobs: what others had.
        folder: where they go.

    Raises:
        ProfileFormatError: one is not what its name says.
    """
    paths: dict[tuple[str, str], Path] = {}
    for path, members in files:
        new: dict[str, tuple[str, str]] = {}
        for name in members:
            kind, _, rest = name.partition("/")
            key = kind, rest.partition(".")[0]
            if key not in known_blobs and key not in paths:
                new[name] = key
        if not new:
            continue
        with open_file(path) as stream, opened(stream, path.stat().st_size) as (archive, _):
            for name, key in new.items():
                paths[key] = folder / f"{key[0]}-{key[1]}"
                paths[key].write_bytes(checked_blob(*key, archive.read(name)))
    return paths
