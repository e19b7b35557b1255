# SPDX-License-Identifier: Apache-2.0
"""Which source line an instruction is shown on, and which text that line was counted in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpadvisor.analyzer.places import is_library, is_package
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.finding import BaselineKind, Place
from gpadvisor.model.profile import Profile
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Program
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.source.facts import SourceFacts
from gpadvisor.source.line_map import split_lines

_HEADS: Final = {
    ".py": re.compile(r"\s*def\s+(\w+)\s*\("),
    ".jl": re.compile(r"\s*(?:@\w+\s+)*function\s+(\w+!?)\s*\("),
}
_LOOKED_AT: Final = 400
"""Lines above the first one with code in which the head of its function is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledText:
    """The text that lines of a file were counted in."""

    text: str | None
    kind: BaselineKind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Line table entries as places; one file has one name even where the line tables spell it differently."""

    local: Mapping[str, str]  # absolute path on this machine by path in the line table
    root: Path
    _names: dict[str, str] = field(default_factory=dict)
    _shown: dict[int, Place | None] = field(default_factory=dict)  # by id() of entries that the program holds
    _called: dict[int, Place | None] = field(default_factory=dict)  # by id() of functions without lines

    def name(self, file: str) -> str:
        """The one name of a file."""
        text = self._names.get(file)
        if text is None:
            local = self.local.get(file)
            same = (
                name for name in self._names.values() if local is not None and self.local.get(name) == local
            )
            text = self._names[file] = next(same, file)
        return text

    def of(self, function: Function, index: int) -> Place | None:
        """The innermost line of an instruction that is not library code; None without a line.

        A compiler's own routine has no lines, whatever the table says: it stands where it is called, as far
        as that is one line.
        """
        if function.kind is FunctionKind.MATH_HELPER:
            return self._called.get(id(function))
        entry = function.lines[index] if 0 <= index < len(function.lines) else None
        if entry is None:
            return None
        if id(entry) not in self._shown:
            chain = self.chain(entry)
            places = (place for place in chain if not self.is_library(place.file))
            self._shown[id(entry)] = next(places, chain[0] if chain else None)
        return self._shown[id(entry)]

    def know(self, program: Program) -> None:
        """Look up where the compiler's routines of a program are called."""
        sites: dict[int, set[Place]] = {}
        for caller in program.functions:
            for call in caller.calls:
                place = self.of(caller, call.index)
                if call.callee is not None and place is not None:
                    sites.setdefault(call.callee, set()).add(place)
        for function in program.functions:
            if function.kind is FunctionKind.MATH_HELPER:
                places = sites.get(function.id, set())
                self._called[id(function)] = next(iter(places)) if len(places) == 1 else None

    def chain(self, entry: LineEntry) -> tuple[Place, ...]:
        """The location and the call sites it was inlined at, innermost first."""
        written_by_user = () if entry.location in entry.library else (entry.location,)
        locations = (*entry.library, *written_by_user, *(frame.call_site for frame in entry.inline))
        return tuple(
            Place(file=self.name(place.file), line=place.line) for place in locations if place.line > 0
        )

    def call_sites(self, function: Function, index: int) -> tuple[Place, ...]:
        """The places outside of the one that is shown, innermost first."""
        entry = function.lines[index] if 0 <= index < len(function.lines) else None
        if entry is None or function.kind is FunctionKind.MATH_HELPER:
            return ()
        chain, place = self.chain(entry), self.of(function, index)
        return chain[chain.index(place) + 1 :] if place in chain else chain[1:]

    def is_library(self, file: str) -> bool:
        """Whether a file is nobody's own: nobody edits it to make a kernel faster."""
        local = self.local.get(file)
        inside = local is not None and Path(local).is_relative_to(self.root)
        return is_package(file) if inside else is_library(file)


def make_places(sources: FoundSources, root: Path) -> Places:
    """Places for the files of an analysis."""
    local = {
        match.report_path: str(Path(match.local_path).absolute())
        for match in sources.matches
        if match.local_path is not None
    }
    return Places(local=local, root=root.resolve())


