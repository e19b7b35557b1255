# SPDX-License-Identifier: Apache-2.0
"""The messages of a session's life and of its documents."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gpadvisor.lsp.session import Session

log: Final = logging.getLogger("gpadvisor.lsp")
_PARENT_SECONDS: Final = 2.0


def register(server: LanguageServer, session: Session) -> None:
    """Register the handlers."""

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        session.initialize(params)

    @server.feature(lsp.INITIALIZED)
    def initialized(_params: lsp.InitializedParams) -> None:
        session.background.start(_watch_parent(server.process_id, session))
        session.background.start(session.start())

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(*_params: object) -> None:
        await session.close()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        session.opened(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        session.changed(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SaveOptions(include_text=False))
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        session.saved(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        session.closed(params.text_document.uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        await session.settings_changed(params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        session.files_changed(params.changes)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        session.folders_changed(params.event)


async def _watch_parent(parent: int | None, session: Session) -> None:
    """End when the client's process has: its pipe may be held open by others."""
    while parent and not session.background.closing:
        await asyncio.sleep(_PARENT_SECONDS)
        if not _alive(parent):
            log.warning("the client (process %d) is gone", parent)
            await session.close()
            logging.shutdown()
            os._exit(0)  # a thread still waits for the pipe


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
