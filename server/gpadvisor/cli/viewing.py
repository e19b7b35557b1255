# SPDX-License-Identifier: Apache-2.0
"""What the commands of views share: ask with progress, then write."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Protocol

from gpadvisor.cli import options
from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.pipeline.request import Progress, Request


class _View(Protocol):
    """What a view's command calls, once what is the view's own is filled in."""

    def __call__(
        self, path: Path, request: Request, progress: Progress, *, output_format: str, width: int
    ) -> str: ...


def write_view(arguments: argparse.Namespace, view: _View) -> int:
    """Write what the view says of the kernels asked for; ``--top`` is of its rows, not of suggestions."""
    from gpadvisor.cli.advise import make_request

    arguments.top = None
    request = make_request(arguments)
    progress = TerminalProgress()
    try:
        text = view(
            arguments.input,
            request,
            progress,
            output_format=arguments.format,
            width=options.output_width(),
        )
    finally:
        progress.clear()
    options.write_output(text, arguments.output, paged=not arguments.no_pager and arguments.format == "text")
    return 0
