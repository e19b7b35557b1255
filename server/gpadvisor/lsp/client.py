# SPDX-License-Identifier: Apache-2.0
"""What the server says to its client and asks of it, apart from answers; each as far as the client can."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gpadvisor.lsp.background import Background
from gpadvisor.lsp.progress import with_progress
from gpadvisor.lsp.state import State
from gpadvisor.lsp.texts import Encoding

log: Final = logging.getLogger("gpadvisor.lsp")
T = TypeVar("T")


class Client:
    """The one at the other end."""

    def __init__(self, server: LanguageServer, state: State, background: Background) -> None:
        self._server, self._state, self._background = server, state, background
        self._said: set[str] = set()

    @property
    def encoding(self) -> Encoding:
        """The units of columns that the library has agreed on with the client."""
        agreed = self._server.workspace.position_encoding
        name = getattr(agreed, "value", agreed)
        if name == "utf-8":
            return "utf-8"
        return "utf-32" if name == "utf-32" else "utf-16"

    def notify(self, method: str, params: object) -> None:
        """Tell our own client something beyond LSP."""
        if self._state.now.client.own:
            self._server.protocol.notify(method, params)

    def publish(self, uri: str, version: int | None, diagnostics: list[lsp.Diagnostic]) -> None:
        """All diagnostics of a file."""
        params = lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=diagnostics)
        self._server.text_document_publish_diagnostics(params)

    def say(self, message: str, kind: lsp.MessageType = lsp.MessageType.Info) -> None:
        """Show the user a sentence."""
        from gpadvisor.report.words import no_link  # noqa: PLC0415 what it needs takes long to import

        sentence = no_link(f"GPAdvisor: {message}")
        self._server.window_show_message(lsp.ShowMessageParams(type=kind, message=sentence))

    def say_once(self, message: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        """The same, unless it was said before."""
        if message not in self._said:
            self._said.add(message)
            log.warning("%s", message)
            self.say(message, kind)

    async def ask(
        self, message: str, answers: Sequence[str], kind: lsp.MessageType = lsp.MessageType.Warning
    ) -> str | None:
        """The answer that the user picks; None where none.

        Raises:
            JsonRpcException: this editor cannot ask.
        """
        from gpadvisor.report.words import no_link  # noqa: PLC0415 for the same reason

        actions = [lsp.MessageActionItem(title=answer) for answer in answers]
        params = lsp.ShowMessageRequestParams(type=kind, message=no_link(message), actions=actions)
        picked = await self._server.window_show_message_request_async(params)
        return None if picked is None else picked.title

    async def apply(self, edit: lsp.WorkspaceEdit, label: str) -> bool:
        """Change texts; whether that was done."""
        params = lsp.ApplyWorkspaceEditParams(edit=edit, label=label)
        return bool((await self._server.workspace_apply_edit_async(params)).applied)

    async def open_page(self, address: str) -> None:
        """Show a document."""
        await self._server.window_show_document_async(lsp.ShowDocumentParams(uri=address, take_focus=True))

    async def configuration(self, uris: Sequence[str], section: str) -> Sequence[object]:
        """Settings of folders, and last of what lies outside."""
        items = [lsp.ConfigurationItem(scope_uri=uri, section=section) for uri in uris]
        params = lsp.ConfigurationParams(items=[*items, lsp.ConfigurationItem(section=section)])
        return await self._server.workspace_configuration_async(params)

    async def register(self, options_of: Mapping[str, object]) -> None:
        """Ask for messages by their methods, with the options of each."""
        registrations = [
            lsp.Registration(id=f"gpadvisor-{method}", method=method, register_options=options)
            for method, options in options_of.items()
        ]
        if registrations:
            with contextlib.suppress(Exception):
                await self._server.client_register_capability_async(
                    lsp.RegistrationParams(registrations=registrations)
                )

    def refresh(self) -> None:
        """Have lenses and hints fetched again."""
        client = self._state.now.client
        if client.lens_refresh:
            self._background.start(_quietly(self._server.workspace_code_lens_refresh_async(None)))
        if client.hint_refresh:
            self._background.start(_quietly(self._server.workspace_inlay_hint_refresh_async(None)))

    async def with_progress(self, title: str, work: Callable[[Callable[[str], None]], Awaitable[T]]) -> T:
        """Run work that reports in words, and show them."""
        server = self._server if self._state.now.client.progress else None
        return await with_progress(server, f"GPA: {title}", work)


async def _quietly(request: Awaitable[object]) -> None:
    """A client that refuses to refresh shows old lenses, and that is all."""
    with contextlib.suppress(Exception):
        await request
