# SPDX-License-Identifier: Apache-2.0
"""Quick fixes: found in a worker, offered as code actions, asked about, applied, and checked by a compile."""

from __future__ import annotations

import asyncio
import difflib
import logging
import textwrap
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from gpadvisor.editor.place.placing import PlacedFinding, place_now
from gpadvisor.editor.show.diagnostics import rank
from gpadvisor.errors import GpadvisorError, UsageError
from gpadvisor.lsp import protocol
from gpadvisor.lsp.analyses import SOURCES
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.progress import with_progress
from gpadvisor.lsp.protocol import FIX_CHECKED, FixCheckedParams
from gpadvisor.lsp.texts import Text
from gpadvisor.lsp.wire import to_wire
from gpadvisor.lsp.workspace import View, read_text, resolved
from gpadvisor.model.finding import Finding, Freshness
from gpadvisor.model.fix import Fix, FixCheck, PatternState, TextEdit, apply_edits, fix_all
from gpadvisor.sandbox.codec import from_json, to_json

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session

log: Final = logging.getLogger("gpadvisor.lsp")
_KEPT: Final = 200
_FIND_SECONDS: Final = 30.0
_TRY_SECONDS: Final = 60.0
_WAITING: Final = 6
_ASKED: Final = 40
"""Findings of a kernel that fixes are looked for."""
_APPLY: Final = "Apply"
_MAY_CHANGE: Final = "it may change results"
_ASKED_LINES: Final = 24
"""Of a change, in the question whether to make it."""
_OUTCOMES: Final = {
    PatternState.GONE: "gone",
    PatternState.FEWER: "fewer",
    PatternState.STAYS: "remains",
    PatternState.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A fix with the text that it is for."""

    fix: Fix
    path: str
    text: Text
    kernel: str | None  # mangled, of the finding
    version: int | None


class Fixes:
    """Fixes that were offered lately, by their ids."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._offers: OrderedDict[str, Offer] = OrderedDict()
        self._tried: OrderedDict[tuple[str, str], asyncio.Future[bool | None]] = OrderedDict()
        self._one_try = asyncio.Semaphore(1)  # leaves a worker to what the user is waiting for
        self._told: set[str] = set()  # fixes that were warned of where the editor cannot ask

    async def find(self, view: View, first_line: int, last_line: int) -> list[Offer]:
        """The fixes for findings on lines from 1, then one for all of their kernel.

        Lines that were edited since the profile get none. A change that answers several findings is offered
        for the one that gains most.
        """
        session = self._session
        if not session.workspace.may_read(view.path):
            return []
        known = [(layer, one) for layer in view.layers for one in layer.file.findings if _is_open(one)]
        known.sort(key=lambda pair: rank(pair[1].finding))
        here = [(layer, one) for layer, one in known if first_line <= one.line <= last_line]
        if not here:
            return []
        kernels = {one.finding.kernel for _, one in here}
        asked = [pair for pair in known if pair[1].finding.kernel in kernels and _sure(pair[1])][:_ASKED]
        asked += [pair for pair in here if pair not in asked and _sure(pair[1])]
        arguments = {
            **self._arguments(view.path),
            "text": view.text.source,
            "findings": to_json([_today(layer, one) for layer, one in asked]),
            "launches": to_json(
                {at: facts for layer, _ in asked for at, facts in layer.entry.launches.items()}
            ),
            "disable": [[one.line, [one.finding.code], one.finding.id] for _, one in _first_of_each(here)],
            "roots": self._roots(view.path),
        }
        data = await session.workers.run("fixes", arguments, timeout_seconds=_FIND_SECONDS, quick=True)
        names = {one.finding.id: one.finding for _, one in known}
        fixes = from_json(data, list[Fix])
        ids = {one.finding.id for _, one in here}
        offers = [
            self._offer_of(view, fix, names)
            for fix in _each_once([fix for fix in fixes if fix.finding in ids])
        ]
        for kernel, name in {one.finding.kernel: one.finding.kernel_name for _, one in here}.items():
            own = [fix for fix in fixes if fix.finding in names and names[fix.finding].kernel == kernel]
            whole = fix_all(_each_once(own), name)
            offers += [] if whole is None else [self._offer_of(view, whole, names)]
        for offer in offers:
            self._offers[offer.fix.id] = offer
            self._offers.move_to_end(offer.fix.id)
        while len(self._offers) > _KEPT:
            self._offers.popitem(last=False)
        return offers

    def _offer_of(self, view: View, fix: Fix, findings: Mapping[str, Finding]) -> Offer:
        finding = None if fix.finding is None else findings.get(fix.finding)
        kernel = None if finding is None else finding.kernel
        return Offer(fix=fix, path=view.path, text=view.text, kernel=kernel, version=view.version)

    async def useless(self, offers: Sequence[Offer], seconds: float) -> set[str]:
        """Ids of fixes that leave the machine code as it is, or do not compile.

        They are compiled one after another; what is not known within the time is taken for useful. Where
        nobody waits, few are begun: a cursor passes many lines.
        """
        asked = [offer for offer in offers if offer.fix.checkable and offer.fix.edits and not offer.fix.flag]
        waiting = sum(not task.done() for task in self._tried.values())
        for offer in asked:
            key = offer.fix.id, offer.text.source
            if key not in self._tried and (seconds or waiting < _WAITING):
                self._tried[key] = self._session.later(self._try(offer))
                waiting += 1
        while len(self._tried) > _KEPT:
            self._tried.popitem(last=False)[1].cancel()
        tries = {offer.fix.id: self._tried.get((offer.fix.id, offer.text.source)) for offer in asked}
        running = [task for task in tries.values() if task is not None]
        if running and seconds:
            await asyncio.wait(running, timeout=seconds)
        return {
            at
            for at, task in tries.items()
            if task is not None and task.done() and not task.cancelled() and task.result() is False
        }

    async def _try(self, offer: Offer) -> bool | None:
        """Whether a fix compiles and changes anything; None where that cannot be told."""
        async with self._one_try:
            try:
                data = await self._session.workers.run(
                    "check", self._check_arguments(offer), timeout_seconds=_TRY_SECONDS
                )
            except GpadvisorError as error:
                log.info("a fix could not be tried: %s", error)
                return None
        checked = from_json(data, FixCheck)
        return checked.compiles and not all(kernel.unchanged for kernel in checked.kernels)

    def action(
        self, view: View, offer: Offer, diagnostics: list[lsp.Diagnostic], *, useless: bool = False
    ) -> lsp.CodeAction | lsp.Command | None:
        """A code action; one that may change results asks first, by our client or by a message.

        None for a useless one that is not shown.
        """
        client, fix = self._session.client, offer.fix
        edits = bool(fix.edits) and fix.flag is None
        direct = edits and not fix.needs_confirmation
        name = protocol.CHECK_FIX if direct else protocol.APPLY_FIX
        command = lsp.Command(title=fix.title, command=name, arguments=[view.uri, fix.id])
        if useless and not client.disabled_actions:
            return None
        if fix.needs_confirmation and edits and client.own:
            question = [fix.title, f"{fix.reason or _MAY_CHANGE}\n\n{_difference(offer)}"]
            command = lsp.Command(
                title=fix.title, command=protocol.CLIENT_APPLY_FIX, arguments=[view.uri, fix.id, *question]
            )
        if not client.action_literals:
            return replace_command(command, protocol.APPLY_FIX)
        kind = lsp.CodeActionKind(fix.kind.value)
        if useless:
            disabled = lsp.CodeActionDisabled(reason="no effect: the machine code stays the same")
            return lsp.CodeAction(
                title=f"{fix.title}: no effect", kind=kind, diagnostics=diagnostics or None, disabled=disabled
            )
        return lsp.CodeAction(
            title=fix.title,
            kind=kind,
            diagnostics=diagnostics or None,
            is_preferred=True if fix.preferred and client.preferred_actions else None,
            edit=self._edit(offer) if direct else None,
            command=command if fix.checkable or not direct else None,
        )

    async def apply(self, fix_id: str, *, agreed: bool = False) -> bool:
        """Ask unless the client has, make the change through it, check it; whether it was made.

        Raises:
            UsageError: the text has changed since the fix was offered, or the client changes no texts.
        """
        session, offer = self._session, self._offer(fix_id)
        fix = offer.fix
        if fix.needs_confirmation and not agreed and not await self._agreed(fix):
            return False
        if fix.flag is not None:
            return await self._apply_flag(offer)
        document = session.workspace.documents.get(offer.path)
        if document is None or document.text.source != offer.text.source:
            raise UsageError("the text has changed since the fix was offered; ask for fixes again")
        if not session.client.applies_edits:
            raise UsageError("this editor lets no server change a text; edit the line by hand")
        params = lsp.ApplyWorkspaceEditParams(edit=self._edit(offer), label=fix.title)
        done = await session.server.workspace_apply_edit_async(params)
        if done.applied and fix.checkable:
            session.later(self._checked_quietly(fix_id))
        return bool(done.applied)

    async def check(self, fix_id: str) -> str:
        """Compile with and without a fix that was just made, and tell what changed.

        Raises:
            GpadvisorError: the text does not compile without the fix, or a tool is missing.
        """
        session, offer = self._session, self._offer(fix_id)
        settings = session.workspace.folder_of(offer.path).settings
        arguments = self._check_arguments(offer)
        try:
            data = await with_progress(
                session.server if session.client.progress else None,
                f"GPA: checking {offer.fix.code}",
                lambda said: session.workers.run(
                    "check", arguments, timeout_seconds=settings.analysis_timeout_seconds, progress=said
                ),
            )
        except asyncio.CancelledError:
            self._tell(offer, "cancelled", "the check was stopped")
            raise
        except GpadvisorError as error:
            self._tell(offer, "notCompiled", str(error))
            raise
        checked = from_json(data, FixCheck)
        self._tell(offer, _OUTCOMES[checked.pattern] if checked.compiles else "notCompiled", checked.message)
        return checked.details

    def _check_arguments(self, offer: Offer) -> dict[str, Any]:
        users = self._session.analyses.users_of(offer.path)
        return {
            **self._arguments(offer.path),
            "text": offer.text.source,
            "fix": to_json(offer.fix),
            "kernel": offer.kernel,
            "units": [path for path in users if path.endswith(SOURCES)],
        }

    async def _checked_quietly(self, fix_id: str) -> None:
        try:
            await self.check(fix_id)
        except GpadvisorError as error:
            log.info("a fix could not be checked: %s", error)

    def _tell(self, offer: Offer, outcome: Any, text: str) -> None:
        session, fix = self._session, offer.fix
        if not session.client.own:
            bad = outcome in {"remains", "notCompiled"}
            kind = lsp.MessageType.Warning if bad else lsp.MessageType.Info
            session.server.window_show_message(lsp.ShowMessageParams(type=kind, message=f"GPAdvisor: {text}"))
            return
        params = FixCheckedParams(
            uri=session.workspace.uri_of(offer.path),
            line=max(fix.line - 1, 0),
            code=fix.code,
            title=fix.title,
            outcome=outcome,
            text=text.removeprefix(f"{fix.code}: "),
        )
        session.server.protocol.notify(FIX_CHECKED, to_wire(params))

    async def _agreed(self, fix: Fix) -> bool:
        params = lsp.ShowMessageRequestParams(
            type=lsp.MessageType.Warning,
            message=f"{fix.title}: {fix.reason or _MAY_CHANGE}",
            actions=[lsp.MessageActionItem(title=_APPLY), lsp.MessageActionItem(title="Cancel")],
        )
        try:
            picked = await self._session.server.window_show_message_request_async(params)
        except JsonRpcException:  # an editor that cannot ask: to take the fix again is the answer
            if fix.id in self._told:
                self._told.remove(fix.id)
                return True
            self._told.add(fix.id)
            said = f"{params.message}; take it again to apply it"
            self._session.server.window_show_message(lsp.ShowMessageParams(type=params.type, message=said))
            return False
        return picked is not None and picked.title == _APPLY

    async def _apply_flag(self, offer: Offer) -> bool:
        """A flag goes into our settings file; what to change in the build is said."""
        session, fix = self._session, offer.fix
        if fix.edits and fix.flag is not None:
            arguments = {**self._arguments(offer.path), "flag": fix.flag}
            await session.workers.run("flag", arguments, timeout_seconds=_FIND_SECONDS, quick=True)
            session.analyses.source(offer.path)
        said = (fix.build_line or fix.title).replace("`", "")
        session.server.window_show_message(
            lsp.ShowMessageParams(type=lsp.MessageType.Info, message=f"GPAdvisor: {said}")
        )
        return bool(fix.edits)

    def _offer(self, fix_id: str) -> Offer:
        offer = self._offers.get(fix_id)
        if offer is None:
            raise UsageError("this fix was offered too long ago; ask for fixes again")
        return offer

    def _arguments(self, path: str) -> dict[str, Any]:
        root = str(self._session.workspace.folder_of(path).path)
        return {"path": path, "root": root, **self._session.analyses.compile_arguments(path)}

    def _roots(self, path: str) -> list[str]:
        folders = [str(folder.path) for folder in self._session.workspace.folders.values()]
        return folders or [str(Path(path).parent)]

    def _edit(self, offer: Offer) -> lsp.WorkspaceEdit:
        """The edit in the client's units; versioned where the client knows versions."""
        session, fix = self._session, offer.fix
        path = resolved(fix.file)
        text = offer.text if path == offer.path else Text(read_text(path) or "")
        edits = [self._text_edit(edit, text) for edit in fix.edits]
        uri = session.workspace.uri_of(path)
        if not session.client.versioned_edits:
            return lsp.WorkspaceEdit(changes={uri: edits})
        version = offer.version if path == offer.path else None
        document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(document, edits)])

    def _text_edit(self, edit: TextEdit, text: Text) -> lsp.TextEdit:
        encoding = self._session.workspace.encoding
        start = text.units(edit.start_line - 1, edit.start_column, encoding)
        end = text.units(edit.end_line - 1, edit.end_column, encoding)
        return lsp.TextEdit(
            range=lsp.Range(
                start=lsp.Position(edit.start_line - 1, start), end=lsp.Position(edit.end_line - 1, end)
            ),
            new_text=edit.new_text,
        )


