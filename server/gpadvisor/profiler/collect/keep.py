# SPDX-License-Identifier: Apache-2.0
"""What was measured is not lost: a collection is removed once its snapshot is there, and never before."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpadvisor.errors import ProfileError
from gpadvisor.profiler.collect.run import ProfileRequest, Say
from gpadvisor.store.collection.files import live_counters
from gpadvisor.store.paths import is_collection


@contextlib.contextmanager
def kept_until_written(request: ProfileRequest, say: Say) -> Iterator[Path]:
    """A folder for a collector's files, which goes with the context only where that ends well.

    Else it goes to where the snapshot would have been, if something was measured, and the user is told;
    however the context is left, a signal's exception included.
    """
    folder = Path(tempfile.mkdtemp(prefix="gpadvisor-"))
    try:
        yield folder
    except BaseException:
        for measured in _measured(folder):
            with contextlib.suppress(OSError):  # nobody may be there to be told
                say(f"what was measured is kept: gpadvisor import {_moved(measured, request.output)}")
        if not _measured(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path) -> list[Path]:
    """Collections with launches, and reports."""
    paths = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if is_collection(path):
            with contextlib.suppress(ProfileError, OSError):
                paths += [path] if live_counters(path).launches else []
        elif path.name.startswith("report") and path.is_file() and path.stat().st_size:
            paths.append(path)
    return paths


def _moved(path: Path, output: Path) -> Path:
    """The same beside the snapshot's place, as temporary folders go with a job; else where it was."""
    target = output.absolute().with_name(f"{output.name}.{'collection' if path.is_dir() else path.name}")
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{target.name}-{number}")
    try:
        shutil.move(path, target)
    except OSError:
        with contextlib.suppress(OSError):
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        return path
    with contextlib.suppress(OSError):
        path.parent.rmdir()
    return target
