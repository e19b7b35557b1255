# SPDX-License-Identifier: Apache-2.0
"""What several tests ask a tool for, asked once in a run: by content, in a folder its processes share."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "GPADVISOR_TEST_KEPT"


@contextmanager
def kept_together() -> Iterator[None]:
    """An empty folder for this process and those that it starts, until the end."""
    before = os.environ.get(FOLDER)
    with tempfile.TemporaryDirectory(prefix="kept-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(FOLDER)
            if before is not None:
                os.environ[FOLDER] = before


def kept(asked: tuple[str, ...], content: bytes, make: Callable[[], bytes]) -> bytes:
    """The answer to what is asked of a content; made anew where no folder is shared."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return make()
    digest = hashlib.sha256(repr(asked).encode())
    digest.update(content)
    path = Path(folder, digest.hexdigest())
    if not path.exists():
        handle, made = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(make())
        Path(made).replace(path)  # two that make it at once make the same
    return path.read_bytes()
