# SPDX-License-Identifier: Apache-2.0
"""Requests: what each needs from files and workers, the feature that answers it, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gpadvisor.errors import GpadvisorError, UsageError
from gpadvisor.lsp.convert import overlaps
from gpadvisor.lsp.errors import answered, request_errors
from gpadvisor.lsp.features import code_actions
from gpadvisor.lsp.features.code_lenses import code_lenses
from gpadvisor.lsp.features.comparing import compared_lines
from gpadvisor.lsp.features.debug_information import debug_information
from gpadvisor.lsp.features.diagnostics import complaints, file_diagnostics
from gpadvisor.lsp.features.hovers import hover_at
from gpadvisor.lsp.features.inlay_hints import inlay_hints
from gpadvisor.lsp.features.kernels import kernel_choices
from gpadvisor.lsp.features.machine_code import SassQuestion, machine_code, sass_question
from gpadvisor.lsp.features.overview import overview
from gpadvisor.lsp.page_protocol import CompareParams, CompareResult, PageParams
from gpadvisor.lsp.paths import file_path, read_text
from gpadvisor.lsp.protocol import (
    COMPARE,
    DEBUG_INFORMATION,
    EXPLAIN,
    KERNELS,
    OVERVIEW,
    PAGE,
    SASS,
    TOOL,
    DebugInformationResult,
    ExplainParams,
    ExplainResult,
    KernelsParams,
    KernelsResult,
    OverviewParams,
    OverviewResult,
    SassParams,
    SassResult,
    ToolParams,
    ToolResult,
)
from gpadvisor.lsp.session import Session
from gpadvisor.lsp.snapshot import PROFILE, Snapshot, View
from gpadvisor.lsp.wire import from_wire, to_wire
from gpadvisor.model.finding import ChangedLine, SassView
from gpadvisor.sandbox.codec import from_json

log: Final = logging.getLogger("gpadvisor.lsp")
_PATIENCE_SECONDS: Final = 10.0


def register(server: LanguageServer, session: Session) -> None:
    """Register the handlers of LSP's own requests."""
    state, views = session.state, session.views

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def on_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens] | None:
        view = await views.asked(params.text_document.uri)
        return None if view is None else code_lenses(state.now, view)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions(resolve_provider=False))
    async def on_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint] | None:
        view = await views.asked(params.text_document.uri)
        return None if view is None else inlay_hints(state.now, view, params.range)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        view = await views.asked(params.text_document.uri)
        return None if view is None else hover_at(state.now, view, params.position.line + 1)

    kinds = lsp.CodeActionOptions(code_action_kinds=list(code_actions.KINDS))

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def on_actions(params: lsp.CodeActionParams) -> list[code_actions.Action] | None:
        return await _actions(session, params)


def register_own(server: LanguageServer, session: Session) -> None:
    """Register the handlers of our own client's requests.

    The library hands the server to a handler whose first parameter may be one, and a server is an ``object``:
    hence ``Any``.
    """
    state = session.state

    @server.feature(SASS)
    async def sass(params: Any) -> object:
        with request_errors():
            sass_params = from_wire(params, SassParams)
        return to_wire(await answered(_machine_code(session, sass_params)))

    @server.feature(KERNELS)
    async def kernels(params: Any) -> object:
        with request_errors():
            request = from_wire(params, KernelsParams)
        view = await session.views.of(request.uri)
        return to_wire(KernelsResult(choices=kernel_choices(state.now, view)))

    @server.feature(EXPLAIN)
    def explain(params: Any) -> object:
        from gpadvisor.pipeline.stall_pages import explain as page_of  # noqa: PLC0415  # imports every rule

        with request_errors():
            return to_wire(ExplainResult(markdown=page_of(from_wire(params, ExplainParams).code)))

    @server.feature(OVERVIEW)
    async def entries(params: Any) -> object:
        with request_errors():
            request = from_wire(params, OverviewParams)
        path = None if request.uri is None else file_path(request.uri)
        nowhere = request.uri is not None and path is None
        rows = [] if nowhere else await asyncio.to_thread(overview, state.now, path, read_text)
        return to_wire(OverviewResult(entries=rows))

    @server.feature(COMPARE)
    async def compare(params: Any) -> object:
        with request_errors():
            request = from_wire(params, CompareParams)
        return to_wire(await answered(_compare(session, request)))

    @server.feature(PAGE)
    async def page(params: Any) -> object:
        with request_errors():
            page_params = from_wire(params, PageParams)
        return to_wire(await answered(session.reports.page(page_params)))

    @server.feature(TOOL)
    async def tool(params: Any) -> object:
        with request_errors():
            request = from_wire(params, ToolParams)
        return to_wire(await answered(_tool(session, request)))

    @server.feature(DEBUG_INFORMATION)
    def information(_params: Any) -> object:
        workers = session.workers
        page = debug_information(state.now, len(workers.pids), workers.busy)
        return to_wire(DebugInformationResult(markdown=page))


