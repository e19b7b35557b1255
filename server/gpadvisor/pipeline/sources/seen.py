# SPDX-License-Identifier: Apache-2.0
"""Sources as they were last seen beside a profile, so that one that is renamed is found again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.source.line_map import line_keys

_LIKE: Final = 0.5
"""Share of their lines that a file and its renamed and edited self have in common."""
_MAX_READ: Final = 200


@dataclass(frozen=True, slots=True)
class SeenSources:
    """What the cache has of a project's sources."""

    cache: Cache
    root: Path

    def remember(self, profile: str, files: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Keep what a profile's sources are called and say.

        Args:
            profile: its digest.
            files: where they are, by path in the line table.
            texts: what they say, by the same.
        """
        if self.cache.is_on and files:
            everything = sorted(str(local_sources.real(path)) for path in local_sources.walk(self.root))
            for name, file in files.items():
                entry = {"file": file, "text": texts.get(name, ""), "files": everything}
                self.cache.put(self._key(profile, name), json.dumps(entry).encode())

    def renamed(self, profile: str, name: str) -> Path | None:
        """The one file that came since a source of a profile went, and is like it."""
        entry = self._gone(profile, name)
        if entry is None:
            return None
        names, suffix = set(entry["files"]), Path(entry["file"]).suffix
        new = [
            path
            for path in local_sources.walk(self.root)
            if path.suffix == suffix and str(local_sources.real(path)) not in names
        ]
        alike = {path: _likeness(entry["text"], path) for path in new[:_MAX_READ]}
        best = max(alike.values(), default=0.0)
        paths = [path for path, likeness in alike.items() if likeness == best]
        return paths[0] if best >= _LIKE and len(paths) == 1 else None

    def beside(self, profile: str, name: str) -> frozenset[str]:
        """The files that stood beside a source that is gone: none of them is it."""
        entry = self._gone(profile, name)
        return frozenset() if entry is None else frozenset(entry["files"])

    def _gone(self, profile: str, name: str) -> dict[str, Any] | None:
        stored = self.cache.get(self._key(profile, name))
        entry: dict[str, Any] | None = None if stored is None else json.loads(stored)
        return None if entry is None or Path(entry["file"]).exists() else entry

    def _key(self, profile: str, name: str) -> str:
        parts = {"profile": profile, "file": name, "root": str(self.root.resolve())}
        return self.cache.key("seen source", parts)


def _likeness(text: str, path: Path) -> float:
    """Share of lines that a text and a file have in common: the Dice coefficient."""
    data = local_sources.read_source(path) or b""
    counts, other_counts = _lines(text), _lines(data.decode("utf-8", "replace"))
    return 2 * (counts & other_counts).total() / max(counts.total() + other_counts.total(), 1)


def _lines(text: str) -> Counter[str]:
    return Counter(key for key in line_keys(text) if key)
