# SPDX-License-Identifier: Apache-2.0
"""The folders that may be read, and whether a path is in one of them once its links are followed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpadvisor.errors import UsageError
from gpadvisor.report.words import clean


def folders_of(uris: Iterable[str]) -> tuple[Path, ...]:
    """The folders of ``file`` URIs that are there, with their links followed."""
    paths = []
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        path = Path(os.path.realpath(unquote(parts.path)))
        if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.is_dir():
            paths.append(path)
    return tuple(dict.fromkeys(paths))


def path_inside(text: str, roots: Sequence[Path]) -> Path:
    """The real place of a path, from the first root where it is relative.

    Raises:
        UsageError: there is no root, or the path leads out of all of them.
    """
    if not roots:
        raise UsageError("the client names no folder that is here, so that nothing may be read")
    for root in roots:
        path = Path(os.path.realpath(root / text))
        if is_inside(path, roots):
            if path.exists() or root is roots[-1]:
                return path
        elif not Path(text).is_absolute() and root is not roots[-1]:
            continue
        else:
            break
    folders = ", ".join(str(root) for root in roots[:3])
    raise UsageError(f"{clean(text, 200)} is outside of {clean(folders, 400)}, so that it is not read")


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a file is below one of the folders once its links are followed."""
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(root) for root in roots)
