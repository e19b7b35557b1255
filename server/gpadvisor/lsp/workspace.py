# SPDX-License-Identifier: Apache-2.0
"""The server's only state: folders with their settings, open texts, analyses, and what was chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pygls.uris import from_fs_path, to_fs_path

from gpadvisor.editor.place.placing import PlacedFile, place
from gpadvisor.editor.place.quieted import quieted
from gpadvisor.editor.show.options import Annotations, Options, Severity, Stale
from gpadvisor.files import read_file
from gpadvisor.lsp.layers import Entry, Layer, PlacedLayer, layers_of, settled
from gpadvisor.lsp.settings import EditorSettings
from gpadvisor.lsp.texts import Encoding, Text, TextChange
from gpadvisor.model.finding import FileAnalysis

MAX_TEXT_BYTES: Final = 8 << 20
"""Of a file that no editor has open and that findings are placed in."""


@dataclass(slots=True, eq=False)
class Folder:
    """One folder of the workspace."""

    path: Path
    uri: str | None  # None: no folder of the client, only where a document lies
    settings: EditorSettings = field(default_factory=EditorSettings)


@dataclass(slots=True, eq=False)
class Document:
    """One open document."""

    uri: str
    path: str  # resolved
    text: Text
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What one file shows, in one state of its text and of the analyses."""

    uri: str
    path: str
    version: int | None
    text: Text
    layers: tuple[PlacedLayer, ...]


class Workspace:
    """Everything that the server knows; it does no work."""

    def __init__(self) -> None:
        self.trusted = False
        self.sample_folder: str | None = None
        self.encoding: Encoding = "utf-16"
        self.folders: dict[str, Folder] = {}
        self._elsewhere = EditorSettings()
        self.documents: dict[str, Document] = {}  # by resolved path
        self.entries: dict[str, Entry] = {}
        self.annotations_off = False
        self.rule_page: str | None = None
        self.revision = 0  # counts changes of analyses
        self._chosen: dict[str, dict[str, str]] = {}  # path -> base name -> mangled name
        self._by_file: dict[str, list[tuple[Entry, FileAnalysis]]] | None = None
        self._views: dict[str, View] = {}

    # Documents

    def open(self, uri: str, text: str, version: int | None) -> Document | None:
        """Take over a text; None for documents that are no files."""
        path = file_path(uri)
        if path is None:
            return None
        document = Document(uri=uri, path=path, text=Text(text), version=version)
        self.documents[path] = document
        self._views.pop(path, None)
        return document

    def change(self, uri: str, changes: Sequence[TextChange], version: int | None) -> Document | None:
        """Apply edits to an open text."""
        document = self.document(uri)
        if document is None:
            return None
        document.text = document.text.changed(changes, self.encoding)
        document.version = version
        self._views.pop(document.path, None)
        return document

    def close(self, uri: str) -> str | None:
        """Forget a text; the path of its file."""
        path = file_path(uri)
        if path is not None:
            self.documents.pop(path, None)
            self._views.pop(path, None)
        return path

    def document(self, uri: str) -> Document | None:
        """An open document."""
        path = file_path(uri)
        return None if path is None else self.documents.get(path)

    def uri_of(self, path: str) -> str:
        """As the client calls an open document, else made from the path below the client's own folder.

        A folder that is a link has files by the name of the link to the client, and by another one here.
        """
        document = self.documents.get(path)
        if document is not None:
            return document.uri
        holding = [at for at, folder in self.folders.items() if folder.uri and Path(path).is_relative_to(at)]
        named = to_fs_path(self.folders[max(holding, key=len)].uri or "") if holding else None
        if named:
            path = str(Path(named, Path(path).relative_to(max(holding, key=len))))
        return str(from_fs_path(path))

    # Folders

    def set_folders(self, uris: Iterable[str]) -> list[Folder]:
        """The folders that are new."""
        wanted = {path: uri for uri in uris if (path := file_path(uri)) is not None}
        for path in [path for path, folder in self.folders.items() if folder.uri and path not in wanted]:
            del self.folders[path]
        added = [path for path in wanted if path not in self.folders]
        for path in added:
            self.folders[path] = Folder(path=Path(path), uri=wanted[path])
        return [self.folders[path] for path in added]

    def folder_of(self, path: str) -> Folder:
        """The innermost folder that holds a file; else a folder of its own, where the file lies.

        An open document that is a link belongs to the folder that the link is in.
        """
        for at_place in (*self._links(path), Path(path)):
            holding = [
                folder for at, folder in self.folders.items() if folder.uri and at_place.is_relative_to(at)
            ]
            if holding:
                return max(holding, key=lambda folder: len(folder.path.parts))
        parts = Path(path)
        own = str(parts.parent)
        if own not in self.folders:
            self.folders[own] = Folder(path=parts.parent, uri=None, settings=self._elsewhere)
        return self.folders[own]

    def _links(self, path: str) -> list[Path]:
        """Where the client has an open document, if that is a link to somewhere else."""
        document = self.documents.get(path)
        named = None if document is None else to_fs_path(document.uri)
        if named is None:
            return []
        place = Path(resolved(str(Path(named).parent)), Path(named).name)
        return [] if str(place) == path else [place]

    @property
    def elsewhere(self) -> EditorSettings:
        """What holds outside of the client's folders, as where a single file was opened."""
        return self._elsewhere

    @elsewhere.setter
    def elsewhere(self, settings: EditorSettings) -> None:
        self._elsewhere = settings
        for folder in self.folders.values():
            if folder.uri is None:
                folder.settings = settings

    def project_of(self, profile: str) -> Folder:
        """The folder whose sources a profile is about: a profile from elsewhere belongs to the first one."""
        folder = self.folder_of(profile)
        if folder.uri is not None:
            return folder
        return next((one for one in self.folders.values() if one.uri is not None), folder)

    def may_read(self, path: str) -> bool:
        """Whether the user trusts what lies there."""
        if self.trusted:
            return True
        return self.sample_folder is not None and Path(path).is_relative_to(self.sample_folder)

    # Analyses

    def put(self, entry: Entry) -> set[str]:
        """Take over an analysis; the paths of the files whose view may be another now."""
        touched = self.remove(entry.key)
        self.entries[entry.key] = entry
        return touched | self._touched(entry)

    def remove(self, key: str) -> set[str]:
        """Forget an analysis; the paths of files that showed it."""
        entry = self.entries.pop(key, None)
        self._by_file = None
        if entry is None:
            return set()
        return self._touched(entry)

    def _touched(self, entry: Entry) -> set[str]:
        self._by_file = None
        self.revision += 1
        touched = {resolved(file.local) for file in entry.analysis.files if file.local is not None}
        for path in touched:
            self._views.pop(path, None)
        return touched

    def files(self) -> Mapping[str, list[tuple[Entry, FileAnalysis]]]:
        """What the analyses say, by resolved path."""
        if self._by_file is None:
            found: dict[str, list[tuple[Entry, FileAnalysis]]] = {}
            for entry in self.entries.values():
                for file in entry.analysis.files:
                    if file.local is not None:
                        found.setdefault(resolved(file.local), []).append((entry, file))
            self._by_file = found
        return self._by_file

    def layers(self, path: str) -> tuple[Layer, ...]:
        """What a file shows, in lines of the baselines."""
        return layers_of(self.files().get(path, []))

    def choose(self, path: str, base_name: str, kernel: str) -> set[str]:
        """Show another instantiation; the paths of files with lines of it."""
        kinds = {path} | {
            at
            for at, pairs in self.files().items()
            for _, file in pairs
            for one in file.lines
            if one.kernel == kernel
        }
        for at in kinds:
            self._chosen.setdefault(at, {})[base_name] = kernel
        return kinds

    def options(self, path: str) -> Options:
        """What the user wants to see of a file."""
        settings = self.folder_of(path).settings
        annotations = Annotations.OFF if self.annotations_off else Annotations(settings.annotations)
        return Options(
            annotations=annotations,
            diagnostics=settings.enable,
            code_lens=settings.enable and settings.code_lens_enable,
            inlay_hints=settings.enable and settings.inlay_hints_enable,
            hover=settings.enable and settings.hover_enable,
            heat=settings.enable and settings.gutter_enable and annotations is not Annotations.OFF,
            stale=Stale(settings.stale),
            warning_low=settings.report_min_speedup,
            hint_share=settings.inlay_hints_min_share,
            heat_share=settings.gutter_min_share,
            max_per_file=settings.report_max_per_file,
            severity=MappingProxyType(_severities(self.layers(path), settings)),
            chosen=MappingProxyType(dict(self._chosen.get(path, {}))),
            rule_page=self.rule_page,
        )

    # Views

    def known_view(self, path: str) -> View | None:
        """The view of the text as it is, where it was made already."""
        return self._views.get(path)

    def keep_view(self, view: View) -> None:
        """Keep a view unless the text or an analysis has changed meanwhile."""
        document = self.documents.get(view.path)
        if document is not None and document.text is view.text:
            self._views[view.path] = view

    def texts(self) -> dict[str, Text]:
        """Open texts by path, as they are now."""
        return {path: document.text for path, document in self.documents.items()}


