# SPDX-License-Identifier: Apache-2.0
"""One client's session: what its messages mean for folders, texts, analyses and what is published."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gpadvisor.lsp.background import Background
from gpadvisor.lsp.capabilities import client_features
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.declared_settings import SECTION
from gpadvisor.lsp.fixing import Fixes
from gpadvisor.lsp.inputs import Inputs
from gpadvisor.lsp.pages import write_rule_pages
from gpadvisor.lsp.paths import file_path
from gpadvisor.lsp.profile_runner import ProfileRunner
from gpadvisor.lsp.profiles import Profiles
from gpadvisor.lsp.publishing import TYPING_SECONDS, Publisher
from gpadvisor.lsp.reports import Reports
from gpadvisor.lsp.search import is_profile
from gpadvisor.lsp.settings import EditorSettings, read_settings
from gpadvisor.lsp.snapshot import HEADERS, SOURCES, Folder
from gpadvisor.lsp.sources import Sources
from gpadvisor.lsp.state import State
from gpadvisor.lsp.texts import TextChange
from gpadvisor.lsp.timelines import Timelines, is_snapshot, is_timeline, watched_timelines
from gpadvisor.lsp.views import Views
from gpadvisor.model.finding import SassView
from gpadvisor.sandbox.pool import Workers
from gpadvisor.sandbox.pool_limits import Limits

_POLL_SECONDS: Final = 5.0
_WATCHED_SECONDS: Final = 0.3
_LEVELS: Final = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


class Session:
    """Makes the parts, each of those before it; one for each server process."""

    def __init__(self, server: LanguageServer) -> None:
        self.state = State()
        self.background = Background()
        self.workers = Workers("gpadvisor.lsp.jobs:JOBS")
        self.client = Client(server, self.state, self.background)
        self.views = Views(self.state, self.background)
        self.publisher = Publisher(self.state, self.client, self.views, self.background)
        self.inputs = Inputs(self.state, self.client, self.publisher, self.workers, self.background)
        self.sources = Sources(self.state, self.inputs, self.publisher)
        self.profiles = Profiles(self.state, self.inputs, self.publisher, self.client, self.background)
        self.timelines = Timelines(
            self.state, self.inputs, self.publisher, self.client, self.background, self.profiles
        )
        self.reports = Reports(self.state, self.client, self.workers, self.profiles)
        self.fixes = Fixes(self.state, self.client, self.workers, self.background, self.sources)
        self.profile_runner = ProfileRunner(self.state, self.client, self.profiles)
        self.machine_code: dict[str, SassView] = {}  # the last one, by what it was made of
        self._given: Mapping[str, object] = {}  # settings that came with initialize or a change
        self._closed: asyncio.Future[None] | None = None
        self._started = False  # with the client's settings, before which nothing is analysed
        self._says_trust = False

    # Life

    def initialize(self, params: lsp.InitializeParams) -> None:
        """What the client says about itself, its folders and its trust."""
        options = _plain(params.initialization_options)
        options = options if isinstance(options, Mapping) else {}
        trusted, sample = options.get("trusted") is True, options.get("sampleFolder")
        self._says_trust = isinstance(options.get("trusted"), bool)
        # Some editors have one table for all that they send a server.
        settings = options.get("settings") or options.get(SECTION)
        self._given = settings if isinstance(settings, Mapping) else {}
        given_settings = read_settings(self._given, trusted=trusted)[0]
        self.state.now = replace(
            self.state.now,
            client=client_features(params.capabilities),
            encoding=self.client.encoding,
            trusted=trusted,
            sample_folder=os.path.realpath(sample) if isinstance(sample, str) and sample else None,
            elsewhere=given_settings,
        )
        self.state.set_folders(_folder_uris(params), given_settings)

    async def start(self) -> None:
        """Everything that takes messages of our own: settings, watchers, the first look at the folders."""
        await self.fetch_settings()
        if self.background.closing:
            return
        page = await asyncio.to_thread(write_rule_pages)
        self.state.now = replace(self.state.now, rule_page=page)
        await self._register()
        if not self._says_trust:
            self.client.say_once(
                "nothing is compiled or read, as this editor does not say whether you trust the workspace; "
                'where you do, have it send "trusted": true in its initialization options (docs/lsp.md)'
            )
        self._started = True
        for folder in self.state.now.folders.values():
            self._look_at(folder)
        if self.state.now.trusted:
            self.workers.warm_up = {}
            self.background.start(self._keep_spare())
        self.publisher.everything()
        if not self.state.now.client.watches_files:
            self.background.start(self._poll())

    async def _keep_spare(self) -> None:
        """Have a worker ready, after what needs none and what starts one itself."""
        await self.inputs.all_looked()
        self.workers.keep_spare_later()

    async def close(self) -> None:
        """Stop all work and all processes; whoever comes second waits for the first."""
        if self._closed is None:
            self.background.closing = True
            self._closed = asyncio.ensure_future(self._close(asyncio.current_task()))
        await asyncio.shield(self._closed)

    async def _close(self, ours: asyncio.Task[Any] | None) -> None:
        self.cancel_analyses()
        await self.background.stop(ours)
        await self.workers.close()

    def cancel_analyses(self) -> None:
        """Stop everything that is looked at."""
        self.inputs.cancel_all()
        self.profiles.cancel_scans()
        self.timelines.cancel_scans()

    # Settings

    async def fetch_settings(self) -> None:
        """Settings of each folder, and of what lies outside: from the client, else those that were sent."""
        uris = {path: folder.uri for path, folder in self.state.now.folders.items() if folder.uri is not None}
        answers: list[object] = [self._given] * (len(uris) + 1)
        if self.state.now.client.configuration:
            with contextlib.suppress(Exception):
                sections = await self.client.configuration(list(uris.values()), SECTION)
                answers = (
                    [_plain(section) or self._given for section in sections]
                    if len(sections) == len(answers)
                    else answers
                )
        settings = [self._read(answer) for answer in answers]
        self.state.set_settings(dict(zip(uris, settings, strict=False)), settings[-1])
        self._apply_to_process(settings[0])  # the first folder's count

    def _read(self, section: object) -> EditorSettings:
        settings, wrong = read_settings(section, trusted=self.state.now.trusted)
        for sentence in wrong:
            self.client.say_once(f"{sentence}; the default is used")
        return settings

    def _apply_to_process(self, settings: EditorSettings) -> None:
        """Settings that are one for the whole process."""
        logging.getLogger("gpadvisor").setLevel(_LEVELS[settings.log_level])
        limits = Limits(memory_bytes=settings.analysis_memory_mib << 20, count=settings.analysis_workers)
        tools = {"GPADVISOR_NVCC": settings.nvcc_path, "GPADVISOR_NVDISASM": settings.nvdisasm_path}
        self.workers.configure(limits, {name: value for name, value in tools.items() if value})

    async def settings_changed(self, settings: object) -> None:
        """New settings: everything that is shown may be another."""
        section = _plain(settings)
        if isinstance(section, Mapping) and section:
            ours = section.get(SECTION, section)
            self._given = ours if isinstance(ours, Mapping) else self._given
        before = self.state.now.folders
        await self.fetch_settings()
        for path, folder in self.state.now.folders.items():
            if path not in before or folder.settings != before[path].settings:
                self._look_at(folder)
        self.publisher.everything()

    def _scan(self, folder: Folder, delay: float = 0.0) -> None:
        """Look for profiles and timelines of a folder."""
        self.profiles.scan(folder, delay)
        self.timelines.scan(folder, delay)

    def _look_at(self, folder: Folder) -> None:
        """Look at a folder's profiles and at its open sources."""
        self._scan(folder)
        for path in self.state.now.documents:
            if self.state.now.folder_of(path).path == folder.path:
                self._analyse(path)

    # Folders and files

    def folders_changed(self, event: lsp.WorkspaceFoldersChangeEvent) -> None:
        """Folders came or went."""
        gone = {file_path(folder.uri) for folder in event.removed}
        uris = [
            folder.uri for path, folder in self.state.now.folders.items() if folder.uri and path not in gone
        ]
        added = self.state.set_folders([*uris, *(folder.uri for folder in event.added)])
        self.background.start(self._scan_added(added))

    async def _scan_added(self, folders: list[Folder]) -> None:
        await self.fetch_settings()
        for folder in folders:
            self._scan(folder)

    def files_changed(self, changes: Iterable[lsp.FileEvent]) -> None:
        """Files changed on disk: profiles are read again, headers and sources looked at again."""
        for path in {path for change in changes if (path := file_path(change.uri)) is not None}:
            folder = self.state.now.folder_of(path)
            if is_profile(path, folder.path, folder.settings.profiles_patterns):
                self.profiles.scan(folder, _WATCHED_SECONDS)
                if is_snapshot(path):
                    self.timelines.scan(folder, _WATCHED_SECONDS)
            elif is_timeline(path, folder):
                self.timelines.scan(folder, _WATCHED_SECONDS)
            elif path.endswith((*SOURCES, *HEADERS)):
                self._saved(path)
                if path not in self.state.now.documents:
                    self.publisher.soon([path])

    async def _poll(self) -> None:
        """Look for profiles where the client watches no files."""
        while not self.background.closing:
            await asyncio.sleep(_POLL_SECONDS)
            for folder in self.state.now.folders.values():
                self._scan(folder)

    async def _register(self) -> None:
        """Ask for file events and changed settings, where the client lets a server ask."""
        snapshot, options_of = self.state.now, dict[str, object]()
        if snapshot.client.watches_files:
            patterns = {
                *(
                    pattern
                    for folder in snapshot.folders.values()
                    for pattern in folder.settings.profiles_patterns
                ),
                *(pattern for folder in snapshot.folders.values() for pattern in watched_timelines(folder)),
                *(f"**/*{suffix}" for suffix in (*SOURCES, *HEADERS)),
                "**/gpadvisor.toml",
            }
            watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in sorted(patterns)]
            files = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            options_of[lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES] = files
        if snapshot.client.configuration_changes:
            options = lsp.DidChangeConfigurationRegistrationOptions(section=SECTION)
            options_of[lsp.WORKSPACE_DID_CHANGE_CONFIGURATION] = options
        await self.client.register(options_of)

    # Documents

    def opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """A document came: what is known of it is shown, and its machine code looked at."""
        item, folders = params.text_document, self.state.now.folders
        document = self.state.open(item.uri, item.text, item.version)
        if document is None:
            return
        folder = self.state.now.folder_of(document.path)
        if str(folder.path) not in folders and self._started:
            self._scan(folder)
        self.publisher.soon([document.path])
        self.state.looked_at(document.path)
        self._analyse(document.path)
        self.profiles.source_changed(document.path)
        self.timelines.source_changed(document.path)

    def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """A text changed: findings move with their lines."""
        changes = [_change(change) for change in params.content_changes]
        item = params.text_document
        document = self.state.change(item.uri, changes, item.version)
        if document is not None:
            self.publisher.soon([document.path], TYPING_SECONDS)

    def saved(self, uri: str) -> None:
        """A text is on disk."""
        path = file_path(uri)
        if path is None:
            return
        self._saved(path)
        snapshot = self.state.now
        folder = snapshot.folder_of(path)
        if not snapshot.client.watches_files:
            self._scan(folder)
        if folder.settings.profile_on_save and path in snapshot.documents:
            self.background.start(self.profile_runner.quietly(path))

    def _saved(self, path: str) -> None:
        self.state.looked_at(path)
        delay = self.state.now.settings_of(path).debounce_milliseconds / 1000
        for source in {path, *self.state.now.users_of(path)}:
            self._analyse(source, delay)
        self.profiles.source_changed(path)
        self.timelines.source_changed(path)

    def closed(self, uri: str) -> None:
        """A document went: its findings stay, in the text on disk."""
        path = self.state.close(uri)
        if path is not None:
            self.publisher.forget(path)
            self.publisher.soon([path])

    def _analyse(self, path: str, delay: float = 0.0) -> None:
        if self._started:
            self.sources.analyse_open(path, delay)


def _folder_uris(params: lsp.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    if params.root_uri:
        return [params.root_uri]
    return [Path(params.root_path).absolute().as_uri()] if params.root_path else []


def _change(event: lsp.TextDocumentContentChangeEvent) -> TextChange:
    if isinstance(event, lsp.TextDocumentContentChangePartial):
        start, end = event.range.start, event.range.end
        return TextChange(event.text, (start.line, start.character), (end.line, end.character))
    return TextChange(event.text)


def _plain(value: object) -> object:
    """JSON values again, of what the library has made named tuples of."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "_asdict"):
        return {key: _plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
