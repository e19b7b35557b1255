# SPDX-License-Identifier: Apache-2.0
"""The Model Context Protocol over standard input and output; the only module that knows it.

What a call means is in ``calls``; this carries it.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gpadvisor import __version__
from gpadvisor.agents.answers import dumps, short
from gpadvisor.agents.calls import checked, tools
from gpadvisor.agents.roots import folders_of
from gpadvisor.agents.tools import NOTE
from gpadvisor.errors import GpadvisorError, UsageError
from gpadvisor.sandbox.pool import Workers

log: Final = logging.getLogger("gpadvisor.agents")

_ROOTS_SECONDS: Final = 20.0
_ERROR_LETTERS: Final = 1000
_ROOTS: Final = "roots"
_INSTRUCTIONS: Final = (
    "Advice on CUDA kernels from profiles and machine code. Order: list_kernels, advise, source, one change, "
    f"profile again, compare; keep what is faster. {NOTE}"
)


@dataclass(slots=True, kw_only=True)
class _Served:
    """One server of one client."""

    folders: tuple[Path, ...]  # where the client names none
    allow_run: bool
    workers: Workers = field(default_factory=lambda: Workers("gpadvisor.agents.jobs:JOBS"))

    async def list_tools(self, _context: RequestContext, _params: types.PaginatedRequestParams | None) -> Any:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.doc,
                    input_schema=tool.input_schema(),
                    output_schema=tool.output_schema(),
                    annotations=types.ToolAnnotations(
                        read_only_hint=not tool.runs,
                        destructive_hint=tool.runs,
                        idempotent_hint=not tool.runs,
                        open_world_hint=tool.runs,
                    ),
                )
                for tool in tools(allow_run=self.allow_run).values()
            ]
        )

    async def call_tool(self, context: RequestContext, params: types.CallToolRequestParams) -> Any:
        """The answer of a tool; what goes wrong is a sentence for the agent, and the server lives on."""
        try:
            call = checked(params.name, params.arguments or {}, allow_run=self.allow_run)
            roots = await self._roots(context, params)
            if isinstance(roots, types.InputRequiredResult):
                return roots
            progress = _Progress(context)
            page = await call.answer(roots, self.workers, progress)
            await progress.done()
        except (GpadvisorError, OSError) as error:
            text = types.TextContent(type="text", text=short(str(error), _ERROR_LETTERS))
            return types.CallToolResult(content=[text], is_error=True)
        text = types.TextContent(type="text", text=dumps(page))
        return types.CallToolResult(content=[text], structured_content=page)

    async def _roots(
        self, context: RequestContext, params: types.CallToolRequestParams
    ) -> tuple[Path, ...] | types.InputRequiredResult:
        """The client's folders; those of the command line where it names none."""
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return self.folders
        if not context.session.can_send_request:  # since the protocol of 2026-07-28
            answer = (params.input_responses or {}).get(_ROOTS)
            if answer is None:
                return types.InputRequiredResult(input_requests={_ROOTS: types.ListRootsRequest()})
            listed = answer if isinstance(answer, types.ListRootsResult) else types.ListRootsResult(roots=[])
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # later protocols ask in another way, see above
                try:
                    async with asyncio.timeout(_ROOTS_SECONDS):
                        listed = await context.session.list_roots()
                except TimeoutError as error:
                    raise UsageError("the client does not say which folders may be read") from error
        return folders_of(str(root.uri) for root in listed.roots) if listed.roots else self.folders


RequestContext = ServerRequestContext[Any, Any]


class _Progress:
    """Tells the client the stages, in their order."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._count = 0
        self._last: asyncio.Task[None] | None = None

    def __call__(self, words: str) -> None:
        self._count += 1
        self._last = asyncio.create_task(self._tell(self._last, self._count, short(words, 200)))

    async def _tell(self, before: asyncio.Task[None] | None, count: int, words: str) -> None:
        if before is not None:
            await before
        await self._context.session.report_progress(count, message=words)

    async def done(self) -> None:
        """When all is told."""
        if self._last is not None:
            await self._last


async def serve(folders: Sequence[Path], *, allow_run: bool) -> None:
    """Serve one client until it is done."""
    served = _Served(folders=tuple(folders), allow_run=allow_run)
    server: Server[Any] = Server(
        "gpadvisor",
        version=__version__,
        title="GPAdvisor",
        instructions=_INSTRUCTIONS,
        on_list_tools=served.list_tools,
        on_call_tool=served.call_tool,
    )
    try:
        async with stdio_server() as (source, wire):
            await server.run(source, wire, server.create_initialization_options())
    finally:
        await served.workers.close()
