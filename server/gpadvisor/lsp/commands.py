# SPDX-License-Identifier: Apache-2.0
"""Commands of ``workspace/executeCommand``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gpadvisor.errors import UsageError
from gpadvisor.lsp import protocol
from gpadvisor.lsp.errors import answered, request_errors
from gpadvisor.lsp.features.kernels import chosen_kernel, kernel_choices
from gpadvisor.lsp.paths import can_be_path, file_path
from gpadvisor.lsp.session import Session
from gpadvisor.lsp.snapshot import COMPILED, Snapshot

_MOST_BUTTONS: Final = 8


def register(server: LanguageServer, session: Session) -> None:
    """Register the handlers of what looks at sources and profiles.

    The library hands the server to a handler whose first parameter may be one, and a server is an ``object``:
    hence ``Any``.
    """
    state, sources = session.state, session.sources

    @server.command(protocol.ANALYZE_FILE)
    async def analyze(*words: Any) -> None:
        await answered(sources.analyse(_source(state.now, words), on_request=True))

    @server.command(protocol.MODEL_FILE)
    async def model(*words: Any) -> None:
        await answered(sources.analyse(_source(state.now, words), on_request=True, model=True))

    @server.command(protocol.IMPORT_PROFILE)
    async def import_profile(*words: Any) -> None:
        await answered(session.profiles.read(_profile(state.now, words)))

    @server.command(protocol.PROFILE)
    async def profile(*words: Any) -> str:
        return await answered(session.profile_runner.run(_source(state.now, words)))

    @server.command(protocol.SELECT_KERNEL)
    async def select(*words: Any) -> str | None:
        return await answered(_select(session, words))

    @server.command(protocol.CANCEL)
    def cancel(*_words: Any) -> None:
        session.cancel_analyses()

    @server.command(protocol.DOCTOR)
    async def doctor(*_words: Any) -> str:
        return str(await answered(session.workers.run("doctor", {}, timeout_seconds=120)))


def register_shown(server: LanguageServer, session: Session) -> None:
    """Register the handlers of what acts on what is shown: pages, annotations, fixes."""
    fixes = session.fixes

    @server.command(protocol.EXPLAIN_COMMAND)
    async def explain(*words: Any) -> str:
        from gpadvisor.pipeline.stall_pages import explain as page_of  # noqa: PLC0415  # imports every rule

        with request_errors():
            page = page_of(_word(words, 0, "the code of a rule, or a stall reason"))
        await _show_page(session, str(words[0]))
        return page

    @server.command(protocol.TOGGLE_ANNOTATIONS)
    def toggle(*_words: Any) -> bool:
        visible = session.state.toggle_annotations()
        session.publisher.everything()
        return visible

    @server.command(protocol.APPLY_FIX)
    async def apply_fix(*words: Any) -> bool:
        agreed = len(words) > 2 and words[2] is True
        return await answered(fixes.apply(_fix(words), agreed=agreed))

    @server.command(protocol.CHECK_FIX)
    async def check_fix(*words: Any) -> str:
        return await answered(fixes.check(_fix(words)))


def _word(words: tuple[object, ...], index: int, text: str) -> str:
    if len(words) <= index or not isinstance(words[index], str):
        raise UsageError(f"the command needs {text}")
    return str(words[index])


def _fix(words: tuple[object, ...]) -> str:
    with request_errors():
        return _word(words, 1, "the id of a fix")


def _source(snapshot: Snapshot, words: tuple[object, ...]) -> str:
    """The path of a CUDA source that may be compiled."""
    with request_errors():
        path = file_path(_word(words, 0, "the URI of a CUDA source"))
        if path is None or not path.endswith(COMPILED):
            raise UsageError(f"{words[0]} is no CUDA source on this machine; open a .cu file")
        if not snapshot.may_read(path):
            raise UsageError("the workspace is not trusted: nothing is compiled")
        return path


def _profile(snapshot: Snapshot, words: tuple[object, ...]) -> str:
    """The path of a profile that may be read."""
    with request_errors():
        word = _word(words, 0, "the path of a profile")
        path = file_path(word) if word.startswith("file:") else str(Path(word).expanduser().absolute())
        if path is None or not can_be_path(path):
            raise UsageError(f"{word!a} is no file on this machine")
        if not snapshot.may_read(path):
            raise UsageError("the workspace is not trusted: no profile is read")
        return path


async def _select(session: Session, words: tuple[object, ...]) -> str | None:
    uri = _word(words, 0, "the URI of a document")
    if len(words) > 1 and isinstance(words[1], str):
        return await _choose(session, uri, words[1])
    snapshot = session.state.now
    choices = kernel_choices(snapshot, await session.views.of(uri))[:_MOST_BUTTONS]
    if not choices or not snapshot.client.ask_actions:
        return None
    titles = {
        f"{index}: {choice.name} {choice.description}".strip(): choice.kernel
        for index, choice in enumerate(choices, 1)
    }
    picked = await session.client.ask("Kernel that colours this file", list(titles), lsp.MessageType.Info)
    return None if picked not in titles else await _choose(session, uri, titles[picked])


async def _choose(session: Session, uri: str, key: str) -> str:
    """Show an instantiation or a launch; its name."""
    view = await session.views.of(uri)
    chosen = chosen_kernel(view, key)
    path, kernel = file_path(uri) or "", chosen.kernel
    session.publisher.analyses_changed(session.state.choose(path, kernel.base_name, kernel.kernel))
    if chosen.launch is not None:
        await session.profiles.read(chosen.layer.analysis.origin, launch=chosen.launch)
    return kernel.name


async def _show_page(session: Session, code: str) -> None:
    """Open the page of a rule or a stall reason where the client can and has no view of its own."""
    snapshot = session.state.now
    if snapshot.client.own or not snapshot.client.show_document or snapshot.rule_page is None:
        return
    from gpadvisor.pipeline.rule_pages import find_rule  # noqa: PLC0415  # imports every rule
    from gpadvisor.pipeline.stall_pages import find_stall  # noqa: PLC0415  # the same

    stall = find_stall(code)
    if stall is not None:
        first, second = "stall", stall.name
    else:
        rule = find_rule(code)
        first, second = rule.code, rule.slug
    await session.client.open_page(snapshot.rule_page.replace("{code}", first).replace("{slug}", second))