def make_view(
    path: str, uri: str, version: int | None, layers: Sequence[Layer], texts: Mapping[str, Text]
) -> View | None:
    """Place everything in today's texts; None where the file cannot be read. Safe in a thread."""
    text = texts.get(path)
    if text is None:
        source = read_text(path)
        if source is None:
            return None
        text = Text(source)
    placed = []
    for layer in layers:
        others: dict[str, PlacedFile] = {}
        for file in layer.entry.analysis.files:
            at = None if file.local is None else resolved(file.local)
            if at is not None and at != path and at in texts:
                others[file.path] = place(file, texts[at].source)
        own = quieted(place(layer.file, text.source), text.source)
        placed.append(PlacedLayer(entry=layer.entry, analysis=layer.analysis, file=own, files=others))
    return View(uri=uri, path=path, version=version, text=text, layers=settled(placed))


def read_text(path: str) -> str | None:
    """A source that no editor has open; None where it cannot be read or is no text by its size."""
    try:
        return read_file(path, max_bytes=MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def file_path(uri: str) -> str | None:
    """The resolved path of a ``file`` URI; None for other schemes and for untitled documents."""
    if not uri.startswith("file:"):
        return None
    path = to_fs_path(uri)
    return None if not path or "\0" in path else resolved(path)


def resolved(path: str) -> str:
    """One name for each file, whatever links lead to it."""
    return os.path.realpath(path)


def _severities(layers: Sequence[Layer], settings: EditorSettings) -> dict[str, Severity]:
    """Severity by code from settings by code or name, with the rules that are not to be shown."""
    names = {one.slug: one.code for layer in layers for one in layer.file.findings}
    codes = {*names.values(), *(note.code for layer in layers for note in layer.analysis.problems)}
    chosen = {names.get(key, key): Severity(value) for key, value in settings.severity.items()}
    for code in codes:
        selected = not settings.rules_select or code.startswith(settings.rules_select)
        if not selected or (settings.rules_ignore and code.startswith(settings.rules_ignore)):
            chosen[code] = Severity.OFF
    return chosen
