# SPDX-License-Identifier: Apache-2.0
"""Commands of ``workspace/executeCommand``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types as lsp

from gpadvisor.errors import UsageError
from gpadvisor.lsp import protocol
from gpadvisor.lsp.analyses import COMPILED
from gpadvisor.lsp.errors import answered, refusing
from gpadvisor.lsp.kernels import choose_kernel, kernel_choices
from gpadvisor.lsp.session import Session
from gpadvisor.lsp.workspace import file_path
from gpadvisor.pipeline.rule_pages import rule_page

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server

_MOST_BUTTONS: Final = 8


def register(server: Server) -> None:
    """Register the handlers.

    The library hands the server to a handler whose first parameter may be one, and a server is an ``object``:
    hence ``Any``.
    """
    session = server.session

    @server.command(protocol.ANALYZE_FILE)
    async def analyze(*words: Any) -> None:
        await answered(session.analyses.source(_source(session, words), asked=True))

    @server.command(protocol.MODEL_FILE)
    async def model(*words: Any) -> None:
        await answered(session.analyses.source(_source(session, words), asked=True, model=True))

    @server.command(protocol.IMPORT_PROFILE)
    async def import_profile(*words: Any) -> None:
        await answered(session.analyses.profile(_profile(session, words)))

    @server.command(protocol.PROFILE)
    async def profile(*words: Any) -> str:
        return await answered(server.profile_runner.run(_source(session, words)))

    @server.command(protocol.SELECT_KERNEL)
    async def select(*words: Any) -> str | None:
        return await answered(_select(server, words))

    @server.command(protocol.EXPLAIN_COMMAND)
    async def explain(*words: Any) -> str:
        with refusing():
            page = rule_page(_word(words, 0, "the code of a rule"))
        await _show_page(server, str(words[0]))
        return page

    @server.command(protocol.TOGGLE_ANNOTATIONS)
    def toggle(*_words: Any) -> bool:
        session.workspace.annotations_off = not session.workspace.annotations_off
        session.publisher.everything()
        return not session.workspace.annotations_off

    @server.command(protocol.APPLY_FIX)
    async def apply_fix(*words: Any) -> bool:
        agreed = len(words) > 2 and words[2] is True
        return await answered(server.fixes.apply(_word(words, 1, "the id of a fix"), agreed=agreed))

    @server.command(protocol.CHECK_FIX)
    async def check_fix(*words: Any) -> str:
        return await answered(server.fixes.check(_word(words, 1, "the id of a fix")))

    @server.command(protocol.DOCTOR)
    async def doctor(*_words: Any) -> str:
        return str(await answered(session.workers.run("doctor", {}, timeout_seconds=120)))

    @server.command(protocol.CANCEL)
    def cancel(*_words: Any) -> None:
        session.analyses.cancel_all()


def _word(words: tuple[object, ...], index: int, what: str) -> str:
    if len(words) <= index or not isinstance(words[index], str):
        raise UsageError(f"the command needs {what}")
    return str(words[index])


def _source(session: Session, words: tuple[object, ...]) -> str:
    """The path of a CUDA source that may be compiled."""
    with refusing():
        path = file_path(_word(words, 0, "the URI of a CUDA source"))
        if path is None or not path.endswith(COMPILED):
            raise UsageError(f"{words[0]} is no CUDA source on this machine; open a .cu file")
        if not session.workspace.may_read(path):
            raise UsageError("the workspace is not trusted: nothing is compiled")
        return path


def _profile(session: Session, words: tuple[object, ...]) -> str:
    """The path of a profile that may be read."""
    with refusing():
        given = _word(words, 0, "the path of a profile")
        path = file_path(given) if given.startswith("file:") else str(Path(given).expanduser().absolute())
        if path is None or "\0" in path:
            raise UsageError(f"{given} is no file on this machine")
        if not session.workspace.may_read(path):
            raise UsageError("the workspace is not trusted: no profile is read")
        return path


async def _select(server: Server, words: tuple[object, ...]) -> str | None:
    uri = _word(words, 0, "the URI of a document")
    if len(words) > 1 and isinstance(words[1], str):
        return await choose_kernel(server.session, uri, words[1])
    choices = (await kernel_choices(server.session, uri))[:_MOST_BUTTONS]
    if not choices or not server.session.client.ask_actions:
        return None
    titles = {
        f"{index}: {one.name} {one.description}".strip(): one.kernel for index, one in enumerate(choices, 1)
    }
    params = lsp.ShowMessageRequestParams(
        type=lsp.MessageType.Info,
        message="Kernel that colours this file",
        actions=[lsp.MessageActionItem(title=title) for title in titles],
    )
    picked = await server.window_show_message_request_async(params)
    if picked is None or picked.title not in titles:
        return None
    return await choose_kernel(server.session, uri, titles[picked.title])


async def _show_page(server: Server, code: str) -> None:
    """Open the rule's page where the client can and has no view of its own."""
    session = server.session
    if session.client.own or not session.client.show_document or session.workspace.rule_page is None:
        return
    from gpadvisor.pipeline.rule_pages import all_rules  # noqa: PLC0415  # imports every rule

    rule = next((one for one in all_rules() if code.upper() == one.code or code.lower() == one.slug), None)
    if rule is not None:
        address = session.workspace.rule_page.replace("{code}", rule.code).replace("{slug}", rule.slug)
        await server.window_show_document_async(lsp.ShowDocumentParams(uri=address, take_focus=True))
