# SPDX-License-Identifier: Apache-2.0
"""The server's only state: the newest snapshot, and the changes that make another one of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from gpadvisor.lsp.complaints import Complaint
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.paths import file_path
from gpadvisor.lsp.settings import EditorSettings
from gpadvisor.lsp.snapshot import Document, EntryFile, Folder, Snapshot, having, lacking, local_files
from gpadvisor.lsp.texts import Text, TextChange


class State:
    """``now`` is what all answers are made of; it does no work."""

    def __init__(self) -> None:
        self.now = Snapshot()
        self.applied: set[tuple[str, str]] = set()  # mangled kernels and codes that fixes were made for
        self._looked_at: dict[str, int] = {}  # the later, the more, by path: what the user waits for
        self._looks = itertools.count(1)

    # Documents

    def open(self, uri: str, text: str, version: int | None) -> Document | None:
        """Take over a text; None for documents that are no files."""
        path = file_path(uri)
        if path is None:
            return None
        document = Document(uri=uri, path=path, text=Text(text), version=version)
        self._set_document(document)
        folder = self.now.folder_of(path)
        if folder.uri is None:
            self.now = replace(self.now, folders=having(self.now.folders, str(folder.path), folder))
        return document

    def change(self, uri: str, changes: Sequence[TextChange], version: int | None) -> Document | None:
        """Apply edits to an open text."""
        document = self.now.document(uri)
        if document is None:
            return None
        text = document.text.changed(changes, self.now.encoding)
        document = replace(document, text=text, version=version)
        self._set_document(document)
        return document

    def close(self, uri: str) -> str | None:
        """Forget a text; the path of its file."""
        path = file_path(uri)
        if path is not None:
            self.now = replace(self.now, documents=lacking(self.now.documents, path))
        return path

    def _set_document(self, document: Document) -> None:
        self.now = replace(self.now, documents=having(self.now.documents, document.path, document))

    def looked_at(self, path: str) -> None:
        """The user opened, saved or asked about a file: its analysis goes before all others that wait."""
        self._looked_at[path] = next(self._looks)

    def rank(self, path: str) -> int:
        """Larger for what was looked at later."""
        return self._looked_at.get(path, 0)

    # Folders

    def set_folders(self, uris: Iterable[str], settings: EditorSettings | None = None) -> list[Folder]:
        """The client's folders; those that are new, with the settings given."""
        uri_of_path = {path: uri for uri in uris if (path := file_path(uri)) is not None}
        remaining = {
            path: folder for path, folder in self.now.folders.items() if not folder.uri or path in uri_of_path
        }
        added = {
            path: Folder(path=Path(path), uri=uri, settings=settings or EditorSettings())
            for path, uri in uri_of_path.items()
            if path not in remaining
        }
        self.now = replace(self.now, folders=MappingProxyType({**remaining, **added}))
        return list(added.values())

    def set_settings(self, by_path: dict[str, EditorSettings], elsewhere: EditorSettings) -> None:
        """Settings of the client's folders by path, and of what lies outside, such as single files."""
        folders = {
            path: replace(folder, settings=by_path.get(path, folder.settings) if folder.uri else elsewhere)
            for path, folder in self.now.folders.items()
        }
        self.now = replace(self.now, folders=MappingProxyType(folders), elsewhere=elsewhere)

    # Analyses

    def put(self, entry: Entry) -> set[str]:
        """Take over an analysis; the paths of the files whose view may be another now."""
        return self._exchange(entry.key, entry)

    def remove(self, key: str) -> set[str]:
        """Forget an analysis; the paths of files that showed it."""
        return self._exchange(key, None)

    def _exchange(self, key: str, new: Entry | None) -> set[str]:
        old = self.now.entries.get(key)
        entries = lacking(self.now.entries, key) if new is None else having(self.now.entries, key, new)
        touched = {path for entry in (old, new) if entry is not None for path in local_files(entry).values()}
        by_file = dict(self.now.by_file)
        for path in touched:
            unchanged = tuple(pair for pair in by_file.get(path, ()) if pair[0] is not old)
            by_file[path] = (*unchanged, *(() if new is None else _shown(new, path)))
        by_file = {path: analyses for path, analyses in by_file.items() if analyses}
        self.now = replace(
            self.now,
            entries=entries,
            by_file=MappingProxyType(by_file),
            revision=self.now.revision + (bool(old) or bool(new)),
        )
        return touched

    def choose(self, path: str, base_name: str, kernel: str) -> set[str]:
        """Show another instantiation; the paths of files with lines of it."""
        files = {path} | {
            shown_path
            for shown_path, analyses in self.now.by_file.items()
            for _, file in analyses
            if any(line.kernel == kernel for line in file.lines)
        }
        chosen = dict(self.now.chosen)
        for shown_path in files:
            chosen[shown_path] = having(chosen.get(shown_path, MappingProxyType({})), base_name, kernel)
        self.now = replace(self.now, chosen=MappingProxyType(chosen))
        return files

    def toggle_annotations(self) -> bool:
        """Switch hints, lenses and heat; whether they are shown now."""
        self.now = replace(self.now, annotations_off=not self.now.annotations_off)
        return not self.now.annotations_off

    def set_timeline(self, folder: str, path: str | None) -> None:
        """The timeline that a folder's advice is for."""
        timelines = self.now.timelines
        known = lacking(timelines, folder) if path is None else having(timelines, folder, path)
        self.now = replace(self.now, timelines=known)

    # Inputs

    def begun(self, key: str) -> None:
        """An input is looked at, or waits for it."""
        if key not in self.now.jobs:
            self.now = replace(self.now, jobs=(*self.now.jobs, key))

    def ended(self, key: str) -> None:
        """It is not looked at any more."""
        self.now = replace(self.now, jobs=tuple(job for job in self.now.jobs if job != key))

    def failed(self, path: str, sentence: str, complaint: Complaint | None = None) -> None:
        """An input could not be analysed."""
        self.now = replace(self.now, errors=having(self.now.errors, path, sentence))
        if complaint is not None:
            self.now = replace(self.now, complaints=having(self.now.complaints, path, complaint))

    def well(self, path: str) -> bool:
        """Nothing is wrong with an input any more; whether anything was complained of in its text."""
        complained = path in self.now.complaints
        self.now = replace(
            self.now,
            errors=lacking(self.now.errors, path),
            complaints=lacking(self.now.complaints, path),
        )
        return complained

    def has_kernels(self, path: str, *, has: bool) -> None:
        """Whether a source has code for the GPU; ``known`` is False where it was found to have none."""
        without = self.now.without_kernels - {path}
        self.now = replace(self.now, without_kernels=without if has else without | {path})

    def set_includes(self, path: str, files: frozenset[str]) -> None:
        """The files that a source was made of when it was analysed."""
        self.now = replace(self.now, includes=having(self.now.includes, path, files))


def _shown(entry: Entry, path: str) -> tuple[EntryFile, ...]:
    local = local_files(entry)
    return tuple((entry, file) for file in entry.analysis.files if local.get(file.path) == path)
