# SPDX-License-Identifier: Apache-2.0
"""Collecting with CUPTI: the injection library rides in the application, whose kernels run as they would."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.errors import ProfileMismatchError, ToolFailedError, UsageError
from gpadvisor.pipeline.settings import Settings
from gpadvisor.profiler.collect.keep import kept_until_written
from gpadvisor.profiler.collect.run import Profiled, ProfileRequest, Say, profiled, snapshot_of
from gpadvisor.profiler.cupti import Collection, CollectOptions, SamplingMode, collect, find_cupti
from gpadvisor.profiler.cupti.discovery import driver_version
from gpadvisor.profiler.cupti.options import Heartbeat, KernelTimes
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.report.names import base_name
from gpadvisor.sandbox.application import Ending
from gpadvisor.store.collection.picks import Picks, write_picks
from gpadvisor.store.paths import is_collection

_NAMES: Final = 5
_NOTHING: Final = "nothing was collected"
_MODES: Final[Mapping[SamplingMode, str]] = {
    SamplingMode.CONTINUOUS: "kernels run once each, one after another for their times",
    SamplingMode.SERIALIZED: "kernels run one at a time, once each, so that samples belong to launches",
}
_OVERLAPPING: Final = "kernels run as they would, once each"
_BUFFER_MIB: Final = 512
"""CUPTI's own choice."""


def collect_with_cupti(
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> Profiled:
    """One run of the application with the library in it.

    Raises:
        UsageError: an option is wrong, or does not go with another.
        ProfileMismatchError: no kernel has the name that was asked for.
        ToolError: the library cannot be built, or nothing was collected.
    """
    pattern, mode = _pattern(request), _mode(request)
    release = find_cupti().major
    limits = "" if request.kernel is None else "; the other kernels are timed, too"
    overlap = mode is SamplingMode.CONTINUOUS and request.times != "serial"
    how = _OVERLAPPING if overlap else _MODES[mode]
    memory = f"{request.buffer_mib or _BUFFER_MIB} MiB of GPU memory for samples"
    say(f"CUPTI of CUDA {release}: {how}; {memory}{limits}")
    given_library = os.environ.get("GPADVISOR_CUPTI")
    options = CollectOptions(
        mode=mode,
        period=request.period,
        times=KernelTimes(request.times),
        hardware_buffer_bytes=None if request.buffer_mib is None else request.buffer_mib << 20,
        timeout_seconds=request.timeout_seconds,
        cupti_library=Path(given_library) if given_library else None,
    )
    with kept_until_written(request, say) as folder:
        collection = collect(
            request.application,
            folder / "collection",
            options,
            progress=lambda beat: progress(_words(beat)),
            cancelled=cancelled,
        )
        if not collection.launches:
            raise ToolFailedError(_nothing(collection))
        reason = "; ".join(collection.notes) or "the collector was given no samples"
        step = Ladder.PC_SAMPLES if collection.samples else Ladder.STATIC
        if pattern is not None or request.picks_launches:
            write_picks(collection.path, _picks(request, pattern, collection.kernels))
        profile, written = snapshot_of(collection.path, request, settings, step, reason, progress)
    ended = () if collection.status == 0 else (_end(collection.status),)
    if collection.ending is not Ending.EXITED:
        ended = (f"the run was {collection.ending.value}; the snapshot holds what was collected until then",)
    return profiled(
        request,
        profile,
        f"CUPTI of CUDA {release}",
        step=step,
        reason=reason,
        ending=collection.ending,
        notes=(*ended, *collection.notes, *written),
    )


def _nothing(collection: Collection) -> str:
    """Why no launch was seen, and what to do."""
    if is_collection(collection.path):
        why = "; ".join(collection.notes) or "the application launched no kernel"
    elif driver_version() is None:
        why = "this machine has no NVIDIA driver that a program could use"
    else:
        why = "the application did not use CUDA, or not in a process that inherits its environment"
    sentence = (
        why if why.startswith(_NOTHING) else f"{_NOTHING}: {why}"
    )  # the library may have said so itself
    ended = "" if collection.status == 0 else f"; {_end(collection.status)}"
    return f"{sentence}{ended}; gpadvisor doctor looks at this machine"


def _end(status: int) -> str:
    if status >= 0:
        return f"the application ended with status {status}"
    try:
        return f"the application was ended by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"the application was ended by signal {-status}"


def _pattern(request: ProfileRequest) -> re.Pattern[str] | None:
    try:
        return None if request.kernel is None else re.compile(request.kernel)
    except re.error as error:
        raise UsageError(
            f"--kernel {request.kernel!r} is no regular expression ({error}); correct it"
        ) from error


def _mode(request: ProfileRequest) -> SamplingMode:
    """Serialized where single launches are picked: in continuous mode samples belong to no launch."""
    if request.picks_launches and request.serialized is False:
        raise UsageError(
            "in continuous mode samples belong to kernels and not to launches, so that none can be picked;"
            " leave out --mode continuous, or --launch-skip and --launch-count"
        )
    serialized = request.picks_launches if request.serialized is None else request.serialized
    return SamplingMode.SERIALIZED if serialized else SamplingMode.CONTINUOUS


def _picks(request: ProfileRequest, pattern: re.Pattern[str] | None, launched: frozenset[str]) -> Picks:
    """The launches that were asked for; names are compared as Nsight Compute does it, without namespaces."""
    names = {kernel: base_name(demangle(kernel)) for kernel in launched}
    kernels = frozenset(kernel for kernel, name in names.items() if pattern is None or pattern.search(name))
    if launched and not kernels:
        kernel_names = sorted(set(names.values()))
        more = f" and {len(kernel_names) - _NAMES} more" if len(kernel_names) > _NAMES else ""
        raise ProfileMismatchError(
            f"no kernel has a name that --kernel {request.kernel} matches; the application launched "
            f"{', '.join(kernel_names[:_NAMES])}{more}"
        )
    return Picks(kernels=kernels, skip=request.launch_skip, count=request.launch_count)


def _words(beat: Heartbeat) -> str:
    verb = "stopping" if beat.stopping else "profiling"
    return f"{verb}, {beat.launches:,} launches, {beat.samples:,} samples, {beat.seconds:.0f} s"
