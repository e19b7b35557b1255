# SPDX-License-Identifier: Apache-2.0
"""Requests of our own client: machine code, kernels to pick from, rule pages, overview, debug information."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpadvisor.lsp.comparing import compare_profiles
from gpadvisor.lsp.debug_information import debug_information
from gpadvisor.lsp.errors import answered, refusing
from gpadvisor.lsp.kernels import kernel_choices
from gpadvisor.lsp.machine_code import machine_code
from gpadvisor.lsp.overview import overview
from gpadvisor.lsp.protocol import (
    COMPARE,
    DEBUG_INFORMATION,
    EXPLAIN,
    KERNELS,
    OVERVIEW,
    SASS,
    CompareParams,
    DebugInformationResult,
    ExplainParams,
    ExplainResult,
    KernelsParams,
    KernelsResult,
    OverviewParams,
    OverviewResult,
    SassParams,
)
from gpadvisor.lsp.wire import from_wire, to_wire
from gpadvisor.lsp.workspace import file_path
from gpadvisor.pipeline.rule_pages import rule_page

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server


def register(server: Server) -> None:
    """Register the handlers.

    The library hands the server to a handler whose first parameter may be one, and a server is an ``object``:
    hence ``Any``.
    """
    session = server.session

    @server.feature(SASS)
    async def sass(params: Any) -> object:
        with refusing():
            asked = from_wire(params, SassParams)
        return to_wire(await answered(machine_code(session, asked)))

    @server.feature(KERNELS)
    async def kernels(params: Any) -> object:
        with refusing():
            asked = from_wire(params, KernelsParams)
        return to_wire(KernelsResult(choices=await kernel_choices(session, asked.uri)))

    @server.feature(EXPLAIN)
    def explain(params: Any) -> object:
        with refusing():
            return to_wire(ExplainResult(markdown=rule_page(from_wire(params, ExplainParams).code)))

    @server.feature(OVERVIEW)
    async def entries(params: Any) -> object:
        with refusing():
            asked = from_wire(params, OverviewParams)
        path = None if asked.uri is None else file_path(asked.uri)
        found = [] if asked.uri is not None and path is None else await overview(session, path)
        return to_wire(OverviewResult(entries=found))

    @server.feature(COMPARE)
    async def compare(params: Any) -> object:
        with refusing():
            asked = from_wire(params, CompareParams)
        return to_wire(await answered(compare_profiles(session, asked)))

    @server.feature(DEBUG_INFORMATION)
    def information(_params: Any) -> object:
        return to_wire(DebugInformationResult(markdown=debug_information(session)))
