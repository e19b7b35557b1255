# SPDX-License-Identifier: Apache-2.0
"""When a folder's timeline is looked for and read: the one that is named, else the newest that is one."""

from __future__ import annotations

import asyncio
import logging
import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp

from gpadvisor.errors import GpadvisorError
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.inputs import Inputs, read_result
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.outdated import is_outdated_by
from gpadvisor.lsp.profiles import Profiles, settled
from gpadvisor.lsp.publishing import Publisher
from gpadvisor.lsp.search import ProfileFile, find_profiles, is_profile, look_at
from gpadvisor.lsp.snapshot import RUN, Folder
from gpadvisor.lsp.state import State
from gpadvisor.store.paths import has_timeline

log: Final = logging.getLogger("gpadvisor.lsp")
_TRACE: Final = "trace.db"
_SNAPSHOTS: Final = "**/*.gpadvisor"
_LOOKED_AT: Final = 100
_TRIED: Final = 5
"""Files that are looked at for whether they are timelines, the newest first."""


class Timelines:
    """Timelines of runs, one for each folder."""

    def __init__(
        self,
        state: State,
        inputs: Inputs,
        publisher: Publisher,
        client: Client,
        background: Background,
        profiles: Profiles,
    ) -> None:
        self._state, self._inputs, self._publisher = state, inputs, publisher
        self._client, self._background, self._profiles = client, background, profiles
        self._scans: dict[str, asyncio.Future[None]] = {}
        self._again: set[str] = set()  # folders to look at once more, as a large trace takes long to read
        self._read_from: dict[str, ProfileFile] = {}  # by folder
        self._others: set[ProfileFile] = set()  # no timelines, or damaged ones

    def cancel_scans(self) -> None:
        """Look for nothing any more."""
        self._again.clear()
        for task in self._scans.values():
            task.cancel()

    def scan(self, folder: Folder, delay: float = 0.0) -> None:
        """Look for a timeline of a folder that is new, changed or gone."""
        key = str(folder.path)
        if key in self._scans:
            self._again.add(key)
        else:
            self._scans[key] = self._background.start(self._scan(folder, delay))

    async def _scan(self, folder: Folder, delay: float) -> None:
        key = str(folder.path)
        try:
            await asyncio.sleep(delay)
            await self._find(folder)
        finally:
            del self._scans[key]
            if key in self._again and not self._background.closing:
                self._again.discard(key)
                self.scan(folder)

    async def _find(self, folder: Folder) -> None:
        folder = self._state.now.folders.get(str(folder.path), folder)  # with today's settings
        settings, key = folder.settings, str(folder.path)
        if not (settings.enable and self._state.now.may_read(key)):
            return
        for file in await asyncio.to_thread(_candidates, folder):
            if self._read_from.get(key) == file:
                return
            if file not in self._others and await self._is_read(folder, file):
                return
        self._forget(folder)

    async def _is_read(self, folder: Folder, file: ProfileFile) -> bool:
        """Whether a file is shown as the folder's timeline from now on."""
        try:
            await self._inputs.start(RUN + file.path, file.path, self._read(folder, file))
        except GpadvisorError as error:
            self._others.add(file)
            self._client.say_once(str(error), lsp.MessageType.Warning)
        except Exception:
            self._others.add(file)
            raise
        return self._read_from.get(str(folder.path)) == file

    async def _read(self, folder: Folder, file: ProfileFile) -> None:
        now = await settled(file.path)
        if now is None:
            raise GpadvisorError(f"{file.path} is no file, or is empty; gpadvisor.timeline.file names it")
        if now != file:
            return  # it is looked at again, as it has changed
        arguments: dict[str, Any] = {
            "path": file.path,
            "root": str(folder.path),
            "trusted": self._state.now.trusted,
        }
        title, seconds = f"reading {Path(file.path).name}", folder.settings.analysis_timeout_seconds
        answer = await self._inputs.run("timeline", arguments, title, seconds)
        if "is_other" in answer:
            self._others.add(file)
            if folder.settings.timeline_file:
                raise GpadvisorError(str(answer["is_other"]))
            log.info("%s", answer["is_other"])
            return
        analysis, _ = await read_result(answer)
        self._forget(folder)
        key = str(folder.path)
        self._read_from[key] = file
        self._state.set_timeline(key, file.path)
        entry = Entry(
            key=RUN + file.path,
            analysis=analysis,
            is_profile=False,
            is_run=True,
            age=file.modified_ns / 1e9,
            content=analysis.sha256,
        )
        self._publisher.analyses_changed(self._state.put(entry))
        for note in analysis.problems:
            self._client.say_once(note.message, lsp.MessageType.Info)
        self._profiles.timeline_changed(folder)

    def _forget(self, folder: Folder) -> None:
        known = self._read_from.pop(str(folder.path), None)
        if known is None:
            return
        self._state.set_timeline(str(folder.path), None)
        self._publisher.analyses_changed(self._state.remove(RUN + known.path))
        self._profiles.timeline_changed(folder)

    def source_changed(self, path: str) -> None:
        """A source is on disk, or gone from there: findings may be in it, or set aside by it."""
        self._background.start(self._source_changed(path))

    async def _source_changed(self, path: str) -> None:
        for key, file in list(self._read_from.items()):
            entry, folder = self._state.now.entries.get(RUN + file.path), self._state.now.folders.get(key)
            if entry is None or folder is None:
                continue
            if await asyncio.to_thread(is_outdated_by, entry.analysis, path):
                self._inputs.start(RUN + file.path, file.path, self._read(folder, file))


def _candidates(folder: Folder) -> list[ProfileFile]:
    """The file that is named, else those that may be timelines, the newest first."""
    settings = folder.settings
    if settings.timeline_file:
        path = folder.path / settings.timeline_file
        file = look_at(str(path / _TRACE if path.is_dir() else path))
        if file is None:
            return [ProfileFile(path=str(path), size=0, modified_ns=0)]
        return [file]
    patterns = (*settings.timeline_patterns, *([_SNAPSHOTS] if settings.timeline_patterns else []))
    files = find_profiles(folder.path, patterns, _LOOKED_AT)
    return [file for file in files if not is_snapshot(file.path) or has_timeline(Path(file.path))][:_TRIED]


def is_snapshot(path: str) -> bool:
    """Whether a file may be a snapshot, which may have a timeline."""
    return fnmatch(path, _SNAPSHOTS)


def is_timeline(path: str, folder: Folder) -> bool:
    """Whether a file may be the folder's timeline."""
    setting = folder.settings.timeline_file
    if setting:
        return Path(path) in {place := Path(os.path.normpath(folder.path / setting)), place / _TRACE}
    return is_profile(path, folder.path, folder.settings.timeline_patterns)


def watched_timelines(folder: Folder) -> tuple[str, ...]:
    """Patterns of the files that a client is asked to watch."""
    setting = folder.settings.timeline_file
    if not setting:
        return folder.settings.timeline_patterns
    return () if Path(setting).is_absolute() else (f"**/{setting}", f"**/{setting}/{_TRACE}")
