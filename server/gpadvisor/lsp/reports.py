# SPDX-License-Identifier: Apache-2.0
"""The page of a profile or a source for a client that shows it: made by a worker, placed in today's texts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Final

from gpadvisor.editor.place.placing import LineMap, line_map
from gpadvisor.errors import UsageError
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.page_protocol import PageFile, PageLines, PageParams, PageResult
from gpadvisor.lsp.paths import file_path, read_text
from gpadvisor.lsp.profiles import Profiles
from gpadvisor.lsp.search import is_profile
from gpadvisor.lsp.snapshot import PROFILE, SOURCE, Snapshot, local_files
from gpadvisor.lsp.state import State
from gpadvisor.sandbox.pool import Workers

_MOST_KEPT: Final = 8


class Reports:
    """Which pages were made of what; the pages themselves are kept by the client."""

    def __init__(self, state: State, client: Client, workers: Workers, profiles: Profiles) -> None:
        self._state, self._client, self._workers, self._profiles = state, client, workers, profiles
        self._made: dict[str, tuple[tuple[Entry, ...], tuple[str, ...]]] = {}  # by digest: of what, its files

    async def page(self, params: PageParams) -> PageResult:
        """The page of what a file is or shows; without the document where the client has it.

        Raises:
            UsageError: there is nothing to show of the file, or it may not be read.
        """
        path = await self._shown_path(params.uri)
        entry = await self._entry(path)
        before = None if params.before is None else await self._entry(self._path(params.before))
        of = (entry,) if before is None else (entry, before)
        cached = self._made.get(params.known or "")
        if cached is not None and cached[0] == of:
            return await self._result(entry, params.known or "", None, cached[1])
        answer = await self._run(entry, before)
        document = str(answer["document"])
        digest = hashlib.sha256(document.encode()).hexdigest()
        files = tuple(map(str, answer["files"]))
        self._made[digest] = of, files
        for oldest in list(self._made)[:-_MOST_KEPT]:
            del self._made[oldest]
        return await self._result(entry, digest, None if digest == params.known else document, files)

    async def _run(self, entry: Entry, before: Entry | None) -> Any:
        path, snapshot = entry.analysis.origin, self._state.now
        folder = snapshot.project_of(path) if entry.is_profile else snapshot.folder_of(path)
        arguments: dict[str, Any] = {"path": path, "root": str(folder.path), "trusted": snapshot.trusted}
        if entry.is_profile:
            arguments["launch"] = self._profiles.launch_of(path)
            arguments["timeline"] = snapshot.timelines.get(str(folder.path))
        else:
            model = "known" if folder.settings.analysis_model == "onSave" else "none"
            arguments |= {**snapshot.compile_arguments(path), "model": model}
        if before is not None:
            arguments["before"] = before.analysis.origin
        seconds = folder.settings.analysis_timeout_seconds
        return await self._client.with_progress(
            "making the report",
            lambda progress: self._workers.run("page", arguments, timeout_seconds=seconds, progress=progress),
        )

    async def _result(
        self, entry: Entry, digest: str, document: str | None, files: tuple[str, ...]
    ) -> PageResult:
        placed = await asyncio.to_thread(_placed, self._state.now, entry, files, read_text)
        uri = self._state.now.uri_of(entry.analysis.origin)
        return PageResult(uri=uri, digest=digest, document=document, files=placed)

    async def _shown_path(self, uri: str | None) -> str:
        """A profile itself; of a source the newest profile that names it, else the source; or the newest."""
        snapshot, path = self._state.now, None if uri is None else self._path(uri)
        if path is not None and is_profile(
            path, snapshot.folder_of(path).path, snapshot.settings_of(path).profiles_patterns
        ):
            return path
        newest = self._newest(path)
        # What was known of an older one is there before a newer one is read.
        await self._profiles.newer_read(0.0 if newest is None else newest.age)
        newest, entries = self._newest(path), self._state.now.entries
        if newest is not None:
            return newest.analysis.origin
        if path is None:
            raise UsageError("no profile is known: import one, or open a source")
        if PROFILE + path in entries or SOURCE + path in entries:
            return path
        raise UsageError(f"nothing is known of {path}: no profile names it, and it has no kernel")

    def _newest(self, path: str | None) -> Entry | None:
        """The newest profile that was read, of those that name a source."""
        read = self._state.now.profiles
        return next((entry for entry in read if path is None or path in local_files(entry).values()), None)

    async def _entry(self, path: str) -> Entry:
        """What is known of a profile, which is read where it was not yet, or of a source."""
        entries = self._state.now.entries
        if PROFILE + path not in entries and SOURCE + path not in entries:
            await self._profiles.read(path)
        entries = self._state.now.entries
        entry = entries.get(PROFILE + path) or entries.get(SOURCE + path)
        if entry is None:
            raise UsageError(self._state.now.errors.get(path) or f"{path} could not be read")
        return entry

    def _path(self, uri: str) -> str:
        path = file_path(uri)
        if path is None:
            raise UsageError(f"{uri} is no file on this machine")
        if not self._state.now.may_read(path):
            raise UsageError("the workspace is not trusted: no profile is read")
        return path


def _placed(
    snapshot: Snapshot, entry: Entry, files: tuple[str, ...], read: Callable[[str], str | None]
) -> list[PageFile]:
    """Where each file of a page is, and each of its lines today; comparing large texts takes time."""
    local, analyses = local_files(entry), {file.path: file for file in entry.analysis.files}
    page_files = []
    for name in files:
        path, lines = local.get(name), None
        if path is not None:
            document = snapshot.documents.get(path)
            text = read(path) if document is None else document.text.source
            lines = None if text is None else line_map(analyses[name], text)
        uri = None if path is None or lines is None else snapshot.uri_of(path)
        count = 0 if lines is None else _line_count(analyses[name].baseline, lines)
        page_files.append(PageFile(uri=uri, lines=[] if lines is None else _runs(lines, count)))
    return page_files


def _line_count(baseline: str | None, lines: LineMap) -> int:
    return lines.line_count if baseline is None else baseline.count("\n") + 1


def _runs(lines: LineMap, count: int) -> list[PageLines]:
    """Where each line is today; what was deleted stands where it would."""
    runs: list[list[int]] = []
    for line in range(1, count + 1):
        line_today = lines.now(line)[0]
        previous = runs[-1] if runs else None
        if previous is not None and previous[1] + previous[2] == line_today - 1:
            previous[2] += 1
        else:
            runs.append([line - 1, line_today - 1, 1])
    return [PageLines(then=then, now=line_today, count=many) for then, line_today, many in runs]
