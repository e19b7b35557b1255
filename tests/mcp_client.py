# SPDX-License-Identifier: Apache-2.0
"""A scripted client of `gpadvisor mcp`, on the SDK's own client: no language model takes part."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import jsonschema
from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

SECONDS = 250.0


def client(
    folder: Path, *options: str, roots: Sequence[Path] | None = None, **more: Any
) -> AbstractAsyncContextManager[Client]:
    """A client whose server runs in a folder; with ``roots`` it names these as the open folders."""

    async def named(_context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in roots or ()])

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gpadvisor", "mcp", *options],
        cwd=folder,
        env={**os.environ, "GPADVISOR_CACHE": ""},
    )
    return Client(server, list_roots_callback=None if roots is None else named, **more)


class Agent:
    """Calls tools, and holds each answer to its schema."""

    def __init__(self, connected: Client, tools: Sequence[types.Tool]) -> None:
        self._client = connected
        self.tools = {tool.name: tool for tool in tools}

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer; it is valid by schema, has its text form, and is as small as it should be."""
        result = await self._client.call_tool(tool, arguments)
        text = result.content[0].text  # type: ignore[union-attr]  # there is no other kind
        assert not result.is_error, text
        page: dict[str, Any] = result.structured_content
        jsonschema.validate(page, self.tools[tool].output_schema or False)
        assert len(text.encode()) <= arguments.get("max_bytes", 4096)
        assert page["verify"].startswith("gpadvisor ")
        return page

    async def whole(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """The items of all pages."""
        page = await self.call(tool, **arguments)
        items = list(page["items"])
        while page["next"] is not None:
            assert page["next"] == len(items) > page["start"]
            page = await self.call(tool, **arguments, start=page["next"])
            items += page["items"]
        assert len(items) == page["total"]
        return items

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The sentence of a tool's error."""
        result = await self._client.call_tool(tool, arguments)
        assert result.is_error
        text: str = result.content[0].text  # type: ignore[union-attr]  # the same
        assert "\n" not in text
        assert len(text) <= 1000
        assert "Traceback" not in text
        return text


def walk(
    script: Callable[[Agent], Awaitable[None]],
    folder: Path,
    *options: str,
    roots: Sequence[Path] | None = None,
    **more: Any,
) -> None:
    """Run a script against a server of its own."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS), client(folder, *options, roots=roots, **more) as connected:
            await script(Agent(connected, (await connected.list_tools()).tools))

    asyncio.run(run())
