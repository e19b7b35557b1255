# SPDX-License-Identifier: Apache-2.0
"""Code actions: quick fixes for findings, "disable for this line", and the rule's page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from lsprotocol import types as lsp

from gpadvisor.errors import GpadvisorError
from gpadvisor.lsp import protocol
from gpadvisor.lsp.convert import overlaps
from gpadvisor.lsp.workspace import View, file_path
from gpadvisor.pipeline.rule_pages import find_rule

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server

log: Final = logging.getLogger("gpadvisor.lsp")
Action: TypeAlias = lsp.CodeAction | lsp.Command
_PATIENCE_SECONDS: Final = 10.0
_KINDS: Final = (lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite)


def register(server: Server) -> None:
    """Register the handler."""
    session = server.session

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=list(_KINDS)))
    async def on_actions(params: lsp.CodeActionParams) -> list[Action] | None:
        path = file_path(params.text_document.uri)
        if path is None:
            return None
        headers = _set_folders(server, overlaps(session.publisher.complaints(path), params.range))
        view = await session.publisher.asked_view(path)
        if view is None:
            return [one for one in headers if _wanted(one, params.context.only)] or None
        found = overlaps(session.publisher.diagnostics(view), params.range)
        if not found and not headers:
            return None
        actions = [
            *headers,
            *await _fixes(server, view, params.range, found, params.context),
            *(_explain(server, one) for one in _by_code(found)),
        ]
        return [one for one in actions if _wanted(one, params.context.only)]


async def _fixes(
    server: Server,
    view: View,
    wanted: lsp.Range,
    found: Sequence[lsp.Diagnostic],
    context: lsp.CodeActionContext,
) -> list[Action]:
    """Fixes, each tried before the user sees it in a menu that was asked for; a lamp does not wait."""
    lamp = context.trigger_kind is lsp.CodeActionTriggerKind.Automatic
    manual = server.session.workspace.folder_of(view.path).settings.run == "manual"
    try:
        offers = await server.fixes.find(view, wanted.start.line + 1, wanted.end.line + 1)
        tried = [] if lamp and manual else offers
        useless = await server.fixes.useless(tried, 0.0 if lamp else _PATIENCE_SECONDS)
    except GpadvisorError as error:
        log.warning("no fixes: %s", error)
        return []
    actions: list[Action] = []
    rank = {one.code: at for at, one in reversed(list(enumerate(found)))}
    for offer in sorted(offers, key=lambda one: (one.fix.change == "disable", rank.get(one.fix.code, 0))):
        own = [
            one for one in found if one.code == offer.fix.code and one.range.start.line == offer.fix.line - 1
        ]
        action = server.fixes.action(view, offer, own, useless=offer.fix.id in useless)
        actions += [] if action is None else [action]
    return actions


def _set_folders(server: Server, found: Sequence[lsp.Diagnostic]) -> list[Action]:
    """Of a missing header: the setting for folders, which our client can open."""
    missing = [one for one in found if one.data]
    if not missing or not server.session.client.own:
        return []
    command = lsp.Command(
        title="Set include folders",
        command=protocol.CLIENT_SETTINGS,
        arguments=["gpadvisor.analysis.flags"],
    )
    kind = lsp.CodeActionKind.QuickFix
    return [lsp.CodeAction(title=command.title, kind=kind, diagnostics=missing, command=command)]


def _explain(server: Server, found: lsp.Diagnostic) -> Action:
    name = protocol.CLIENT_EXPLAIN if server.session.client.own else protocol.EXPLAIN_COMMAND
    title = f"Explain {find_rule(str(found.code)).name} [{found.code}]"
    command = lsp.Command(title=title, command=name, arguments=[found.code])
    if not server.session.client.action_literals:
        return command
    return lsp.CodeAction(
        title=command.title, kind=lsp.CodeActionKind.QuickFix, diagnostics=[found], command=command
    )


def _by_code(found: Sequence[lsp.Diagnostic]) -> list[lsp.Diagnostic]:
    """One for each rule that has a page."""
    first = {one.code: one for one in reversed(found) if not str(one.code).startswith("GPA9")}
    return [one for one in found if first.get(one.code) is one]


def _wanted(action: Action, only: Sequence[str] | None) -> bool:
    """Whether an action is of a kind that was asked for: ``refactor`` means ``refactor.rewrite``, too."""
    if not only or isinstance(action, lsp.Command):
        return True
    kind = str(getattr(action.kind, "value", action.kind))
    wanted = [str(getattr(one, "value", one)) for one in only]
    return any(not one or kind == one or kind.startswith(f"{one}.") for one in wanted)
