# SPDX-License-Identifier: Apache-2.0
"""A profile and its code, waited for in a thread while the analysis is imported and kernels are analysed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.opening import being_read
from gpadvisor.pipeline.request import Request
from gpadvisor.sandbox.children import SINGLE_THREADED

if TYPE_CHECKING:
    from gpadvisor.model.profile import KernelProfile, Profile
    from gpadvisor.pipeline.programs import Disassembled


class Opened:
    """A profile that is read, and its cubins that are disassembled, one after the other."""

    def __init__(
        self, read: Callable[[], Profile], request: Request, cache: Cache, pool: ThreadPoolExecutor
    ) -> None:
        """Begin with the profile; ``read`` waits for it."""
        self._request, self._cache, self._pool = request, cache, pool
        self._stopped = threading.Event()
        self._cubins: dict[str, Future[Disassembled]] = {}
        self._profile = pool.submit(self._begin, read)

    def profile(self) -> Profile:
        """The profile, once it is read.

        Raises:
            ProfileError: the file is damaged, foreign or too large for the limits.
        """
        return self._profile.result()

    def cubin(self, digest: str) -> Disassembled:
        """One of its cubins, once it is disassembled.

        Raises:
            CubinError: the bytes are no cubin.
            ToolError: no disassembler could read it.
        """
        if digest not in self._cubins:
            self._cubins[digest] = self._pool.submit(self._open, self.profile(), digest)
        return self._cubins[digest].result()

    def stop(self) -> None:
        """Whatever has not come yet is not wanted any more."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, read: Callable[[], Profile]) -> Profile:
        profile = read()
        launch = None if self._request.prefer_launch else self._request.launch
        for kernel in asked_about(profile, self._request):
            is_selected = kernel.binary in profile.binaries and launch in {None, kernel.launch.index}
            if is_selected and kernel.binary is not None and kernel.binary not in self._cubins:
                self._cubins[kernel.binary] = self._pool.submit(self._open, profile, kernel.binary)
        return profile

    def _open(self, profile: Profile, digest: str) -> Disassembled:
        from gpadvisor.pipeline.programs import open_cubin  # noqa: PLC0415 see prefetched

        return open_cubin(
            profile.binaries[digest],
            _wanted_sections(profile, digest, self._request),
            stored=profile.disassemblies.get(digest),
            timeout_seconds=self._request.settings.tool_timeout_seconds,
            cache=self._cache,
            cancelled=self._stopped.is_set,
        )


@contextmanager
def _single_threaded() -> Iterator[None]:
    """While numpy is imported, which else starts threads for linear algebra; nothing here has any."""
    added = SINGLE_THREADED.keys() - os.environ.keys()
    os.environ.update({name: SINGLE_THREADED[name] for name in added})
    try:
        yield
    finally:  # what is started later, an application among it, has as many as it likes
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def prefetched(path: Path, request: Request, cache: Cache) -> Iterator[Opened]:
    """Start what reads a profile; at the end of the context, whatever of it still runs is stopped."""
    with ThreadPoolExecutor(1) as pool, being_read(path, request.settings) as read:
        # Imported once the child runs, and before the thread needs it: no two threads import at a time.
        with _single_threaded():
            import gpadvisor.pipeline.programs  # noqa: PLC0415 the child runs; used by the thread
            import gpadvisor.store.parts  # noqa: PLC0415, F401 the child runs; for the thread

        opened = Opened(read, request, cache, pool)
        try:
            yield opened
        finally:
            opened.stop()


def asked_about(profile: Profile, request: Request) -> list[KernelProfile]:
    """Launches of the kernels that were asked for.

    A profile has some launches for their time alone; they are looked at when they are named.
    """
    is_narrowed = request.kernel is not None or request.launch is not None
    return [
        kernel
        for kernel in profile.kernels
        if (is_narrowed or kernel.picked) and request.wants(kernel.launch.demangled, kernel.launch.kernel)
    ]


def _wanted_sections(profile: Profile, digest: str, request: Request) -> frozenset[str]:
    """Sections of a cubin that any wanted launch has samples, counts or its kernel in."""
    return frozenset(
        name
        for kernel in profile.kernels
        if kernel.binary == digest and request.wants(kernel.launch.demangled, kernel.launch.kernel)
        for name in (*kernel.sections, kernel.launch.kernel)
    )
