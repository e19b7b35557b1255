# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor lsp``: the language server, for editors to start."""

from __future__ import annotations

import argparse
import gc

_DESCRIPTION = """\
Speak the Language Server Protocol on standard input and output. Editors start it; docs/lsp.md has what
it offers and what it asks of a client.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "lsp",
        help="the language server, for editors to start",
        description=_DESCRIPTION,
    )
    parser.add_argument("--stdio", action="store_true", help="standard input and output (the default)")
    parser.add_argument(
        "--tcp", metavar="PORT", type=_port, help="one client on the loopback address, for debugging"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client is done."""
    from gpadvisor.lsp.streams import leave_workspace, take_wire

    if arguments.tcp is None:
        source, wire = take_wire()  # before anything is imported that may print
    leave_workspace()
    from gpadvisor.lsp.server import log_to_stderr, serve_port, serve_streams

    gc.freeze()  # what was imported stays
    gc.set_threshold(50_000, 10, 10)  # unlike other commands it lives long: garbage in cycles adds up
    log_to_stderr()
    if arguments.tcp is not None:
        serve_port(arguments.tcp)
    else:
        serve_streams(source, wire)
    return 0


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is no port")
    return int(text)
