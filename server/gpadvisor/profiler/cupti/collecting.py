# SPDX-License-Identifier: Apache-2.0
"""Run an application with the injection library in it, and see to its end."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileError, ProfileFormatError, ToolFailedError
from gpadvisor.profiler.application import Ending
from gpadvisor.profiler.cupti.application import Application
from gpadvisor.profiler.cupti.build import build_library, cache_folder
from gpadvisor.profiler.cupti.discovery import Cupti, find_cupti
from gpadvisor.profiler.cupti.options import Collection, CollectOptions, Heartbeat
from gpadvisor.store.collection import Live, collection_notes, live_counters

_POLL_SECONDS: Final = 0.05
_BEAT_SECONDS: Final = 0.5
_STRAGGLER_SECONDS: Final = 5.0  # for children that outlive the application
_INJECTION: Final = "CUDA_INJECTION64_PATH"
_LIBRARY_FOLDER: Final = "library"  # in the collection, where the cache is switched off


def collect(
    command: Sequence[str],
    output: Path,
    options: CollectOptions | None = None,
    *,
    progress: Callable[[Heartbeat], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Collection:
    """Run ``command`` under the collector; its standard streams stay the caller's.

    Ctrl-C and ``cancelled`` send SIGINT to the application, so that it ends as it would want; what was
    collected until then is kept. Nothing of the application's process group outlives this call.

    Args:
        command: the program and its arguments; no shell takes part.
        output: a directory to be made for the collection; it must not exist or be empty.
        options: how to collect.
        progress: called about twice a second with what there is so far.
        cancelled: asked more often; when true, the application is stopped and ``Ending.CANCELLED`` returned.

    Raises:
        ToolNotFoundError: no C compiler, no CUPTI headers, or the program does not exist.
        ToolFailedError: the library could not be built, or another profiler's is to be injected.
        ProfileError: ``output`` cannot be used.
    """
    if not command:
        raise ProfileError("no application was named; give the program and its arguments after --")
    chosen = options or CollectOptions()
    cupti = find_cupti()
    output = output.absolute()
    _make(output)
    try:
        library = build_library(cupti, cache_folder() or output / _LIBRARY_FOLDER).path
        environment = collection_environment(library, output, chosen, cupti)
        begun = time.monotonic()
        application = Application(command, directory=chosen.directory, environment=environment)
    except BaseException:
        _remove_if_empty(output)
        raise
    watch = _Watch(application, output, chosen, begun, progress, cancelled)
    status, ending = watch.to_the_end()
    seconds = time.monotonic() - begun
    shutil.rmtree(output / _LIBRARY_FOLDER, ignore_errors=True)
    live = live_counters(output)
    return Collection(
        path=output,
        status=status,
        ending=Ending.INTERRUPTED if ending is Ending.EXITED and status == -signal.SIGINT else ending,
        seconds=seconds,
        launches=live.launches,
        samples=live.samples,
        notes=_notes(output),
    )


def _notes(output: Path) -> tuple[str, ...]:
    try:
        return collection_notes(output)
    except ProfileFormatError as error:
        return (str(error),)


def collection_environment(
    library: Path, output: Path, options: CollectOptions, cupti: Cupti
) -> dict[str, str]:
    """The environment in which CUDA loads the library by itself; children inherit it.

    Raises:
        ToolFailedError: another profiler's library is to be injected.
    """
    environment = {**os.environ, **options.environment}
    other = environment.get(_INJECTION)
    if other:
        raise ToolFailedError(
            f"{_INJECTION} already names {other}: another profiler is to be injected, and CUDA takes one;"
            " remove the variable and repeat"
        )
    return {**environment, _INJECTION: str(library), **collection_variables(output, options, cupti)}


def collection_variables(output: Path, options: CollectOptions, cupti: Cupti) -> dict[str, str]:
    """What the library reads of the environment when it begins."""
    variables = {
        "GPADVISOR_COLLECT_DIR": str(output),
        "GPADVISOR_COLLECT_MODE": options.mode.value,
        "GPADVISOR_COLLECT_PERIOD": str(options.period or 0),
        "GPADVISOR_COLLECT_BUFFER": str(options.hardware_buffer_bytes or 0),
        "GPADVISOR_COLLECT_STACKS": "1" if options.call_stacks else "0",
        "GPADVISOR_COLLECT_TIMES": "1" if options.kernel_times else "0",
    }
    library = options.cupti_library or cupti.library
    return variables if library is None else {**variables, "GPADVISOR_CUPTI": str(library)}


def _make(output: Path) -> None:
    try:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise ProfileError(f"{output} exists and is not an empty directory; name another place with -o")
        output.mkdir(exist_ok=True)
    except OSError as error:
        raise ProfileError(
            f"the directory {output} cannot be made: {error.strerror or error}; name another place with -o"
        ) from error


def _remove_if_empty(output: Path) -> None:
    shutil.rmtree(output / _LIBRARY_FOLDER, ignore_errors=True)
    if output.is_dir() and not any(output.iterdir()):
        output.rmdir()


class _Watch:
    """Waits for the application, and asks it to end, ever more firmly, when it should."""

    _FIRMER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

    def __init__(
        self,
        application: Application,
        output: Path,
        options: CollectOptions,
        begun: float,
        progress: Callable[[Heartbeat], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._application = application
        self._output = output
        self._options = options
        self._begun = begun
        self._progress = progress
        self._cancelled = cancelled
        self._ending = Ending.EXITED
        self._asked = 0  # signals sent so far
        self._ask_again = 0.0
        self._next_beat = begun

    def to_the_end(self) -> tuple[int, Ending]:
        """Exit status of the application, and why it ended."""
        patience = 0.0
        try:
            while True:
                try:
                    if self._application.poll() is not None:
                        break
                    self._look()
                    time.sleep(_POLL_SECONDS)
                except KeyboardInterrupt:
                    self._stop(Ending.INTERRUPTED)
            patience = _STRAGGLER_SECONDS if self._ending is Ending.EXITED else _POLL_SECONDS
        finally:
            status = self._application.end(patience)
        return status, self._ending

    def _look(self) -> None:
        now = time.monotonic()
        if self._ending is Ending.EXITED:
            limit = self._options.timeout_seconds
            if limit is not None and now - self._begun > limit:
                self._stop(Ending.TIMED_OUT)
            elif self._cancelled is not None and self._cancelled():
                self._stop(Ending.CANCELLED)
        elif now > self._ask_again:
            self._stop(self._ending)
        if self._progress is not None and now >= self._next_beat:
            self._next_beat = now + _BEAT_SECONDS
            self._progress(_heartbeat(live_counters(self._output), now - self._begun, self._asked > 0))

    def _stop(self, why: Ending) -> None:
        """The first time SIGINT, then SIGTERM, then SIGKILL."""
        if self._ending is Ending.EXITED:
            self._ending = why
        self._application.send(self._FIRMER[min(self._asked, len(self._FIRMER) - 1)])
        self._asked += 1
        grace = self._options.grace_seconds
        self._ask_again = time.monotonic() + (grace if self._asked == 1 else grace / 2)


def _heartbeat(live: Live, seconds: float, stopping: bool) -> Heartbeat:  # noqa: FBT001 a field of the value
    return Heartbeat(
        seconds=seconds,
        processes=live.processes,
        launches=live.launches,
        samples=live.samples,
        file_bytes=live.file_bytes,
        stopping=stopping,
    )


__all__ = ["collect", "collection_environment"]
