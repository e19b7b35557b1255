# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile``: run an application under a collector, keep a snapshot, and print the advice."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpadvisor.cli import messages as saying
from gpadvisor.cli import options
from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.errors import UsageError

if TYPE_CHECKING:
    from gpadvisor.profiler.collect.ranks import JobRank
    from gpadvisor.profiler.collect.run import ProfileRequest

_DESCRIPTION = """\
Run an application and collect what the advice needs: PC samples where the driver allows it, else
executed counts, which need no counter permission. The application is not changed; its output passes
through. Ctrl-C goes to the application, and what was collected until then is kept.

  gpadvisor profile -- ./app --size 4096
  gpadvisor profile --kernel 'stencil.*' --launch-count 2 -- python train.py
  gpadvisor profile --host user@gpu-box --remote-dir work -- ./app

With --host the application is one of that machine. gpadvisor need not be installed there: its own
Nsight Compute runs, and the report is read here.

Under srun or mpirun each process writes a snapshot of its own, app.rank17.gpadvisor for -o
app.gpadvisor, without advice; 'gpadvisor aggregate' makes one of them.

  srun gpadvisor profile --ranks 0,17,30-33 -o app.gpadvisor -- ./app
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "profile",
        help="run an application, take PC samples, print the advice",
        usage="gpadvisor profile [options] -- APP [ARGUMENTS]",
        description=_DESCRIPTION,
    )
    parser.add_argument("application", nargs="+", metavar="APP", help="the application, behind --")
    _add_launches(parser)
    _add_sampling(parser)
    parser.add_argument(
        "--timeline",
        action="store_true",
        help="run the application once more and record kernels, copies and calls of CUDA on the clock: what "
        "each change is worth for the run, and what leaves the GPU idle (gpadvisor idle SNAPSHOT)",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, help="stop the application after that time"
    )
    parser.add_argument(
        "--keep-report", metavar="PATH", type=Path, help="keep the collector's own files here too"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("profile.gpadvisor"), help="the snapshot"
    )
    parser.add_argument(
        "--ranks",
        metavar="LIST",
        help="under srun or mpirun the ranks to profile, as 0,17,30-33 or all (default); others just run",
    )
    remote = parser.add_argument_group("another machine, over ssh")
    remote.add_argument("--host", metavar="USER@HOST", help="collect there and bring the snapshot back")
    remote.add_argument(
        "--remote-dir", metavar="DIR", help="where the application runs there (default: home)"
    )
    remote.add_argument(
        "--ssh-option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option of ssh, as Port=2222 or ProxyJump=gate; may be repeated",
    )
    parser.add_argument("--no-advice", action="store_true", help="write the snapshot and print no advice")
    parser.set_defaults(run=run)


def _add_launches(parser: argparse.ArgumentParser) -> None:
    """Who collects, and of which launches."""
    parser.add_argument(
        "--collector",
        choices=("auto", "ncu", "cupti"),
        default="auto",
        help="auto: for what is picked (--kernel, --launch-skip, --launch-count, --samples-only) Nsight "
        "Compute where it can be had; else CUPTI, which runs each kernel once",
    )
    parser.add_argument(
        "--mode",
        choices=("continuous", "serialized"),
        help="of CUPTI, which this asks for: samples of all that runs, or of one kernel at a time, so that "
        "they belong to launches (default: continuous; serialized where launches are picked)",
    )
    parser.add_argument(
        "--kernel",
        metavar="REGEX",
        help="only kernels in whose function name it is found; CUPTI times the others, too",
    )
    parser.add_argument(
        "--launch-skip",
        metavar="N",
        type=options.natural,
        default=0,
        help="leave out the first N launches of them",
    )
    parser.add_argument(
        "--launch-count",
        metavar="N",
        type=options.natural,
        help="profile the next N, and leave out the rest",
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    """How often and with what beside it."""
    parser.add_argument(
        "--period",
        metavar="N",
        type=int,
        help="one sample per SM every 2**N cycles, 5 to 31 (default: the collector chooses)",
    )
    parser.add_argument(
        "--times",
        choices=("serial", "concurrent", "none"),
        default="serial",
        help="of CUPTI: serial runs kernels one at a time to time them; concurrent lets them overlap, "
        "where CUPTI is of CUDA 13.0 Update 1 or newer (default: serial)",
    )
    parser.add_argument(
        "--buffer",
        metavar="MIB",
        type=int,
        help="of CUPTI: GPU memory for samples (default: CUPTI's own 512 MiB in each sampled context)",
    )
    parser.add_argument(
        "--samples-only",
        action="store_true",
        help="one pass: no executed counts and utilisations, so wider estimates",
    )


def run(arguments: argparse.Namespace) -> int:
    """Collect, write the snapshot, print the advice."""
    from gpadvisor.profiler.collect.ranks import chosen, with_rank

    rank = _rank(arguments)
    if rank is not None and not chosen(arguments.ranks or "all", rank.rank):
        return _run_unprofiled(arguments)
    if rank is not None:
        arguments.output = with_rank(arguments.output, rank.rank)
        arguments.keep_report = arguments.keep_report and with_rank(arguments.keep_report, rank.rank)
        arguments.no_advice = True  # of which there would be one for each rank
    progress = TerminalProgress(ticking=False)  # the application writes there, too

    def say(sentence: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not cost what was measured
            progress.clear()
            saying.say(sentence)
            sys.stderr.flush()

    end = _End()
    collect = _collect_here if arguments.host is None else _collect_there
    try:
        snapshot, notes, done = collect(arguments, end, say, progress)
    finally:
        with contextlib.suppress(OSError):
            progress.clear()
    for note in notes:
        say(note)
    say(f"{snapshot}: {done}")
    if end.number:
        return 128 + end.number
    return 0 if arguments.no_advice else _advise(snapshot)


def _rank(arguments: argparse.Namespace) -> JobRank | None:
    """The rank of this process, where it is one of a job and runs here."""
    from gpadvisor.profiler.collect.ranks import chosen, job_rank

    rank = None if arguments.host else job_rank(os.environ)
    if arguments.ranks is not None:
        chosen(arguments.ranks, 0)
        if rank is None:
            raise UsageError("--ranks is for processes of srun or mpirun, whose variables are not there")
    return rank


def _run_unprofiled(arguments: argparse.Namespace) -> int:
    """The application as it is; its status."""
    from gpadvisor.sandbox.application import run_application

    status = run_application(arguments.application, timeout_seconds=arguments.timeout).status
    return 128 - status if status < 0 else status


def _request(arguments: argparse.Namespace) -> ProfileRequest:
    from gpadvisor.profiler.collect.run import Collector, ProfileRequest

    return ProfileRequest(
        application=tuple(arguments.application),
        output=arguments.output,
        collector=Collector(arguments.collector),
        serialized=None if arguments.mode is None else arguments.mode == "serialized",
        kernel=arguments.kernel,
        launch_skip=arguments.launch_skip,
        launch_count=arguments.launch_count,
        period=arguments.period,
        times=arguments.times,
        buffer_mib=arguments.buffer,
        samples_only=arguments.samples_only,
        timeline=arguments.timeline,
        timeout_seconds=arguments.timeout,
        keep=arguments.keep_report,
        rank=_rank(arguments),
    )


def _collect_here(
    arguments: argparse.Namespace, end: _End, say: Callable[[str], None], progress: TerminalProgress
) -> tuple[Path, Sequence[str], str]:
    """The snapshot, notes, and what was done."""
    from gpadvisor.pipeline.settings import find_settings
    from gpadvisor.profiler.collect.choose import profile_application

    settings = find_settings(Path.cwd()).settings
    with end.asked():
        result = profile_application(
            _request(arguments), settings, say=say, progress=progress, cancelled=end.came
        )
    done = (
        f"{result.launches} launches of {result.kernels} kernels, {result.samples:,} samples "
        f"by {result.collector}"
    )
    return result.snapshot, result.notes, done


def _collect_there(
    arguments: argparse.Namespace, _end: _End, say: Callable[[str], None], progress: TerminalProgress
) -> tuple[Path, Sequence[str], str]:
    """The same on another machine."""
    from gpadvisor.pipeline.settings import find_settings
    from gpadvisor.profiler.collect.remote import profile_on_host

    remote = profile_on_host(
        arguments.host,
        _request(arguments),
        find_settings(Path.cwd()).settings,
        say=say,
        progress=progress,
        ssh_options=tuple(arguments.ssh_option),
        directory=arguments.remote_dir,
    )
    done = f"{remote.fetched_bytes:,} bytes brought back, collected by {remote.by}"
    return remote.snapshot, remote.notes, done


class _End:
    """SIGTERM and SIGHUP, as of a batch system or a lost connection, while the application runs.

    The first one asks the application to end, and the snapshot is written; the next one ends this process.
    """

    def __init__(self) -> None:
        self.number = 0

    def came(self) -> bool:
        """Whether a signal has come."""
        return self.number != 0

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Take the signals that would end this process; those that are ignored stay so."""
        names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in numbers}
        replaced = [number for number in numbers if before[number] is not signal.SIG_IGN]

        def take(number: int, _frame: object) -> None:
            self.number = number
            for replaced_number in replaced:
                signal.signal(replaced_number, before[replaced_number])

        for number in replaced:
            signal.signal(number, take)
        try:
            yield
        finally:
            for number in replaced:
                signal.signal(number, before[number])


def _advise(snapshot: Path) -> int:
    from gpadvisor.pipeline.formats import RenderOptions
    from gpadvisor.pipeline.render import render_file
    from gpadvisor.pipeline.request import Request
    from gpadvisor.pipeline.settings import find_settings

    settings = find_settings(Path.cwd()).settings
    render_options = RenderOptions(
        format="text", width=options.output_width(), color=options.use_color("auto"), use_cache=True
    )
    progress = TerminalProgress()
    try:
        result = render_file(
            snapshot, Request(settings=settings, root=Path(settings.source_root)), render_options, progress
        )
    finally:
        progress.clear()
    sys.stdout.write(result.text)
    return 0
