# SPDX-License-Identifier: Apache-2.0
"""The sources that a line table names: which file of this machine is meant, and what it says."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpadvisor.model.advice import SourceMatch
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Profile, SourceText
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.chosen import SourceChooser
from gpadvisor.source.matching import (
    AMBIGUOUS,
    CODE,
    EMBEDDED,
    PATH_SUFFIX,
    RENAMED,
    UNMATCHED,
    LocalFile,
    PathMapping,
    mapped_paths,
    match_sources,
    path_parts,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundSources:
    """Sources by the path that the line table names."""

    matches: tuple[SourceMatch, ...]
    profiled: Mapping[str, str]  # text as it was profiled, where the report carries it
    local: Mapping[str, str]  # text as it is on this machine now
    wanted: Mapping[str, list[str] | list[int]]  # what was looked for, so that an answer can be checked later
    problems: tuple[Problem, ...]

    @property
    def texts(self) -> dict[str, str]:
        """The text to quote: as profiled, else as it is now."""
        return {**self.local, **self.profiled}

    @property
    def now(self) -> dict[str, str]:
        """The text whose comments count: as it is now, else as profiled."""
        return {**self.profiled, **self.local}


def find_sources(
    report_paths: Collection[str],
    profile: Profile | None,
    compiled: Path | None,
    request: Request,
    renamed: Callable[[str], Path | None] = lambda _: None,
    chooser: SourceChooser | None = None,
) -> FoundSources:
    """Look for each named file in the project, where the mappings point, and under its own path.

    Args:
        report_paths: Paths in line tables.
        profile: Whose embedded sources count, by content.
        compiled: A source that was compiled here, just now, under exactly this path.
        request: Root of the project and path mappings.
        renamed: What became of a file that is not where it was.
        chooser: Which of several files it is, by the machine code.
    """
    embedded = {} if profile is None else profile.sources
    texts = [
        embedded.get(path, SourceText(path=path, sha256=None, text=None)) for path in sorted(report_paths)
    ]
    mappings = [PathMapping(old, new) for old, new in request.settings.source_map.items()]
    names = sorted({parts[-1] for path in report_paths if (parts := path_parts(path))})
    sizes = sorted({len(entry.text.encode()) for entry in texts if entry.text is not None})
    in_project = local_sources.candidates(request.root, names, sizes)
    paths = dict.fromkeys(in_project)
    for entry in texts:
        for place in (entry.path, *mapped_paths(entry.path, mappings)):
            # A report may name any file of this machine: only what is a source by its name is opened, and
            # what a source beside it was just compiled with, such as "kernel_files/sum.cuknl".
            if _may_open(Path(place), compiled) and Path(place).is_file():
                paths[Path(place)] = None
    if compiled is not None:
        paths[compiled.resolve()] = None
    contents = {str(path): local_sources.read_source(path) for path in paths if request.may_read(path)}
    if compiled is None:
        _prefer_project(contents, {str(path) for path in in_project}, request.root)
    files = [
        LocalFile(path, None if data is None else hashlib.sha256(data).hexdigest())
        for path, data in contents.items()
    ]
    matches = tuple(_followed(match, renamed, contents) for match in match_sources(texts, files, mappings))
    if chooser is not None and not request.within:  # it reads what it chooses from
        matches = tuple(_by_code(match, embedded, chooser, request.root, contents) for match in matches)
        names = sorted({*names, *chooser.looked_at})
    local = {
        match.report_path: data.decode("utf-8", "replace")
        for match in matches
        if match.local_path is not None and (data := contents.get(match.local_path)) is not None
    }
    folder = Path.cwd()
    matches = tuple(replace(match, local_path=_shown(match.local_path, folder)) for match in matches)
    return FoundSources(
        matches=matches,
        profiled={entry.path: entry.text for entry in texts if entry.text is not None},
        local=local,
        wanted={"names": names, "sizes": sizes},
        problems=_problems(matches),
    )


def _may_open(path: Path, compiled: Path | None) -> bool:
    beside = compiled is not None and local_sources.real(path).is_relative_to(compiled.resolve().parent)
    return beside or local_sources.is_source_name(path)


def _followed(
    match: SourceMatch, renamed: Callable[[str], Path | None], contents: dict[str, bytes | None]
) -> SourceMatch:
    """The match, by its new name where a file is not found by its old one."""
    path = renamed(match.report_path) if match.method in {EMBEDDED, UNMATCHED} else None
    if path is None:
        return match
    contents[str(path)] = local_sources.read_source(path)
    return replace(match, local_path=str(path), method=RENAMED)


def _by_code(
    match: SourceMatch,
    embedded: Mapping[str, SourceText],
    chooser: SourceChooser,
    root: Path,
    contents: dict[str, bytes | None],
) -> SourceMatch:
    """The match, with the file that the machine code tells from others where the path does not."""
    report_path, local = match.report_path, match.local_path
    if report_path in embedded or match.differs or match.method not in {AMBIGUOUS, UNMATCHED, PATH_SUFFIX}:
        return match
    if local is not None and chooser.may_be(report_path, contents.get(local)):
        return match
    path = chooser.choose(report_path, root)
    if path is None:
        return match
    contents[str(path)] = local_sources.read_source(path)
    return replace(match, local_path=str(path), method=CODE)


def _prefer_project(contents: dict[str, bytes | None], in_project: Collection[str], root: Path) -> None:
    """Leave out a file from elsewhere that one file of the project equals: of two checkouts the open one."""
    twins = Counter((Path(path).name, contents[path]) for path in in_project if contents[path] is not None)
    for path in [path for path in contents if path not in in_project]:
        outside = not Path(path).resolve().is_relative_to(root.resolve())
        if outside and twins[Path(path).name, contents[path]] == 1:
            del contents[path]


def _shown(path: str | None, folder: Path) -> str | None:
    """A path as a person in this folder would write it."""
    if path is None or not Path(path).is_absolute() or not Path(path).is_relative_to(folder):
        return path
    return str(Path(path).relative_to(folder))


def _problems(matches: Collection[SourceMatch]) -> tuple[Problem, ...]:
    ambiguous = [match.report_path for match in matches if match.method == AMBIGUOUS]
    unmatched = [match.report_path for match in matches if match.method == UNMATCHED]
    problems = []
    if ambiguous:
        message = f"{_list(ambiguous)}: several files here fit equally well; --source-map OLD=NEW decides"
        problems.append(Problem(ProblemCode.SOURCE_AMBIGUOUS, message))
    if unmatched:
        hint = "open its folder, or name it by --source-root or --source-map"
        message = f"{_list(unmatched)}: no such source here; {hint}"
        problems.append(Problem(ProblemCode.SOURCE_UNMATCHED, message))
    return tuple(problems)


def _list(paths: list[str]) -> str:
    text = ", ".join(paths[:3])
    return text if len(paths) <= 3 else f"{text} and {len(paths) - 3} more"
