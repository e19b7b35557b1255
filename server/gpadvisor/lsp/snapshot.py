# SPDX-License-Identifier: Apache-2.0
"""What the server knows at one moment, frozen: a request is answered from one state of everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from pygls.uris import from_fs_path, to_fs_path

from gpadvisor.editor.show.options import Annotations, Options, Severity, Stale
from gpadvisor.lsp.capabilities import ClientFeatures
from gpadvisor.lsp.complaints import Complaint
from gpadvisor.lsp.layers import Entry, Layer, PlacedLayer, layers_of
from gpadvisor.lsp.paths import file_path, resolved
from gpadvisor.lsp.settings import EditorSettings
from gpadvisor.lsp.texts import Encoding, Text
from gpadvisor.model.finding import FileAnalysis

T = TypeVar("T")
EntryFile: TypeAlias = tuple[Entry, FileAnalysis]
"""An analysis, and what it says of one file."""

SOURCES: Final = (".cu",)
COMPILED: Final = (*SOURCES, ".cuh")
"""What is compiled when it is opened or saved, a header in a source that includes it."""
HEADERS: Final = (".cuh", ".h", ".hpp", ".hh", ".inl")
PROFILE: Final = "profile:"
SOURCE: Final = "source:"
RUN: Final = "run:"
"""What the key of an input begins with, before its path."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One folder of the workspace."""

    path: Path
    uri: str | None  # None: no folder of the client, only where a document lies
    settings: EditorSettings = field(default_factory=EditorSettings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    made_of: tuple[EntryFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """Everything that answers are made of; ``State`` has the newest one."""

    client: ClientFeatures = field(default_factory=ClientFeatures)
    encoding: Encoding = "utf-16"
    trusted: bool = False
    sample_folder: str | None = None
    rule_page: str | None = None  # address with {code} and {slug}
    folders: Mapping[str, Folder] = field(default_factory=_nothing)
    elsewhere: EditorSettings = field(default_factory=EditorSettings)  # outside of the client's folders
    documents: Mapping[str, Document] = field(default_factory=_nothing)  # by resolved path
    entries: Mapping[str, Entry] = field(default_factory=_nothing)  # by key of the input
    by_file: Mapping[str, tuple[EntryFile, ...]] = field(default_factory=_nothing)  # by resolved path
    revision: int = 0  # counts changes of entries
    annotations_off: bool = False
    chosen: Mapping[str, Mapping[str, str]] = field(default_factory=_nothing)
    """Mangled names by path and base name."""
    jobs: tuple[str, ...] = ()  # keys of the inputs that are looked at, or wait for it
    errors: Mapping[str, str] = field(default_factory=_nothing)  # by path of the input
    complaints: Mapping[str, Complaint] = field(default_factory=_nothing)  # by path of a source
    without_kernels: frozenset[str] = frozenset()  # sources that have no code for the GPU
    includes: Mapping[str, frozenset[str]] = field(default_factory=_nothing)  # by path of a source
    timelines: Mapping[str, str] = field(default_factory=_nothing)  # paths that were read, by folder

    # Inputs

    @property
    def busy(self) -> bool:
        """Whether an analysis runs or waits to."""
        return bool(self.jobs)

    @property
    def reading(self) -> frozenset[str]:
        """Paths of the inputs that are being looked at, or wait for it."""
        return frozenset(key.partition(":")[2] for key in self.jobs)

    @property
    def profile_being_read(self) -> str | None:
        """The file name of a profile that may say more in a moment."""
        return next((Path(key).name for key in self.jobs if key.startswith(PROFILE)), None)

    @property
    def profiles(self) -> list[Entry]:
        """Newest first."""
        return sorted(
            (entry for entry in self.entries.values() if entry.is_profile), key=lambda entry: -entry.age
        )

    def errors_of(self, path: str) -> list[str]:
        """Sentences on what keeps a file's analyses from being current."""
        folder = str(self.folder_of(path).path)
        profiles = [
            sentence
            for path, sentence in self.errors.items()
            if not path.endswith(SOURCES) and path.startswith(folder)
        ]
        return [*([self.errors[path]] if path in self.errors else []), *profiles]

    def users_of(self, header: str) -> list[str]:
        """Analysed sources that include a header."""
        return [path for path, files in self.includes.items() if header in files and path != header]

    # Folders

    def document(self, uri: str) -> Document | None:
        """An open document."""
        path = file_path(uri)
        return None if path is None else self.documents.get(path)

    def folder_of(self, path: str) -> Folder:
        """The innermost folder that holds a file; else a folder of its own, where the file lies.

        An open document that is a link belongs to the folder that the link is in.
        """
        for place in (*self._links(path), Path(path)):
            holding = [
                folder for root, folder in self.folders.items() if folder.uri and place.is_relative_to(root)
            ]
            if holding:
                return max(holding, key=lambda folder: len(folder.path.parts))
        parent = Path(path).parent
        return self.folders.get(str(parent)) or Folder(path=parent, uri=None, settings=self.elsewhere)

    def _links(self, path: str) -> list[Path]:
        """Where the client has an open document, if that is a link to somewhere else."""
        document = self.documents.get(path)
        as_opened = None if document is None else to_fs_path(document.uri)
        if as_opened is None:
            return []
        place = Path(resolved(str(Path(as_opened).parent)), Path(as_opened).name)
        return [] if str(place) == path else [place]

    def project_of(self, profile: str) -> Folder:
        """The folder whose sources a profile is about: a profile from elsewhere belongs to the first one."""
        folder = self.folder_of(profile)
        if folder.uri is not None:
            return folder
        return next((folder for folder in self.folders.values() if folder.uri is not None), folder)

    def settings_of(self, path: str) -> EditorSettings:
        """Those of the folder that a file is in."""
        return self.folder_of(path).settings

    def may_read(self, path: str) -> bool:
        """Whether the user trusts what lies there."""
        if self.trusted:
            return True
        return self.sample_folder is not None and Path(path).is_relative_to(self.sample_folder)

    def uri_of(self, path: str) -> str:
        """As the client calls an open document, else made from the path below the client's own folder.

        A folder that is a link has files by the name of the link to the client, and by another one here.
        """
        document = self.documents.get(path)
        if document is not None:
            return document.uri
        holding = [
            root for root, folder in self.folders.items() if folder.uri and Path(path).is_relative_to(root)
        ]
        as_opened = to_fs_path(self.folders[max(holding, key=len)].uri or "") if holding else None
        if as_opened:
            path = str(Path(as_opened, Path(path).relative_to(max(holding, key=len))))
        return str(from_fs_path(path))

    # What files show

    def texts(self) -> dict[str, Text]:
        """Open texts by path."""
        return {path: document.text for path, document in self.documents.items()}

    def layers(self, path: str) -> tuple[Layer, ...]:
        """What a file shows, in lines of the baselines."""
        return layers_of(self.by_file.get(path, ()))

    def is_current(self, view: View) -> bool:
        """Whether an open file still shows what a view has."""
        document, visible = self.documents.get(view.path), self.by_file.get(view.path, ())
        return document is not None and document.text is view.text and _same(visible, view.made_of)

    def options(self, path: str) -> Options:
        """What the user wants to see of a file."""
        settings = self.settings_of(path)
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
            chosen=self.chosen.get(path, MappingProxyType({})),
            rule_page=self.rule_page,
        )

    # How files are compiled

    def compile_arguments(self, path: str) -> dict[str, Any]:
        """How a source is compiled: for the GPU of the newest profile that names it, and by the settings."""
        settings = self.settings_of(path)
        arch, measured = settings.analysis_arch, next(self._measured(path), None)
        if measured is not None and arch.rstrip("af") != measured.rstrip("af"):
            arch = measured
        return {"arch": arch, "flags": list(settings.analysis_flags)}

    def _measured(self, path: str) -> Iterator[str]:
        """Architectures that a source was measured on, the newest first."""
        for entry in self.profiles:
            files = entry.analysis.files
            if any(file.local is not None and resolved(file.local) == path for file in files):
                yield from (kernel.arch for kernel in entry.analysis.kernels if kernel.arch is not None)

    def job_arguments(self, path: str) -> dict[str, Any]:
        """What every job on a source is told."""
        return {"path": path, "root": str(self.folder_of(path).path), **self.compile_arguments(path)}


def having(mapping: Mapping[str, T], key: str, value: T) -> Mapping[str, T]:
    """The same with one more value."""
    return MappingProxyType({**mapping, key: value})


def lacking(mapping: Mapping[str, T], key: str) -> Mapping[str, T]:
    """The same without one."""
    return (
        mapping
        if key not in mapping
        else MappingProxyType({name: item for name, item in mapping.items() if name != key})
    )


def local_files(entry: Entry) -> dict[str, str]:
    """Resolved paths on this machine by the line table's."""
    return {file.path: resolved(file.local) for file in entry.analysis.files if file.local is not None}


def _same(ours: Sequence[EntryFile], theirs: Sequence[EntryFile]) -> bool:
    return len(ours) == len(theirs) and all(
        ours[0] is theirs[0] for ours, theirs in zip(ours, theirs, strict=True)
    )


def _severities(layers: Sequence[Layer], settings: EditorSettings) -> dict[str, Severity]:
    """Severity by code from settings by code or name, with the rules that are not to be shown."""
    names = {finding.slug: finding.code for layer in layers for finding in layer.file.findings}
    codes = {*names.values(), *(note.code for layer in layers for note in layer.analysis.problems)}
    chosen = {names.get(key, key): Severity(value) for key, value in settings.severity.items()}
    for code in codes:
        selected = not settings.rules_select or code.startswith(settings.rules_select)
        if not selected or (settings.rules_ignore and code.startswith(settings.rules_ignore)):
            chosen[code] = Severity.OFF
    return chosen
