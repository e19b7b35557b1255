# SPDX-License-Identifier: Apache-2.0
"""Profiling on another machine: collect there, bring the snapshot back.

Where gpadvisor is installed there, it collects. Where it is not, nothing is installed: the host's Nsight
Compute runs, and its report is imported here.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from gpadvisor import __version__
from gpadvisor.errors import ToolError, ToolFailedError, ToolNotFoundError
from gpadvisor.pipeline.settings import Settings
from gpadvisor.profiler.collect.run import Collector, ProfileRequest, Say, snapshot_of
from gpadvisor.profiler.collect.with_ncu import climb, ncu_options
from gpadvisor.profiler.ncu.abilities import Abilities, abilities_of
from gpadvisor.profiler.ncu.collect import no_report
from gpadvisor.profiler.ncu.command_line import command_line
from gpadvisor.profiler.ncu.messages import Log
from gpadvisor.profiler.ncu.options import NcuOptions
from gpadvisor.sandbox.application import Ended, Ending
from gpadvisor.sandbox.ssh import Remote, connect

_MODES: Final = {True: "serialized", False: "continuous"}

# The name of the folder there is made here, and nothing else is ever removed.
_PREFIX: Final = "gpadvisor-"
_PROBE: Final = """\
umask 077
cd "${TMPDIR:-/tmp}" && mkdir @NAME@ && cd @NAME@ && echo "folder $(pwd -P)"
found=$(command -v gpadvisor) && echo "gpadvisor $found $("$found" --version 2>/dev/null)"
for ncu in "$(command -v ncu)" /usr/local/cuda/bin/ncu /usr/local/cuda-*/bin/ncu \\
    /opt/nvidia/nsight-compute/*/ncu; do
  [ -x "$ncu" ] && echo "ncu $ncu"
done
true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotelyProfiled:
    """A finished run on another machine."""

    snapshot: Path
    by: str  # "gpadvisor 0.1.0 on gpu-box", "ncu 2024.1.1 on gpu-box"
    ending: Ending
    fetched_bytes: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the probe saw."""

    folder: str
    gpadvisor: tuple[str, str] | None  # path and version
    ncu: tuple[str, ...]


def profile_on_host(
    host: str,
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    ssh_options: tuple[str, ...] = (),
    directory: str | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> RemotelyProfiled:
    """Run the application on ``host`` under a collector and write a snapshot here.

    Raises:
        UsageError: the host is no host.
        ToolError: it cannot be reached, has no collector, or nothing was collected; where the connection was
            lost, the message says where the data is.
    """
    progress(f"connecting to {host}")
    with connect(host, ssh_options) as remote:
        probed = _probe(remote)
        try:
            if probed.gpadvisor is not None and probed.gpadvisor[1] == __version__:
                done = _by_gpadvisor(remote, probed, request, directory, progress, cancelled)
            else:
                _say_what_is_sent(host, probed, say)
                done = _by_ncu(
                    remote, probed, request, settings, directory, say, progress, cancelled=cancelled
                )
        except BaseException:
            if _holds_something(remote, probed.folder):
                say(
                    f"what was collected lies in {host}:{probed.folder} and nothing there was removed; "
                    f"fetch it with scp -r {host}:{probed.folder} ."
                )
            else:
                _remove(remote, probed.folder)
            raise
        _remove(remote, probed.folder)
        return done


def _probe(remote: Remote) -> _Found:
    name = f"{_PREFIX}{secrets.token_hex(8)}"
    folder, gpadvisor, ncu = "", None, []
    for line in remote.ask(_PROBE.replace("@NAME@", name)).splitlines():
        kind, _, value = line.partition(" ")
        if kind == "folder":
            folder = value
        elif kind == "gpadvisor":
            path, _, version = value.partition(" ")
            gpadvisor = (path, version.rpartition(" ")[2])
        elif kind == "ncu" and value not in ncu:
            ncu.append(value)
    if PurePosixPath(folder).name != name or not folder.startswith("/"):
        raise ToolFailedError(f"{remote.host} has no room for temporary files: no folder could be made there")
    return _Found(folder=folder, gpadvisor=gpadvisor, ncu=tuple(ncu))


def _holds_something(remote: Remote, folder: str) -> bool:
    """Whether a measurement lies there, or may: a host that does not answer is asked for nothing."""
    try:
        files = remote.ask(f"ls -A {shlex.quote(folder)}").split()
    except (ToolError, KeyboardInterrupt):
        return True
    return any(not name.endswith(".log") for name in files)


def _say_what_is_sent(host: str, probed: _Found, say: Say) -> None:
    why = (
        f"{host} has no gpadvisor"
        if probed.gpadvisor is None
        else f"{host} has gpadvisor {probed.gpadvisor[1]}, this is {__version__}"
    )
    if not probed.ncu:
        raise ToolNotFoundError(
            f"{why} and no Nsight Compute; install one of them there: gpadvisor {__version__} by pip install "
            "from a copy of its source, Nsight Compute with a CUDA toolkit"
        )
    say(f"{why}: nothing is installed there; its own ncu runs, and the report is read here")


def _by_gpadvisor(
    remote: Remote,
    probed: _Found,
    request: ProfileRequest,
    directory: str | None,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> RemotelyProfiled:
    path, version = probed.gpadvisor or ("gpadvisor", __version__)
    snapshot = f"{probed.folder}/run.gpadvisor"
    ended = remote.run(
        [path, "profile", "--no-advice", "-o", snapshot, *_options(request), "--", *request.application],
        directory=directory,
        timeout_seconds=request.timeout_seconds,
        cancelled=cancelled,
    )
    if ended.status != 0 and not _exists(remote, snapshot):
        raise ToolFailedError(
            f"gpadvisor on {remote.host} ended with status {ended.status} and without a snapshot; "
            "what it said stands above"
        )
    size = remote.fetch(snapshot, request.output, progress=_fetching(progress))
    return RemotelyProfiled(
        snapshot=request.output,
        by=f"gpadvisor {version} on {remote.host}",
        ending=ended.ending,
        fetched_bytes=size,
        notes=(),
    )


def _by_ncu(
    remote: Remote,
    probed: _Found,
    request: ProfileRequest,
    settings: Settings,
    directory: str | None,
    say: Say,
    progress: Say,
    *,
    cancelled: Callable[[], bool] | None,
) -> RemotelyProfiled:
    ncu = _working_ncu(remote, probed.ncu)
    run = _Run(remote, probed.folder, ncu, request, directory, cancelled)
    step = climb(f"{ncu} on {remote.host}", ncu_options(request), run.once, say)
    with tempfile.TemporaryDirectory(prefix="gpadvisor-") as folder:
        local = Path(folder) / "report.ncu-rep"
        size = remote.fetch(run.report, local, progress=_fetching(progress))
        _, notes = snapshot_of(local, request, settings, step.step, step.reason, progress)
    if request.timeline:
        notes = (*notes, f"no timeline was recorded: that takes gpadvisor on {remote.host}")
    return RemotelyProfiled(
        snapshot=request.output,
        by=f"{ncu} on {remote.host}",
        ending=step.found.ending,
        fetched_bytes=size,
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """The host's ncu, run as often as the ladder has steps."""

    remote: Remote
    folder: str
    ncu: Abilities
    request: ProfileRequest
    directory: str | None
    cancelled: Callable[[], bool] | None

    @property
    def report(self) -> str:
        """Where it lies on the host."""
        return f"{self.folder}/report.ncu-rep"

    def once(self, options: NcuOptions) -> Ended:
        """One run that leaves a report.

        Raises:
            ToolFailedError: it left none; a `CounterPermissionError` where the driver refused the counters.
        """
        log = f"{self.folder}/ncu.log"
        command = command_line(
            self.ncu,
            options,
            report=Path(self.report),
            log=Path(log),
            application=self.request.application,
        )
        ended = self.remote.run(
            command,
            directory=self.directory,
            timeout_seconds=self.request.timeout_seconds,
            cancelled=self.cancelled,
        )
        if not _exists(self.remote, self.report):
            ncu_log = Log()
            ncu_log.take(self.remote.ask(f"cat < {shlex.quote(log)} || true").splitlines())
            raise no_report(self.ncu, self.request.application, ncu_log, ended)
        return ended


def _working_ncu(remote: Remote, paths: tuple[str, ...]) -> Abilities:
    latest_error: ToolError | None = None
    for path in paths:
        quoted = shlex.quote(path)
        try:
            return abilities_of(Path(path), lambda option, q=quoted: remote.ask(f"{q} {option}"))  # type: ignore[misc] # q is bound for this path
        except ToolError as error:
            latest_error = error
    raise ToolNotFoundError(f"no ncu on {remote.host} works: {latest_error}")


def _options(request: ProfileRequest) -> list[str]:
    """The options of ``gpadvisor profile`` that make the same request."""
    options: list[str] = []
    for name, value in (
        ("--collector", None if request.collector is Collector.AUTO else request.collector.value),
        ("--mode", None if request.serialized is None else _MODES[request.serialized]),
        ("--kernel", request.kernel),
        ("--launch-skip", request.launch_skip or None),
        ("--launch-count", request.launch_count),
        ("--period", request.period),
        ("--times", None if request.times == "serial" else request.times),
        ("--buffer", request.buffer_mib),
        ("--timeout", request.timeout_seconds),
    ):
        if value is not None:
            options += [name, str(value)]
    options += ["--timeline"] if request.timeline else []
    return [*options, "--samples-only"] if request.samples_only else options


def _fetching(progress: Say) -> Callable[[int], None]:
    return lambda done: progress(f"fetching, {done / 1e6:.1f} MB")


def _exists(remote: Remote, path: str) -> bool:
    return remote.ask(f"if [ -s {shlex.quote(path)} ]; then echo yes; fi").strip() == "yes"


def _remove(remote: Remote, folder: str) -> None:
    if not PurePosixPath(folder).name.startswith(_PREFIX):
        return
    with contextlib.suppress(ToolError):  # it lies in the host's folder for temporary files
        remote.ask(f"rm -rf -- {shlex.quote(folder)}")
