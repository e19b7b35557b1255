# SPDX-License-Identifier: Apache-2.0
"""For Python: advice on a file, a ``with`` block under the collector, and ``%gpadvisor`` in a notebook."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from gpadvisor.errors import UsageError
from gpadvisor.files import cache_folder, scratch_folder
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.formats import RenderOptions
from gpadvisor.pipeline.render import render_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import find_settings
from gpadvisor.profiler.cupti import CollectOptions, ProcessSession, SamplingMode

if TYPE_CHECKING:
    from gpadvisor.model.advice import Advice

_WIDTH: Final = 100


def advise(
    path: str | Path,
    *,
    kernel: str | None = None,
    launch: int | None = None,
    everything: bool = False,
    model: bool = False,
    source_root: str | Path | None = None,
) -> Advice:
    """The advice on a report, a snapshot, a cubin or a source, as values.

    Args:
        path: the input, as on the command line.
        kernel: a regular expression for names of kernels; None for all.
        launch: one launch of the report, by its number from 0; None for the kernels' own choice.
        everything: also what the thresholds hide, as ``--all``.
        model: simulate kernels without a profile whose launch is known, as ``--model``.
        source_root: the folder of the sources; None for the setting's.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault; its text says what to do.
    """
    from gpadvisor.pipeline.advise import advise_file  # noqa: PLC0415 a profiled block does not need it

    request = _request(kernel, source_root)
    request = request._replace(launch=launch, show_all=everything, model=model)
    return advise_file(Path(path), request, lambda _: None, Cache(cache_folder())).advice


class ProfiledBlock(ProcessSession):
    """A block of this process that was profiled, with the advice on it."""

    def advice(self, *, kernel: str | None = None, format: str = "text", width: int = _WIDTH) -> str:  # noqa: A002 the command's word
        """The advice on what ran in the block.

        Args:
            kernel: a regular expression for names of kernels; None for all.
            format: "text", "markdown", "json" or "sarif".
            width: of the text, in columns.

        Raises:
            GpadvisorError: the block has not ended, or a tool or setting is at fault.
        """
        request = _request(kernel, None)
        options = RenderOptions(format=format, width=width, color=False, use_cache=True)
        with scratch_folder() as folder:
            path = self.save(folder / "block.gpadvisor")
            return render_file(path, request, options, lambda _: None).text


def _request(kernel: str | None, source_root: str | Path | None) -> Request:
    """What is asked for, with the settings of this folder."""
    try:
        pattern = None if kernel is None else re.compile(kernel)
    except re.error as error:
        raise UsageError(f"{kernel!r} is no regular expression ({error}); correct it") from error
    settings = find_settings(Path.cwd()).settings
    return Request(settings=settings, kernel=pattern, root=Path(source_root or settings.source_root))


def profile(
    *,
    mode: str = "continuous",
    period: int | None = None,
    call_stacks: bool = True,
    cupti_library: str | Path | None = None,
) -> ProfiledBlock:
    """Profile a block of this process: ``with gpadvisor.profile() as p: ...``, then ``print(p.advice())``.

    Args:
        mode: "continuous" or "serialized", which runs one kernel at a time and ties samples to launches.
        period: one sample every 2**period cycles, 5 to 31; None leaves it to CUPTI.
        call_stacks: whether to record where each launch comes from.
        cupti_library: the libcupti to load; None for the one that fits the driver.

    Raises:
        UsageError: a value is none of those.
    """
    try:
        chosen = SamplingMode(mode)
    except ValueError as error:
        raise UsageError(f"{mode!r} is no mode; continuous and serialized are") from error
    library = None if cupti_library is None else Path(cupti_library)
    return ProfiledBlock(
        CollectOptions(mode=chosen, period=period, call_stacks=call_stacks, cupti_library=library)
    )


class Shell(Protocol):
    """What is used of IPython's shell."""

    def register_magic_function(self, function: object, magic_kind: str, magic_name: str) -> None:
        """Make a function callable as a magic."""

    def run_cell(self, cell: str) -> object:
        """Run code as if it had been typed."""


def load_ipython_extension(shell: Shell) -> None:
    """``%load_ext gpadvisor``: a notebook has ``%gpadvisor STATEMENT``, and ``%%gpadvisor`` for a cell."""

    def gpadvisor(line: str, cell: str | None = None) -> None:
        """Profile a statement or a cell, and print the advice."""
        parser = argparse.ArgumentParser(prog="%gpadvisor", add_help=False, exit_on_error=False)
        parser.add_argument("--mode", default="continuous")
        parser.add_argument("--period", type=int)
        parser.add_argument("--kernel")
        try:
            given, rest = parser.parse_known_args(shlex.split(line) if cell is not None else [])
        except (argparse.ArgumentError, ValueError) as error:
            raise UsageError(f"%%gpadvisor takes --mode, --period and --kernel ({error})") from error
        if rest:
            raise UsageError(f"%%gpadvisor takes --mode, --period and --kernel, not {rest[0]!r}")
        with profile(mode=given.mode, period=given.period) as block:
            shell.run_cell(line if cell is None else cell)
        print(block.advice(kernel=given.kernel), end="")  # noqa: T201 a notebook shows what a magic prints

    shell.register_magic_function(gpadvisor, "line_cell", "gpadvisor")
