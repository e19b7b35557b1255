# SPDX-License-Identifier: Apache-2.0
"""Collecting inside a Python process that runs already, such as a notebook's."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gpadvisor.errors import ProfileError, ToolFailedError, UsageError
from gpadvisor.files import cache_folder
from gpadvisor.model.profile import Device, Profile
from gpadvisor.profiler.cupti.build import build_library
from gpadvisor.profiler.cupti.collecting import collection_variables
from gpadvisor.profiler.cupti.devices import visible_devices
from gpadvisor.profiler.cupti.discovery import find_cupti
from gpadvisor.profiler.cupti.options import CollectOptions
from gpadvisor.store.collection.summary import summarize_collection
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot

_FOLDER: Final = "gpadvisor-in-process-"


class ProcessSession:
    """A block of this process under the collector; its profile is there when the block has ended.

    CUDA may be in use already: machine code that was loaded before stays unseen, and the profile says which
    kernels that concerns. One block at a time; further blocks may follow.
    """

    def __init__(self, options: CollectOptions | None = None) -> None:
        self._options = options or CollectOptions()
        if self._options.timeout_seconds is not None or self._options.directory is not None:
            raise UsageError(
                "a time limit and a directory are for applications that are started; leave them out"
            )
        self._library: ctypes.CDLL | None = None
        self._profile: Profile | None = None
        self.path: Path | None = None

    def __enter__(self) -> Self:
        """Begin to collect.

        Raises:
            ToolNotFoundError: no C compiler or no CUPTI headers.
            ToolFailedError: CUPTI refuses, or a collection is under way already; the message says what to do.
        """
        cupti = find_cupti()
        base = _base_folder()
        self.path = Path(tempfile.mkdtemp(dir=base))
        path = build_library(cupti, cache_folder() or base / "library").path
        library = ctypes.CDLL(str(path))
        with _variables(collection_variables(self.path, self._options, cupti)):
            begun = library.gpadvisor_start()
        if not begun:
            raise ToolFailedError(self._why_not())
        self._library = library
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the collection, also where the block has failed."""
        if self._library is not None:
            self._library.gpadvisor_stop()
            self._library = None

    @property
    def profile(self) -> Profile:
        """What was collected.

        Raises:
            ProfileError: the block has not ended.
        """
        if self.path is None or self._library is not None:
            raise ProfileError("the profile is there when the with block has ended; read it after that")
        if self._profile is None:
            self._profile = load_profile(self.path)
        return self._profile

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs that this process sees, used or not.

        Raises:
            ToolNotFoundError: cuda-python is not installed.
            ToolFailedError: the driver refuses.
        """
        return visible_devices()

    def save(self, path: str | Path) -> Path:
        """Write a snapshot that every command of gpadvisor reads."""
        write_snapshot(self.profile, Path(path))
        return Path(path)

    def _why_not(self) -> str:
        with contextlib.suppress(ProfileError):
            for note in summarize_collection(self.path or Path()).notes:
                return note
        return "this process is being collected already; end that before another begins"


@functools.cache
def _base_folder() -> Path:
    """One folder for all blocks of this process, since a later one takes machine code from an earlier one."""
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """The environment with these variables; the library reads them when it begins."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
