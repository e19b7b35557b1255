# SPDX-License-Identifier: Apache-2.0
"""Run an application with the injection library in it, and see to its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileError, ProfileFormatError, ToolFailedError
from gpadvisor.files import cache_folder
from gpadvisor.profiler.cupti.build import build_library
from gpadvisor.profiler.cupti.discovery import TIED_SINCE, Cupti, find_cupti
from gpadvisor.profiler.cupti.host_lines import name_host_frames
from gpadvisor.profiler.cupti.options import Collection, CollectOptions, Heartbeat, KernelTimes, SamplingMode
from gpadvisor.sandbox.application import Ending, run_application
from gpadvisor.store.collection.files import live_counters
from gpadvisor.store.collection.summary import summarize_collection

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
        ended = run_application(
            command,
            environment=collection_environment(library, output, chosen, cupti),
            directory=chosen.directory,
            timeout_seconds=chosen.timeout_seconds,
            grace_seconds=chosen.grace_seconds,
            straggler_seconds=_STRAGGLER_SECONDS,
            poll=_Pulse(output, progress) if progress is not None else None,
            cancelled=cancelled,
        )
    except BaseException:
        _remove_if_empty(output)
        raise
    shutil.rmtree(output / _LIBRARY_FOLDER, ignore_errors=True)
    notes, kernels = _finish(output, chosen, cancelled if ended.ending is Ending.EXITED else None)
    live = live_counters(output)
    return Collection(
        path=output,
        status=ended.status,
        ending=ended.ending,
        seconds=ended.seconds,
        launches=live.launches,
        samples=live.samples,
        notes=notes,
        kernels=kernels,
    )


def _finish(
    output: Path, options: CollectOptions, cancelled: Callable[[], bool] | None
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Name the host's frames; what stood in the way, and the kernels that were launched."""
    try:
        summary = summarize_collection(output)
    except ProfileFormatError as error:
        return (str(error),), frozenset()
    if options.call_stacks:
        name_host_frames(output, summary.host_addresses, cancelled=cancelled)
    return summary.notes, summary.kernels


def collection_environment(
    library: Path, output: Path, options: CollectOptions, cupti: Cupti
) -> dict[str, str]:
    """The environment in which CUDA loads the library by itself; children inherit it.

    Raises:
        ToolFailedError: another profiler's library is to be injected.
    """
    environment = {**os.environ, **options.environment}
    injected = environment.get(_INJECTION)
    if injected:
        raise ToolFailedError(
            f"{_INJECTION} already names {injected}: another profiler is to be injected, and CUDA takes one;"
            " remove the variable and repeat"
        )
    return {**environment, _INJECTION: str(library), **collection_variables(output, options, cupti)}


_TIMES: Final = {KernelTimes.NONE: "0", KernelTimes.SERIAL: "1", KernelTimes.CONCURRENT: "concurrent"}


def collection_variables(output: Path, options: CollectOptions, cupti: Cupti) -> dict[str, str]:
    """What the library reads of the environment when it begins.

    Raises:
        ToolFailedError: this copy of CUPTI cannot do what is asked.
    """
    if options.mode is SamplingMode.SERIALIZED and cupti.api_version < TIED_SINCE:
        raise ToolFailedError(
            "serialized mode needs the headers of CUDA 12.4 or newer, since older ones tie no sample to its"
            " launch; install a newer CUPTI of the same CUDA release, or use --mode continuous"
        )
    variables = {
        "GPADVISOR_COLLECT_DIR": str(output),
        "GPADVISOR_COLLECT_MODE": options.mode.value,
        "GPADVISOR_COLLECT_PERIOD": str(options.period or 0),
        "GPADVISOR_COLLECT_BUFFER": str(options.hardware_buffer_bytes or 0),
        "GPADVISOR_COLLECT_STACKS": "1" if options.call_stacks else "0",
        "GPADVISOR_COLLECT_TIMES": _TIMES[options.times],
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


class _Pulse:
    """Reports now and then what there is so far."""

    def __init__(self, output: Path, progress: Callable[[Heartbeat], None]) -> None:
        self._output = output
        self._progress = progress
        self._next_at = 0.0

    def __call__(self, seconds: float, stopping: bool) -> None:  # noqa: FBT001 as run_application calls it
        """Report, if it is time to."""
        if seconds < self._next_at:
            return
        self._next_at = seconds + _BEAT_SECONDS
        live = live_counters(self._output)
        self._progress(
            Heartbeat(
                seconds=seconds,
                processes=live.processes,
                launches=live.launches,
                samples=live.samples,
                file_bytes=live.file_bytes,
                stopping=stopping,
            )
        )


__all__ = ["collect", "collection_environment"]