def kernel_file(places: Places, program: Program, kernel: str) -> Place | None:
    """The first line of a kernel in the file that most of its own lines are in, inlined code left out."""
    function = kernel_function(program, kernel)
    if function is None:
        return None
    lines: dict[str, list[int]] = {}
    for entry in dict.fromkeys(line for line in function.lines if line is not None):
        chain = places.chain(entry)
        if chain:
            lines.setdefault(chain[-1].file, []).append(chain[-1].line)
    if not lines:
        return None
    user_files = {file: numbers for file, numbers in lines.items() if not places.is_library(file)} or lines
    file = max(user_files, key=lambda name: (len(user_files[name]), name))
    return Place(file=file, line=min(user_files[file]))


def kernel_place(
    first: Place | None, name: str, facts: Mapping[str, SourceFacts], texts: Mapping[str, str]
) -> Place | None:
    """The head of a kernel's definition where the source says where it is, else its first line with code.

    Args:
        first: The first line with code.
        name: Of the kernel, without parameters and template arguments.
        facts: Of the CUDA sources that were parsed.
        texts: Sources as they were profiled.
    """
    if first is None:
        return None
    source_facts = facts.get(first.file)
    site = None if source_facts is None else source_facts.kernel(first.line)
    if site is not None:
        return Place(file=first.file, line=site.line)
    head = _head(first, name, texts.get(first.file))
    return first if head is None else Place(file=first.file, line=head)


def _head(first: Place, name: str, text: str | None) -> int | None:
    """The line of the function that a kernel of Python or Julia was made of: compilers add to its name."""
    pattern = next((head for suffix, head in _HEADS.items() if first.file.lower().endswith(suffix)), None)
    if pattern is None or text is None:
        return None
    lines = split_lines(text)[: first.line]
    for number in range(len(lines), max(len(lines) - _LOOKED_AT, 0), -1):
        match = pattern.match(lines[number - 1][:200])
        if match is not None and match.group(1) in name:
            return number
    return None


def baselines(
    files: Sequence[str],
    places: Places,
    sources: FoundSources,
    profile: Profile | None,
    cache: Cache,
    *,
    sha256: str,
    compiled: bool,
    unproved: Collection[str] = (),
) -> dict[str, ProfiledText]:
    """The text of each file as it was profiled or compiled, as far as that is known.

    A file that the profile names without its text is taken as it is when the profile is first read here, and
    kept: what is edited later can then be told from what was profiled, though nothing proves that it was. The
    texts in ``unproved`` are no better known: their code is another than the profile's.
    """
    texts: dict[str, ProfiledText] = {}
    for file in files:
        text_today = sources.local.get(file)
        if file in sources.profiled:
            kind = BaselineKind.HASHED if file in unproved else BaselineKind.EMBEDDED
            texts[file] = ProfiledText(text=sources.profiled[file], kind=kind)
        elif text_today is None:
            texts[file] = ProfiledText(text=None, kind=BaselineKind.UNKNOWN)
        elif compiled:
            texts[file] = ProfiledText(text=text_today, kind=BaselineKind.COMPILED)
        elif _same_hash(profile, file, text_today):
            texts[file] = ProfiledText(text=text_today, kind=BaselineKind.EMBEDDED)
        else:
            text = _first_seen(cache, sha256, file, places.root, text_today)
            texts[file] = ProfiledText(text=text, kind=BaselineKind.HASHED)
    return texts


def _same_hash(profile: Profile | None, file: str, text: str) -> bool:
    """Whether the profile has the hash of a file, and it is that of this text."""
    source = None if profile is None else profile.sources.get(file)
    if source is None or source.sha256 is None:
        return False
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == source.sha256


def _first_seen(cache: Cache, sha256: str, file: str, root: Path, text: str) -> str:
    key = cache.key("baseline", {"profile": sha256, "file": file, "root": str(root)})
    stored = cache.get(key)
    if stored is not None:
        return stored.decode("utf-8", "replace")
    cache.put(key, text.encode("utf-8", "replace"))
    return text
