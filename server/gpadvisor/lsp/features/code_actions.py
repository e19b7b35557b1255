# SPDX-License-Identifier: Apache-2.0
"""Code actions: quick fixes for findings, "disable for this line", and the rule's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from gpadvisor.lsp import protocol
from gpadvisor.lsp.convert import overlaps
from gpadvisor.lsp.workspace import file_path

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server


def register(server: Server) -> None:
    """Register the handler."""
    session = server.session
    kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))
    async def on_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction | lsp.Command] | None:
        path = file_path(params.text_document.uri)
        view = None if path is None else await session.publisher.view(path)
        if view is None:
            return None
        found = overlaps(session.publisher.diagnostics(view), params.range)
        return [_explain(server, one) for one in found]


def _explain(server: Server, found: lsp.Diagnostic) -> lsp.CodeAction | lsp.Command:
    name = protocol.CLIENT_EXPLAIN if server.session.client.own else protocol.EXPLAIN_COMMAND
    command = lsp.Command(title=f"{found.code}: Explain", command=name, arguments=[found.code])
    if not server.session.client.action_literals:
        return command
    return lsp.CodeAction(
        title=command.title, kind=lsp.CodeActionKind.QuickFix, diagnostics=[found], command=command
    )
