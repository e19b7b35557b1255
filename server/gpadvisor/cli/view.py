# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor view REPORT``: the advice as a page in the browser."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gpadvisor.cli import advise
from gpadvisor.cli.demo import beside
from gpadvisor.cli.html_page import render_html
from gpadvisor.cli.messages import say
from gpadvisor.files import write_atomically

_DESCRIPTION = """\
Write one HTML file with the kernels, the advice, the sources beside their machine code, the roofline,
the potential and the calling contexts, and open it. It needs no network and holds the sources:
--no-sources leaves them out.

  gpadvisor view run.ncu-rep
  gpadvisor view run.ncu-rep --no-open -o run.html
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "view",
        help="the advice as a page in the browser",
        usage="gpadvisor view REPORT|SNAPSHOT|CUBIN|SOURCE [options] [-- NVCC FLAGS]",
        description=_DESCRIPTION,
    )
    advise.add_input(parser)
    parser.add_argument("--no-open", action="store_true", help="only write the file")
    advise.add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page, say where it is, and open it."""
    from gpadvisor.sandbox.browser import open_in_browser

    (path,) = arguments.inputs
    output: Path = (arguments.output or Path(f"{path.stem}.html")).absolute()
    with beside(arguments.inputs):
        page = render_html(
            path,
            advise.make_request(arguments),
            use_cache=not arguments.no_cache,
            sources=not arguments.no_sources,
        )
    write_atomically(output, page.text.encode())
    relative = os.path.relpath(output)
    opened = not arguments.no_open and open_in_browser(output)
    say(f"{'opened' if opened else 'wrote'} {relative if not relative.startswith('..') else output}")
    return 0
