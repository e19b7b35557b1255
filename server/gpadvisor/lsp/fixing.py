# SPDX-License-Identifier: Apache-2.0
"""Quick fixes: found in a worker, tried before they are offered, asked about, applied, and checked."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from gpadvisor.errors import GpadvisorError, UsageError
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.features.fixes import (
    MAY_CHANGE,
    Offer,
    check_arguments,
    fix_checked,
    fix_question,
    offers_of,
    outcome,
    workspace_edit,
)
from gpadvisor.lsp.paths import read_text
from gpadvisor.lsp.protocol import FIX_CHECKED
from gpadvisor.lsp.snapshot import View
from gpadvisor.lsp.sources import Sources
from gpadvisor.lsp.state import State
from gpadvisor.lsp.wire import to_wire
from gpadvisor.model.fix import Fix, FixCheck
from gpadvisor.sandbox.codec import from_json
from gpadvisor.sandbox.pool import Workers

log: Final = logging.getLogger("gpadvisor.lsp")
_KEPT: Final = 200
_FIND_SECONDS: Final = 30.0
_TRY_SECONDS: Final = 60.0
_WAITING: Final = 6
_APPLY: Final = "Apply"


class Fixes:
    """Fixes that were offered lately, by their ids."""

    def __init__(
        self, state: State, client: Client, workers: Workers, background: Background, sources: Sources
    ) -> None:
        self._state, self._client, self._workers = state, client, workers
        self._background, self._sources = background, sources
        self._offers: OrderedDict[str, Offer] = OrderedDict()
        self._tried: OrderedDict[tuple[str, str], asyncio.Future[bool | None]] = OrderedDict()
        self._one_try = asyncio.Semaphore(1)  # leaves a worker to what the user is waiting for
        self._told: set[str] = set()  # fixes that were warned of where the editor cannot ask

    async def find(self, view: View, first_line: int, last_line: int) -> list[Offer]:
        """The fixes for findings on lines from 1, then one for all of their kernel."""
        question = fix_question(self._state.now, view, first_line, last_line)
        if question is None:
            return []
        arguments = dict(question.arguments)
        data = await self._workers.run("fixes", arguments, timeout_seconds=_FIND_SECONDS, quick=True)
        offers = offers_of(question, from_json(data, list[Fix]))
        for offer in offers:
            self._offers[offer.fix.id] = offer
            self._offers.move_to_end(offer.fix.id)
        while len(self._offers) > _KEPT:
            self._offers.popitem(last=False)
        return offers

    async def useless(self, offers: Sequence[Offer], seconds: float) -> set[str]:
        """Ids of fixes that leave the machine code as it is, or do not compile.

        They are compiled one after another; what is not known within the time is taken for useful. Where
        nobody waits, few are begun: a cursor passes many lines.
        """
        to_check = [
            offer for offer in offers if offer.fix.checkable and offer.fix.edits and not offer.fix.flag
        ]
        waiting = sum(not task.done() for task in self._tried.values())
        for offer in to_check:
            key = offer.fix.id, offer.text.source
            if key not in self._tried and (seconds or waiting < _WAITING):
                self._tried[key] = self._background.start(self._try(offer))
                waiting += 1
        while len(self._tried) > _KEPT:
            self._tried.popitem(last=False)[1].cancel()
        tries = {offer.fix.id: self._tried.get((offer.fix.id, offer.text.source)) for offer in to_check}
        running = [task for task in tries.values() if task is not None]
        if running and seconds:
            await asyncio.wait(running, timeout=seconds)
        return {
            fix_id
            for fix_id, task in tries.items()
            if task is not None and task.done() and not task.cancelled() and task.result() is False
        }

    async def _try(self, offer: Offer) -> bool | None:
        """Whether a fix compiles and changes anything; None where that cannot be told."""
        async with self._one_try:
            try:
                arguments = check_arguments(self._state.now, offer)
                data = await self._workers.run("check", arguments, timeout_seconds=_TRY_SECONDS)
            except GpadvisorError as error:
                log.info("a fix could not be tried: %s", error)
                return None
        checked = from_json(data, FixCheck)
        return checked.compiles and not all(kernel.unchanged for kernel in checked.kernels)

    async def apply(self, fix_id: str, *, agreed: bool = False) -> bool:
        """Ask unless the client has, make the change through it, check it; whether it was made.

        Raises:
            UsageError: the text has changed since the fix was offered, or the client changes no texts.
        """
        offer = self._offer(fix_id)
        fix = offer.fix
        if fix.needs_confirmation and not agreed and not await self._agreed(fix):
            return False
        if fix.flag is not None:
            return await self._apply_flag(offer)
        snapshot = self._state.now
        document = snapshot.documents.get(offer.path)
        if document is None or document.text.source != offer.text.source:
            raise UsageError("the text has changed since the fix was offered; ask for fixes again")
        if not snapshot.client.applies_edits:
            raise UsageError("this editor lets no server change a text; edit the line by hand")
        done = await self._client.apply(workspace_edit(snapshot, offer, read_text), fix.title)
        if done:
            self._note(offer)
        if done and fix.checkable:
            self._background.start(self._checked_quietly(fix_id))
        return done

    async def check(self, fix_id: str) -> str:
        """Compile with and without a fix that was just made, and tell what changed.

        Raises:
            GpadvisorError: the text does not compile without the fix, or a tool is missing.
        """
        offer = self._offer(fix_id)
        self._note(offer)
        arguments = check_arguments(self._state.now, offer)
        seconds = self._state.now.settings_of(offer.path).analysis_timeout_seconds

        def work(progress: Callable[[str], None]) -> Awaitable[Any]:
            return self._workers.run("check", arguments, timeout_seconds=seconds, progress=progress)

        try:
            data = await self._client.with_progress(f"checking {offer.fix.code}", work)
        except asyncio.CancelledError:
            self._tell(offer, "cancelled", "the check was stopped")
            raise
        except GpadvisorError as error:
            self._tell(offer, "notCompiled", str(error))
            raise
        checked = from_json(data, FixCheck)
        self._tell(offer, outcome(checked), checked.message)
        return checked.details

    async def _checked_quietly(self, fix_id: str) -> None:
        try:
            await self.check(fix_id)
        except GpadvisorError as error:
            log.info("a fix could not be checked: %s", error)

    def _tell(self, offer: Offer, result: str, text: str) -> None:
        if self._state.now.client.own:
            self._client.notify(FIX_CHECKED, to_wire(fix_checked(self._state.now, offer, result, text)))
            return
        bad = result in {"remains", "notCompiled"}
        self._client.say(text, lsp.MessageType.Warning if bad else lsp.MessageType.Info)

    async def _agreed(self, fix: Fix) -> bool:
        question = f"{fix.title}: {fix.reason or MAY_CHANGE}"
        try:
            return await self._client.ask(question, [_APPLY, "Cancel"]) == _APPLY
        except JsonRpcException:  # an editor that cannot ask: to take the fix again is the answer
            if fix.id in self._told:
                self._told.remove(fix.id)
                return True
            self._told.add(fix.id)
            self._client.say(f"{question}; take it again to apply it", lsp.MessageType.Warning)
            return False

    async def _apply_flag(self, offer: Offer) -> bool:
        """A flag goes into our settings file; what to change in the build is said."""
        fix = offer.fix
        if fix.edits and fix.flag is not None:
            arguments = {**self._state.now.job_arguments(offer.path), "flag": fix.flag}
            await self._workers.run("flag", arguments, timeout_seconds=_FIND_SECONDS, quick=True)
            self._sources.analyse(offer.path)
        self._client.say((fix.build_line or fix.title).replace("`", ""))
        return bool(fix.edits)

    def _note(self, offer: Offer) -> None:
        """Remember what was applied: the next profile shows what came of it."""
        if offer.kernel is not None and offer.fix.change != "disable":
            self._state.applied.add((offer.kernel, offer.fix.code))

    def _offer(self, fix_id: str) -> Offer:
        offer = self._offers.get(fix_id)
        if offer is None:
            raise UsageError("this fix was offered too long ago; ask for fixes again")
        return offer
