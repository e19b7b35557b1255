# SPDX-License-Identifier: Apache-2.0
"""One client's session: what its messages mean for folders, texts, analyses and what is published."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types as lsp

from gpadvisor.lsp.analyses import COMPILED, HEADERS, SOURCES, Analyses
from gpadvisor.lsp.capabilities import ClientFeatures, client_features
from gpadvisor.lsp.pages import write_rule_pages
from gpadvisor.lsp.publishing import TYPING_SECONDS, Publisher
from gpadvisor.lsp.search import is_profile
from gpadvisor.lsp.settings import SECTION, EditorSettings, read_settings
from gpadvisor.lsp.texts import Encoding, TextChange
from gpadvisor.lsp.workspace import Folder, Workspace, file_path
from gpadvisor.model.finding import SassView
from gpadvisor.sandbox.pool import Workers
from gpadvisor.sandbox.pool_limits import Limits

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server

log: Final = logging.getLogger("gpadvisor.lsp")
_POLL_SECONDS: Final = 5.0
_WATCHED_SECONDS: Final = 0.3
_LEVELS: Final = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


class Session:
    """Ties the parts together; one for each server process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.workspace = Workspace()
        self.client = ClientFeatures()
        self.workers = Workers("gpadvisor.lsp.jobs:JOBS")
        self.publisher = Publisher(self)
        self.analyses = Analyses(self)
        self.machine_code: dict[str, SassView] = {}  # the last one, by what it was made of
        self.closing = False
        self._given: Mapping[str, object] = {}  # settings that came with initialize or a change
        self._tasks: set[asyncio.Future[Any]] = set()
        self._said: set[str] = set()
        self._closed: asyncio.Future[None] | None = None
        self._started = False  # with the client's settings, before which nothing is analysed
        self._limits = Limits()
        self._says_trust = False

    # Life

    def initialize(self, params: lsp.InitializeParams) -> None:
        """What the client says about itself, its folders and its trust."""
        self.client = client_features(params.capabilities)
        options = _plain(params.initialization_options)
        options = options if isinstance(options, Mapping) else {}
        self.workspace.trusted = options.get("trusted") is True
        self._says_trust = isinstance(options.get("trusted"), bool)
        sample = options.get("sampleFolder")
        self.workspace.sample_folder = (
            os.path.realpath(sample) if isinstance(sample, str) and sample else None
        )
        # Some editors have one table for all that they send a server.
        settings = options.get("settings") or options.get(SECTION)
        self._given = settings if isinstance(settings, Mapping) else {}
        self.workspace.encoding = _encoding(self.server.workspace.position_encoding)
        given = read_settings(self._given, trusted=self.workspace.trusted)[0]
        self.workspace.elsewhere = given
        for folder in self.workspace.set_folders(_folder_uris(params)):
            folder.settings = given

    async def start(self) -> None:
        """Everything that takes messages of our own: settings, watchers, the first look at the folders."""
        await self.fetch_settings()
        if self.closing:
            return
        self.workspace.rule_page = await asyncio.to_thread(write_rule_pages)
        await self._register()
        if not self._says_trust:
            self.say_once(
                "nothing is compiled or read, as this editor does not say whether you trust the workspace; "
                'where you do, have it send "trusted": true in its initialization options (docs/lsp.md)'
            )
        if self.workspace.trusted:
            self.workers.warm_up = {}
            self.workers.keep_spare()
        self._started = True
        for folder in list(self.workspace.folders.values()):
            self.analyses.scan(folder)
            self._analyse_open(folder)
        self.publisher.everything()
        if not self.client.watches_files:
            self.later(self._poll())

    async def close(self) -> None:
        """Stop all work and all processes; whoever comes second waits for the first."""
        if self._closed is None:
            self.closing = True
            self._closed = asyncio.ensure_future(self._close(asyncio.current_task()))
        await asyncio.shield(self._closed)

    async def _close(self, ours: asyncio.Task[Any] | None) -> None:
        self.analyses.cancel_all()
        others = [task for task in self._tasks if task is not ours]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.workers.close()

    def later(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Run something beside the messages; its failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    @property
    def busy(self) -> bool:
        """Whether an analysis runs."""
        return self.analyses.busy

    # Settings

    async def fetch_settings(self) -> None:
        """Settings of each folder, and of what lies outside: from the client, else those that were sent."""
        folders = [folder for folder in self.workspace.folders.values() if folder.uri is not None]
        answers: list[object] = [self._given] * (len(folders) + 1)
        if self.client.configuration:
            items = [lsp.ConfigurationItem(scope_uri=folder.uri, section=SECTION) for folder in folders]
            with contextlib.suppress(Exception):
                params = lsp.ConfigurationParams(items=[*items, lsp.ConfigurationItem(section=SECTION)])
                told = await self.server.workspace_configuration_async(params)
                answers = (
                    [_plain(one) or self._given for one in told] if len(told) == len(answers) else answers
                )
        for folder, answer in zip(folders, answers, strict=False):
            folder.settings = self._read(answer)
        self.workspace.elsewhere = self._read(answers[-1])
        self._apply_to_process()

    def _read(self, section: object) -> EditorSettings:
        settings, wrong = read_settings(section, trusted=self.workspace.trusted)
        for sentence in wrong:
            self.say_once(f"{sentence}; the default is used")
        return settings

    def _apply_to_process(self) -> None:
        """Settings that are one for the whole process; the first folder's count."""
        folders = (folder.settings for folder in self.workspace.folders.values() if folder.uri is not None)
        settings = next(folders, self.workspace.elsewhere)
        logging.getLogger("gpadvisor").setLevel(_LEVELS[settings.log_level])
        limits = Limits(memory_bytes=settings.analysis_memory_mib << 20, count=settings.analysis_workers)
        tools = {"GPADVISOR_NVCC": settings.nvcc_path, "GPADVISOR_NVDISASM": settings.nvdisasm_path}
        self.workers.configure(limits, {name: value for name, value in tools.items() if value})

    async def settings_changed(self, settings: object) -> None:
        """New settings: everything that is shown may be another."""
        section = _plain(settings)
        if isinstance(section, Mapping) and section:
            own = section.get(SECTION, section)
            self._given = own if isinstance(own, Mapping) else self._given
        before = {path: folder.settings for path, folder in self.workspace.folders.items()}
        await self.fetch_settings()
        for path, folder in list(self.workspace.folders.items()):
            if folder.settings != before.get(path):
                self.analyses.scan(folder)
                self._analyse_open(folder)
        self.publisher.everything()

    def _analyse_open(self, folder: Folder) -> None:
        for path in list(self.workspace.documents):
            if self.workspace.folder_of(path) is folder:
                self._analyse(path)

    # Folders and files

    def folders_changed(self, event: lsp.WorkspaceFoldersChangeEvent) -> None:
        """Folders came or went."""
        gone = {file_path(folder.uri) for folder in event.removed}
        uris = [one.uri for path, one in self.workspace.folders.items() if one.uri and path not in gone]
        added = self.workspace.set_folders([*uris, *(folder.uri for folder in event.added)])
        self.later(self._look_at(added))

    async def _look_at(self, folders: list[Folder]) -> None:
        await self.fetch_settings()
        for folder in folders:
            self.analyses.scan(folder)

    def files_changed(self, changes: Iterable[lsp.FileEvent]) -> None:
        """Files changed on disk: profiles are read again, headers and sources looked at again."""
        for path in {path for change in changes if (path := file_path(change.uri)) is not None}:
            folder = self.workspace.folder_of(path)
            if is_profile(path, folder.path, folder.settings.profiles_patterns):
                self.analyses.scan(folder, _WATCHED_SECONDS)
            elif path.endswith((*SOURCES, *HEADERS)):
                self._saved(path)
                if path not in self.workspace.documents:
                    self.publisher.soon([path])

    async def _poll(self) -> None:
        """Look for profiles where the client watches no files."""
        while not self.closing:
            await asyncio.sleep(_POLL_SECONDS)
            for folder in list(self.workspace.folders.values()):
                self.analyses.scan(folder)

    async def _register(self) -> None:
        """Ask for file events and changed settings, where the client lets a server ask."""
        wanted: list[lsp.Registration] = []
        if self.client.watches_files:
            patterns = (
                {
                    pattern
                    for folder in self.workspace.folders.values()
                    for pattern in folder.settings.profiles_patterns
                }
                | {f"**/*{suffix}" for suffix in (*SOURCES, *HEADERS)}
                | {"**/gpadvisor.toml"}
            )
            watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in sorted(patterns)]
            options: Any = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            wanted.append(_registration(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if self.client.configuration_changes:
            options = lsp.DidChangeConfigurationRegistrationOptions(section=SECTION)
            wanted.append(_registration(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
        if wanted:
            with contextlib.suppress(Exception):
                await self.server.client_register_capability_async(
                    lsp.RegistrationParams(registrations=wanted)
                )

    # Documents

    def opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """A document came: what is known of it is shown, and its machine code looked at."""
        item = params.text_document
        document = self.workspace.open(item.uri, item.text, item.version)
        if document is None:
            return
        known = len(self.workspace.folders)
        folder = self.workspace.folder_of(document.path)
        if len(self.workspace.folders) != known and self._started:
            self.analyses.scan(folder)
        self.publisher.soon([document.path])
        self.analyses.looked_at(document.path)
        self._analyse(document.path)
        self.analyses.source_changed(document.path)

    def changed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """A text changed: findings move with their lines."""
        changes = [_change(one) for one in params.content_changes]
        item = params.text_document
        document = self.workspace.change(item.uri, changes, item.version)
        if document is not None:
            self.publisher.soon([document.path], TYPING_SECONDS)

    def saved(self, uri: str) -> None:
        """A text is on disk."""
        path = file_path(uri)
        if path is None:
            return
        self._saved(path)
        folder = self.workspace.folder_of(path)
        if not self.client.watches_files:
            self.analyses.scan(folder)
        if folder.settings.profile_on_save and path in self.workspace.documents:
            self.later(self.server.profile_runner.quietly(path))

    def _saved(self, path: str) -> None:
        self.analyses.looked_at(path)
        delay = self.workspace.folder_of(path).settings.debounce_milliseconds / 1000
        for source in {path, *self.analyses.users_of(path)}:
            self._analyse(source, delay)
        self.analyses.source_changed(path)

    def closed(self, uri: str) -> None:
        """A document went: its findings stay, in the text on disk."""
        path = self.workspace.close(uri)
        if path is not None:
            self.publisher.forget(path)
            self.publisher.soon([path])

    def _analyse(self, path: str, delay: float = 0.0) -> None:
        """Look at the machine code of an open source, if the settings and the user's trust allow."""
        settings = self.workspace.folder_of(path).settings
        wanted = settings.enable and settings.run == "onSave" and path.endswith(COMPILED)
        if path.endswith(HEADERS) and self.analyses.users_of(path):
            return  # known through those
        if wanted and self._started and path in self.workspace.documents and self.workspace.may_read(path):
            self.analyses.source(path, delay=delay)

    # Results

    def show(self, paths: Iterable[str]) -> None:
        """Analyses have changed what files show."""
        self.publisher.soon({*paths, *self.workspace.documents})
        self.publisher.overview_changed()
        self.publisher.refresh()

    def errors_of(self, path: str) -> list[str]:
        """Sentences on what keeps a file's analyses from being current."""
        errors = self.analyses.errors
        folder = str(self.workspace.folder_of(path).path)
        profiles = [said for at, said in errors.items() if not at.endswith(SOURCES) and at.startswith(folder)]
        return [*([errors[path]] if path in errors else []), *profiles]

    def say_once(self, message: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        """Tell the user, once."""
        if message in self._said:
            return
        self._said.add(message)
        log.warning("%s", message)
        self.server.window_show_message(lsp.ShowMessageParams(type=kind, message=f"GPAdvisor: {message}"))


def _encoding(agreed: object) -> Encoding:
    """The units of columns that the library has agreed on with the client."""
    name = getattr(agreed, "value", agreed)
    if name == "utf-8":
        return "utf-8"
    return "utf-32" if name == "utf-32" else "utf-16"


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


def _registration(method: str, options: Any) -> lsp.Registration:
    return lsp.Registration(id=f"gpadvisor-{method}", method=method, register_options=options)


def _plain(value: object) -> object:
    """JSON values again, of what the library has made named tuples of."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hasattr(value, "_asdict"):
        return {key: _plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