async def _actions(session: Session, params: lsp.CodeActionParams) -> list[code_actions.Action] | None:
    """Fixes are tried before the user sees them in a menu that was asked for; a lamp does not wait."""
    state, only = session.state, params.context.only
    path = file_path(params.text_document.uri)
    if path is None:
        return None
    wrong = overlaps(complaints(state.now, path), params.range)
    headers = code_actions.header_actions(state.now, wrong)
    view = await session.views.asked(params.text_document.uri)
    if view is None:
        return [header for header in headers if code_actions.is_requested(header, only)] or None
    diagnostics = overlaps(file_diagnostics(state.now, view), params.range)
    if not diagnostics and not headers:
        return None
    lamp = params.context.trigger_kind is lsp.CodeActionTriggerKind.Automatic
    actions = [
        *headers,
        *await _fixes(session, view, params.range, diagnostics, lamp=lamp),
        *code_actions.page_actions(state.now, diagnostics),
    ]
    return [action for action in actions if code_actions.is_requested(action, only)]


async def _fixes(
    session: Session, view: View, selection: lsp.Range, diagnostics: list[lsp.Diagnostic], *, lamp: bool
) -> list[code_actions.Action]:
    snapshot, fixes = session.state.now, session.fixes
    manual = snapshot.settings_of(view.path).run == "manual"
    try:
        offers = await fixes.find(view, selection.start.line + 1, selection.end.line + 1)
        tried = [] if lamp and manual else offers
        useless = await fixes.useless(tried, 0.0 if lamp else _PATIENCE_SECONDS)
    except GpadvisorError as error:
        log.warning("no fixes: %s", error)
        return []
    return code_actions.fix_actions(session.state.now, offers, useless, diagnostics, read_text)


async def _machine_code(session: Session, params: SassParams) -> SassResult:
    view = await session.views.of(params.uri)
    question = sass_question(session.state.now, view, params)
    if not isinstance(question, SassQuestion):
        return question
    sass_view = session.machine_code.get(question.key)
    if sass_view is None:
        seconds = session.state.now.settings_of(question.path).analysis_timeout_seconds
        arguments = dict(question.arguments)
        data = await session.client.with_progress(
            f"disassembling {question.kernel.name}",
            lambda progress: session.workers.run(
                "sass", arguments, timeout_seconds=seconds, progress=progress
            ),
        )
        sass_view = from_json(data, SassView)
        # Lines move while one types, and a client asks again: only their numbers are others then.
        session.machine_code = {question.key: sass_view}
    return machine_code(session.state.now, question.layer, sass_view)


async def _compare(session: Session, params: CompareParams) -> CompareResult:
    """What lines have gained or lost between two profiles; both are shown, too."""
    state = session.state
    before, after = (_profile(state.now, uri) for uri in (params.before, params.after))
    for path in (before, after):
        if PROFILE + path not in state.now.entries:
            await session.profiles.read(path)
    folder = state.now.project_of(after)
    arguments = {"before": before, "after": after, "root": str(folder.path)}
    seconds = folder.settings.analysis_timeout_seconds
    data = await session.client.with_progress(
        "comparing two profiles",
        lambda progress: session.workers.run(
            "compare", arguments, timeout_seconds=seconds, progress=progress
        ),
    )
    compared, entry = from_json(data, tuple[ChangedLine, ...]), state.now.entries[PROFILE + after]
    lines = await asyncio.to_thread(compared_lines, state.now, entry, compared, read_text)
    return CompareResult(lines=lines)


async def _tool(session: Session, params: ToolParams) -> ToolResult:
    """As ``gpadvisor mcp`` answers; what may be read are the folders of the workspace."""
    from gpadvisor.agents.answers import dumps  # noqa: PLC0415  # seldom asked for
    from gpadvisor.agents.calls import checked  # noqa: PLC0415  # the same

    snapshot = session.state.now
    if not snapshot.trusted:
        raise UsageError("the workspace is not trusted: nothing is compiled, read or run")
    call = checked(params.name, params.arguments, allow_run=True)
    if call.tool.runs and not params.agreed:
        raise UsageError(f"'{params.name}' runs a program, which the user has not agreed to")
    roots = [folder.path for folder in snapshot.folders.values() if folder.uri]
    page = await session.client.with_progress(
        call.tool.title, lambda progress: call.answer(roots, session.workers, progress)
    )
    return ToolResult(text=dumps(page))


def _profile(snapshot: Snapshot, uri: str) -> str:
    path = file_path(uri)
    if path is None:
        raise UsageError(f"{uri} is no file on this machine")
    if not snapshot.may_read(path):
        raise UsageError("the workspace is not trusted: no profile is read")
    return path
