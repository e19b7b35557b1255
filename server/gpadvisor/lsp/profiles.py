# SPDX-License-Identifier: Apache-2.0
"""When profiles are looked for and read: the newest first, one at a time, again when their sources matter."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp

from gpadvisor import __version__
from gpadvisor.editor.show.ledger import ledger, outcomes
from gpadvisor.editor.show.status import nowhere_words
from gpadvisor.errors import GpadvisorError
from gpadvisor.files import cache_folder
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.inputs import AnalysisAnswer, Inputs, read_result
from gpadvisor.lsp.kept import kept_answer
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.outdated import is_outdated_by
from gpadvisor.lsp.publishing import Publisher
from gpadvisor.lsp.search import ProfileFile, find_profiles, look_at
from gpadvisor.lsp.snapshot import PROFILE, Folder, local_files
from gpadvisor.lsp.state import State
from gpadvisor.model.finding import EditorAnalysis, LedgerEntry
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.ledger_file import append_outcomes
from gpadvisor.sandbox.codec import CodecError, from_json, to_json

_SETTLE_SECONDS: Final = 0.3
_SETTLE_ROUNDS: Final = 200


class Profiles:
    """Profiles on disk, and what they say."""

    def __init__(
        self, state: State, inputs: Inputs, publisher: Publisher, client: Client, background: Background
    ) -> None:
        self._state, self._inputs, self._publisher = state, inputs, publisher
        self._client, self._background = client, background
        self._files: dict[str, ProfileFile] = {}
        self._one_at_a_time = asyncio.Semaphore(1)  # leaves a worker to what the user is waiting for
        self._scans: dict[str, asyncio.Future[None]] = {}
        self._found_in: dict[str, Folder] = {}  # profiles outside of the open folders, by path
        self._launches: dict[str, int | None] = {}  # shown instead of the longest one, by path
        self._asked_again: set[tuple[str, str]] = set()  # profiles with sources that may be those they miss

    def cancel_scans(self) -> None:
        """Look for nothing any more."""
        for task in self._scans.values():
            task.cancel()

    def scan(self, folder: Folder, delay: float = 0.0) -> None:
        """Look for profiles of a folder that are new, changed or gone."""
        key = str(folder.path)
        running = self._scans.pop(key, None)
        if running is not None:
            running.cancel()
        self._scans[key] = self._background.start(self._scan(folder, delay))

    async def _scan(self, folder: Folder, delay: float) -> None:
        await asyncio.sleep(delay)
        with self._inputs.looking():
            await self._find(folder)

    async def _find(self, folder: Folder) -> None:
        folder = self._state.now.folders.get(str(folder.path), folder)  # with today's settings
        settings, may_read = folder.settings, self._state.now.may_read(str(folder.path))
        if not (settings.enable and settings.profiles_enable and may_read):
            return
        files = await asyncio.to_thread(
            find_profiles, folder.path, settings.profiles_patterns, settings.profiles_max
        )
        for path in [file for file in self._files if Path(file).is_relative_to(folder.path)]:
            if look_at(path) is None:
                self._forget(path)
        for file in files:
            if folder.uri is None:
                self._found_in[file.path] = folder
            if self._files.get(file.path) != file:
                self.read(file.path)

    def _forget(self, path: str) -> None:
        self._files.pop(path, None)
        self._launches.pop(path, None)
        self._found_in.pop(path, None)
        self._state.well(path)
        self._publisher.analyses_changed(self._state.remove(PROFILE + path))

    def source_changed(self, path: str) -> None:
        """A source is on disk, or gone from there: read those profiles again to which that matters."""
        self._background.start(self._source_changed(path))

    async def _source_changed(self, path: str) -> None:
        await self._inputs.profiles_read()  # perhaps of the source as it was
        for entry in self._state.now.profiles:
            profile = entry.key.removeprefix(PROFILE)
            if not await asyncio.to_thread(is_outdated_by, entry.analysis, path):
                continue
            if path in local_files(entry).values():
                self._asked_again.discard((profile, path))  # when it goes and comes back, it is asked about
            elif (profile, path) in self._asked_again:
                continue  # it was no source of this profile then, and is none now
            else:
                self._asked_again.add((profile, path))
            self._inputs.forget(lambda digest: "@" in digest)  # other launches of profiles
            self.read(profile, launch=self._launches.get(profile))

    def timeline_changed(self, folder: Folder) -> None:
        """What changes are worth for the run may be another: read the folder's profiles again."""
        self._inputs.forget(lambda digest: "@" in digest)
        snapshot = self._state.now
        paths = {entry.key.removeprefix(PROFILE) for entry in snapshot.profiles}
        paths |= {job.removeprefix(PROFILE) for job in snapshot.jobs if job.startswith(PROFILE)}
        for path in sorted(paths):
            if (self._found_in.get(path) or snapshot.project_of(path)).path == folder.path:
                self.read(path, launch=self._launches.get(path))

    async def newer_read(self, age: float) -> None:
        """Wait for the profiles that are being read and are newer than this, in seconds of the clock."""
        await self._inputs.all_looked()
        newer = {path for path, file in self._files.items() if file.modified_ns / 1e9 > age}
        await self._inputs.profiles_read(newer.__contains__)

    def launch_of(self, path: str) -> int | None:
        """The launch that is shown of a profile instead of the longest one."""
        return self._launches.get(path)

    def read(self, path: str, *, launch: int | None = None) -> asyncio.Task[None]:
        """Read a profile and show it; ``launch`` instead of the longest one of its kernel."""
        self._launches[path] = launch
        self._state.looked_at(path)
        return self._inputs.start(PROFILE + path, path, self._read(path, launch))

    async def _read(self, path: str, launch: int | None) -> None:
        with self._inputs.looking():
            file = await settled(path)
            if file is None:
                raise GpadvisorError(f"{path} is no file, or is empty; give a report or a snapshot")
            self._files[path] = file
            snapshot = self._state.now
            folder = self._found_in.get(path) or snapshot.project_of(path)
            arguments: dict[str, Any] = {"path": path, "root": str(folder.path), "trusted": snapshot.trusted}
            if launch is not None:
                arguments["launch"] = launch
            timeline = snapshot.timelines.get(str(folder.path))
            if timeline is not None:
                arguments["timeline"] = timeline
            # Picking a launch again shows what was read then.
            digest = "" if launch is None else f"{file}@{launch}"
            result = self._inputs.remembered(digest) or await _known(arguments)
            if result is not None:
                await self._keep(file, launch, digest, result)
                return
        async with self._one_at_a_time:
            title, seconds = f"reading {Path(path).name}", folder.settings.analysis_timeout_seconds
            result = await read_result(await self._inputs.run("profile", arguments, title, seconds))
            await self._keep(file, launch, digest, result)

    async def _keep(self, file: ProfileFile, launch: int | None, digest: str, result: AnalysisAnswer) -> None:
        """Remember what a profile says, and show it."""
        if digest:
            self._inputs.remember(digest, result)
        analysis, launches = result
        entry = Entry(
            key=PROFILE + file.path,
            analysis=analysis,
            is_profile=True,
            age=file.modified_ns / 1e9,
            content=analysis.sha256,
            launches=launches,
        )
        if launch is None:
            await self._write_down(entry)
            history = await asyncio.to_thread(_kept, analysis.sha256, self._history(entry))
            entry = replace(entry, history=history)
        self._show(entry)

    def _show(self, entry: Entry) -> None:
        self._publisher.analyses_changed(self._state.put(entry))
        if (nowhere := nowhere_words(entry.analysis)) is not None:
            self._client.say_once(nowhere, lsp.MessageType.Info)
        # Profiles are read newest first: those before this one have waited for it.
        for newer in self._state.now.profiles:
            if newer.age > entry.age and not newer.history:
                history = self._from_older(newer.analysis, newer.age)
                if history:
                    self._publisher.analyses_changed(self._state.put(replace(newer, history=history)))

    def _history(self, entry: Entry) -> tuple[LedgerEntry, ...]:
        """What the newest older profile with a common kernel promised; the one just replaced comes first."""
        replaced = self._state.now.entries.get(entry.key)
        if replaced is not None and replaced.content != entry.content:
            return ledger(replaced.analysis, entry.analysis)
        if replaced is not None:
            return replaced.history
        return self._from_older(entry.analysis, entry.age)

    async def _write_down(self, entry: Entry) -> None:
        """A line of the ledger for each fix that was applied since the profile before this one."""
        path = entry.key.removeprefix(PROFILE)
        folder = self._found_in.get(path) or self._state.now.project_of(path)
        replaced = self._state.now.entries.get(entry.key)
        before = replaced.analysis if replaced is not None else self._older(entry.analysis, entry.age)
        if not folder.settings.profiles_ledger or before is None or not self._state.applied:
            return
        measured = outcomes(before, entry.analysis, self._state.applied)
        if not measured:
            return
        try:
            await asyncio.to_thread(
                append_outcomes, Path(folder.path), folder.settings.profiles_ledger, measured
            )
        except (GpadvisorError, OSError) as error:
            self._client.say_once(f"the ledger is not written: {error}", lsp.MessageType.Warning)
        else:
            rules_measured = {(outcome.kernel, outcome.rule) for outcome in measured}
            names = {kernel.kernel: kernel.base_name for kernel in before.kernels}
            self._state.applied = {
                (kernel, code)
                for kernel, code in self._state.applied
                if (names.get(kernel), code) not in rules_measured
            }

    def _from_older(self, analysis: EditorAnalysis, age: float) -> tuple[LedgerEntry, ...]:
        older = self._older(analysis, age)
        return () if older is None else ledger(older, analysis)

    def _older(self, analysis: EditorAnalysis, age: float) -> EditorAnalysis | None:
        """The newest older profile with a common kernel."""
        names = {kernel.base_name for kernel in analysis.kernels}
        for profile in self._state.now.profiles:
            if profile.age < age and names & {kernel.base_name for kernel in profile.analysis.kernels}:
                return profile.analysis
        return None


async def _known(arguments: dict[str, Any]) -> AnalysisAnswer | None:
    """The answer of an earlier server."""
    answer = await asyncio.to_thread(kept_answer, arguments)
    with contextlib.suppress(CodecError):
        return None if answer is None else await read_result(answer)
    return None


def _kept(profile: str, history: tuple[LedgerEntry, ...]) -> tuple[LedgerEntry, ...]:
    """What predictions came to in a profile; a later server finds it by the profile's digest."""
    cache = Cache(cache_folder())
    key = Cache.key("predictions", {"profile": profile, "version": __version__})
    if history:
        cache.put(key, json.dumps(to_json(history)).encode())
        return history
    body = cache.get(key)
    with contextlib.suppress(ValueError):
        return () if body is None else from_json(json.loads(body), tuple[LedgerEntry, ...])
    return ()


async def settled(path: str) -> ProfileFile | None:
    """A file once it does not grow any more: profilers write for a while."""
    file = look_at(path)
    for _ in range(_SETTLE_ROUNDS):
        await asyncio.sleep(_SETTLE_SECONDS)
        profile_file = look_at(path)
        if profile_file == file:
            return profile_file
        file = profile_file
    return file
