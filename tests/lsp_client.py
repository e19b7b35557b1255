# SPDX-License-Identifier: Apache-2.0
"""An editor for tests: the real server as a process, and what it sends, waited for and never slept for."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    default_converter,
)
from pytest_lsp import LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features
from tests.kernels import ROOT

from gpadvisor.lsp.protocol import NOTIFICATIONS

CLIENTS = ROOT / "fixtures" / "lsp" / "clients"
PATIENCE_SECONDS = float(os.environ.get("GPADVISOR_TEST_PATIENCE", "120"))
T = TypeVar("T")


def recorded(name: str) -> lsp.ClientCapabilities:
    """The capabilities of a client under ``fixtures/lsp/clients``."""
    data = json.loads((CLIENTS / f"{name}.json").read_text(encoding="utf-8"))
    return get_converter().structure(data["capabilities"], lsp.ClientCapabilities)


class Editor:
    """What a person sees and does in an editor."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.result: lsp.InitializeResult | None = None
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.published: list[lsp.PublishDiagnosticsParams] = []
        self.own: dict[str, list[Any]] = {}  # our notifications by method
        self.refreshed: list[str] = []
        self.registered: list[lsp.Registration] = []
        self.applied: list[lsp.ApplyWorkspaceEditParams] = []
        self.asked: list[lsp.ShowMessageRequestParams] = []
        self.answer: Callable[[lsp.ShowMessageRequestParams], str | None] = lambda _params: None
        self.changed = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        client = self.client

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            client.diagnostics[params.uri] = params.diagnostics
            self.changed.set()

        for method in NOTIFICATIONS:

            @client.feature(method)
            def _(params: Any, method: str = method) -> None:
                self.own.setdefault(method, []).append(params)
                self.changed.set()

        for method in (lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WORKSPACE_INLAY_HINT_REFRESH):

            @client.feature(method)
            def _(_params: Any, method: str = method) -> None:
                self.refreshed.append(method)
                self.changed.set()

        @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def _(params: lsp.RegistrationParams) -> None:
            self.registered += params.registrations

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def _(params: lsp.ShowMessageParams) -> None:
            client.messages.append(params)
            self.changed.set()

        @client.feature(lsp.WINDOW_SHOW_MESSAGE_REQUEST)
        def _(params: lsp.ShowMessageRequestParams) -> lsp.MessageActionItem | None:
            self.asked.append(params)
            picked = self.answer(params)
            return None if picked is None else lsp.MessageActionItem(title=picked)

        @client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def _(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            self.applied.append(params)
            self.changed.set()
            return lsp.ApplyWorkspaceEditResult(applied=True)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None, language: str = "cuda-cpp") -> None:
        text = (self.folder / name).read_bytes().decode() if text is None else text
        self.versions[name], self.texts[name] = 1, text
        item = lsp.TextDocumentItem(uri=self.uri(name), language_id=language, version=1, text=text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def edit(self, name: str, text: str, at: lsp.Range | None = None) -> int:
        """Replace a range or everything; the new version."""
        self.versions[name] += 1
        item = lsp.VersionedTextDocumentIdentifier(uri=self.uri(name), version=self.versions[name])
        change: Any = lsp.TextDocumentContentChangeWholeDocument(text=text)
        if at is not None:
            change = lsp.TextDocumentContentChangePartial(range=at, text=text)
        else:
            self.texts[name] = text
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(item, [change]))
        return self.versions[name]

    def save(self, name: str, *, write: bool = True) -> None:
        if write:
            (self.folder / name).write_bytes(self.texts[name].encode())
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(self.document(name)))

    def close(self, name: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(self.document(name)))

    def document(self, name: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri(name))

    def diagnostics(self, name: str) -> list[lsp.Diagnostic]:
        return list(self.client.diagnostics.get(self.uri(name), ()))

    async def until(self, condition: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        """Wait for a condition to hold; what the server sends wakes it."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            left = end - time.monotonic()
            assert left > 0, f"what was waited for did not come; {self._last_said()}"
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), min(left, 0.5))
            except TimeoutError:
                continue
        return found

    def _last_said(self) -> str:
        """What the server told last, of every kind: why something did not come."""
        statuses = [plain(each) for each in self.own.get("gpadvisor/status", [])[-3:]]
        published = [(each.uri, len(each.diagnostics)) for each in self.published[-3:]]
        messages = [each.message for each in self.client.messages]
        return f"statuses {statuses}, published {published}, messages {messages}"

    async def shown(
        self, name: str, accept: Callable[[list[lsp.Diagnostic]], bool] = bool
    ) -> list[lsp.Diagnostic]:
        """The diagnostics of a file once they are as wanted."""
        await self.until(lambda: accept(self.diagnostics(name)))
        return self.diagnostics(name)

    async def status(self, *states: str) -> dict[str, Any]:
        """The last status once it has one of the states."""
        statuses = self.own.setdefault("gpadvisor/status", [])
        await self.until(lambda: bool(statuses) and plain(statuses[-1])["state"] in states)
        found: dict[str, Any] = plain(statuses[-1])
        return found

    async def hover(self, name: str, line: int, character: int = 0) -> str | None:
        params = lsp.HoverParams(self.document(name), lsp.Position(line, character))
        found = await self.client.text_document_hover_async(params)
        return None if found is None else found.contents.value

    async def lenses(self, name: str) -> list[lsp.CodeLens]:
        found = await self.client.text_document_code_lens_async(lsp.CodeLensParams(self.document(name)))
        return list(found or ())

    async def hints(self, name: str, lines: int = 10_000) -> list[lsp.InlayHint]:
        extent = lsp.Range(lsp.Position(0, 0), lsp.Position(lines, 0))
        params = lsp.InlayHintParams(self.document(name), extent)
        return list(await self.client.text_document_inlay_hint_async(params) or ())

    async def actions(self, name: str, at: lsp.Range) -> list[Any]:
        params = lsp.CodeActionParams(self.document(name), at, lsp.CodeActionContext(diagnostics=[]))
        found = await self.client.protocol.send_request_async(lsp.TEXT_DOCUMENT_CODE_ACTION, params)
        converter = get_converter()
        # The library takes an action that has a command for a bare command.
        kinds = {str: lsp.Command, dict: lsp.CodeAction, type(None): lsp.CodeAction}
        return [converter.structure(one, kinds[type(one.get("command"))]) for one in found or ()]

    async def execute(self, command: str, *words: Any) -> Any:
        params = lsp.ExecuteCommandParams(command=command, arguments=list(words))
        return await self.client.workspace_execute_command_async(params)

    async def ask(self, method: str, params: Any = None) -> Any:
        """One of our own requests."""
        return plain(await self.client.protocol.send_request_async(method, params))


@asynccontextmanager
async def editor(
    folder: Path,
    capabilities: lsp.ClientCapabilities | str = "vscode",
    *,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    command: list[str] | None = None,
    folders: list[Path] | None = None,
) -> AsyncIterator[Editor]:
    """A started server with its client; ended in an orderly way, or the test fails."""
    client = LanguageClient(converter_factory=_raw_converter)
    known_result = client.protocol.get_result_type
    client.protocol.get_result_type = lambda method: (
        None if method == lsp.TEXT_DOCUMENT_CODE_ACTION else known_result(method)
    )
    ours = (lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, lsp.WINDOW_SHOW_MESSAGE)
    others = {name: act for name, act in DEFAULT_CLIENT_FEATURES.items() if name not in ours}
    register_lsp_features(client, others)
    one = Editor(client, folder)
    known = recorded(capabilities) if isinstance(capabilities, str) else capabilities
    client.set_configuration({"gpadvisor": dict(settings or {})})
    started = command or [sys.executable, "-m", "gpadvisor", "lsp"]
    own = {**os.environ, "GPADVISOR_CACHE": str(folder.parent / "gpadvisor-cache"), **(environment or {})}
    await client.start_io(*started, env=own)
    try:
        own = [folder] if folders is None else folders
        roots = [lsp.WorkspaceFolder(uri=at.as_uri(), name=at.name) for at in own]
        params = lsp.InitializeParams(
            capabilities=known,
            workspace_folders=roots,
            root_uri=folder.as_uri() if own else None,
            initialization_options={"trusted": True, "settings": dict(settings or {}), **(options or {})},
        )
        one.result = await client.initialize_session(params)
        yield one
        await asyncio.wait_for(client.shutdown_session(), 30)
    finally:
        server = client._server
        if server is not None and server.returncode is None:
            server.kill()
        await asyncio.wait_for(client.stop(), 30)
        transport = getattr(server, "_transport", None)
        if transport is not None:
            transport.close()


def _raw_converter() -> Any:
    """The library's, but what it has no type for stays as it came."""
    converter = default_converter()
    for kind in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(kind, lambda data, cls: cls(**data))
    return converter


def plain(value: Any) -> Any:
    """JSON values again, of what the library has made named tuples of."""
    if hasattr(value, "_asdict"):
        return {key: plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value
