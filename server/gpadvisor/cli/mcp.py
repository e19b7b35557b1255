# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor mcp``: the tools for coding agents, for their clients to start."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
Speak the Model Context Protocol on standard input and output. Clients of coding agents start it;
docs/agents.md says how. It reads files below the folders that the client has open, or below --root, and
changes nothing. Nothing is sent anywhere. It needs pip install 'gpadvisor[mcp]'.

  gpadvisor mcp --root /path/of/the/project
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "mcp",
        help="the tools for coding agents, for their clients to start",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="folder that may be read, where the client names none (default: the current one); may be "
        "repeated",
    )
    parser.add_argument(
        "--allow-run", action="store_true", help="offer 'profile', which runs programs, as well"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client is done."""
    import asyncio
    import importlib.util

    from gpadvisor.errors import ToolNotFoundError, UsageError
    from gpadvisor.lsp.streams import leave_workspace

    leave_workspace()
    if importlib.util.find_spec("mcp") is None:
        raise ToolNotFoundError("the SDK of the protocol is not installed: pip install 'gpadvisor[mcp]'")
    folders = [path.resolve() for path in arguments.root or [Path.cwd()]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder")
    from gpadvisor.agents.server import serve

    asyncio.run(serve(folders, allow_run=arguments.allow_run))
    return 0
