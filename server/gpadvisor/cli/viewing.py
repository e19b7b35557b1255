# SPDX-License-Identifier: Apache-2.0
"""What the commands of views share: ask with progress, then write."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gpadvisor.cli import options
from gpadvisor.cli.progress import TerminalProgress


def write_view(arguments: argparse.Namespace, view: Callable[..., str]) -> int:
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