def replace_command(command: lsp.Command, name: str) -> lsp.Command:
    """The same command by another name."""
    return lsp.Command(title=command.title, command=name, arguments=command.arguments)


def _difference(offer: Offer) -> str:
    """The lines that a fix changes, as they are and as they would be."""
    before = offer.text if resolved(offer.fix.file) == offer.path else Text(read_text(offer.fix.file) or "")
    after = apply_edits(before.source, offer.fix.edits)
    lines = difflib.unified_diff(before.source.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if line[:1] in "-+" and line[:3] not in {"---", "+++"}]
    words = textwrap.dedent("\n".join(line[1:] for line in changed)).split("\n")
    shown = [f"{line[0]} {text}" for line, text in zip(changed, words, strict=True)]
    return "\n".join([*shown[:_ASKED_LINES], *(["..."] if len(shown) > _ASKED_LINES else [])])


def _is_open(placed: PlacedFinding) -> bool:
    return placed.finding.suppressed is None


def _each_once(fixes: Sequence[Fix]) -> list[Fix]:
    """Of fixes that change the same the first."""
    first: dict[tuple[object, ...], Fix] = {}
    for fix in fixes:
        first.setdefault((fix.file, fix.edits, fix.flag, fix.change == "disable" and fix.id), fix)
    return list(first.values())


def _sure(placed: PlacedFinding) -> bool:
    """Whether the text on the line is what the finding is about."""
    return placed.freshness is not Freshness.EDITED


def _today(layer: PlacedLayer, placed: PlacedFinding) -> Finding:
    """A finding with the lines of today's text."""
    finding = placed.finding
    scope = finding.scope
    if scope is not None:
        scope = place_now(scope, {**layer.files, layer.file.path: layer.file})
    return replace(finding, line=placed.line, scope=scope)


def _first_of_each(
    found: Sequence[tuple[PlacedLayer, PlacedFinding]],
) -> list[tuple[PlacedLayer, PlacedFinding]]:
    """One for each line and code."""
    kept = {(one.line, one.finding.code): (layer, one) for layer, one in reversed(found)}
    return list(kept.values())
