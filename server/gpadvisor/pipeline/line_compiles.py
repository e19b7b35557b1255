# SPDX-License-Identifier: Apache-2.0
"""Sources compiled for the lines of a profile: each once, all within a time, and what came of it is kept."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from gpadvisor.errors import GpadvisorError, ToolTimeoutError
from gpadvisor.files import read_file
from gpadvisor.pipeline.cache import Cache, file_digest, installation_digest
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.opening import compile_settings
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.databases.database import find_command

_KEPT_SECONDS: Final = 86_400.0
"""Headers outside of the project may come and change without a sign of it here."""
_TIMEOUT_KEPT_SECONDS: Final = 600.0
"""The machine may have been busy with something else."""
_MAX_CUBIN_BYTES: Final = 1 << 30

Made: TypeAlias = tuple[bytes, str]
"""A cubin, and how it came about in words."""


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """Why a source gave no code."""

    short: str
    more: str = ""

    def __str__(self) -> str:
        return self.short + self.more


class LineCompiler:
    """Compiles sources for the lines of one profile."""

    def __init__(self, request: Request, progress: Progress, cache: Cache) -> None:
        self._request, self._progress, self._cache = request, progress, cache
        self._made: dict[tuple[Path, str], Made | NotCompiled] = {}
        self._seconds = 0.0  # spent
        self._project: list[tuple[str, int, int]] | None = None
        self.ran_out_of_time = False

    def cubin(self, source: Path, arch: str) -> Made | NotCompiled:
        """The cubin of a source, or the source itself where it is one; else why there is none.

        Raises:
            GpadvisorError: a source that the request names does not compile.
            OSError: it cannot be read.
        """
        key = source, arch
        if key not in self._made:
            if self._request.lines_from:  # asked for by name: as long as it takes, and whatever it says
                self._made[key] = self._make(source, arch, self._request.settings.tool_timeout_seconds)
            else:
                self._made[key] = self._within_time(source, arch)
        return self._made[key]

    def _within_time(self, source: Path, arch: str) -> Made | NotCompiled:
        stored = self._key(source, arch) if self._cache.is_on else None
        result = None if stored is None else self._kept(stored)
        if result is not None:
            return result
        limit = self._request.settings.lines_timeout_seconds
        seconds_left = min(limit - self._seconds, self._request.settings.tool_timeout_seconds)
        if seconds_left <= 0:
            self.ran_out_of_time = True
            return NotCompiled(
                f"{source.name} was not compiled for its lines, as others took {limit:g} s; "
                f"--lines-from {source.name} does"
            )
        begun, lasts = time.monotonic(), _KEPT_SECONDS
        compiled: Made | NotCompiled
        try:
            compiled = self._make(source, arch, seconds_left)
        except ToolTimeoutError:
            self.ran_out_of_time, lasts = True, _TIMEOUT_KEPT_SECONDS
            compiled = NotCompiled(
                f"{source.name} did not compile for its lines within {limit:g} s; --lines-from {source.name} "
                "waits for it",
                ", and lines-timeout-seconds in gpadvisor.toml gives more time",
            )
        except (GpadvisorError, OSError) as error:
            compiled = NotCompiled(f"{source.name} does not compile here", f": {error}")
        self._seconds += time.monotonic() - begun
        if stored is not None:
            self._keep(stored, compiled, lasts)
        return compiled

    def _make(self, source: Path, arch: str, seconds: float) -> Made:
        if input_kind(source) is InputKind.CUBIN:
            return read_file(source, max_bytes=_MAX_CUBIN_BYTES), "its line table"
        self._progress(f"compiling {source.name} for its lines")
        settings = replace(compile_settings(self._request), timeout_seconds=seconds)
        compiled = compile_source(source, arch=arch, settings=settings)
        return compiled.cubin, f"compiled here by {compiled.compiler}"

    def _key(self, source: Path, arch: str) -> str:
        """Of all that decides what a compiler makes of a source, as far as the project holds it."""
        if self._project is None:
            root = self._request.root
            self._project = [(str(path), *_state(path)) for path in local_sources.walk(root)]
        settings = self._request.settings
        build = None if settings.build_folder is None else Path(settings.build_folder)
        place = source.resolve()
        parts = {
            "source": place,
            "bytes": file_digest(place) if place.is_file() else None,
            "arch": arch,
            "flags": [settings.flags, settings.extra_flags],
            "command": repr(find_command(place, build=build)),
            "seconds": [settings.lines_timeout_seconds, settings.tool_timeout_seconds],
            "project": self._project,
            "installation": installation_digest(),
        }
        return self._cache.key("compiled for lines", parts)

    def _kept(self, key: str) -> Made | NotCompiled | None:
        """What came of it last time."""
        stored = self._cache.get(key)
        if stored is None:
            return None
        try:
            until, cubin, words = json.loads(stored)
            if time.time() >= float(until):
                return None
            if cubin is None:
                short, more = words
                return NotCompiled(str(short), str(more))
            return base64.b64decode(cubin), str(words)
        except (ValueError, TypeError, binascii.Error, RecursionError):  # of another shape
            return None

    def _keep(self, key: str, compiled: Made | NotCompiled, seconds: float) -> None:
        text: str | None = None
        words: str | tuple[str, str]
        if isinstance(compiled, NotCompiled):
            words = compiled.short, compiled.more
        else:
            text, words = base64.b64encode(compiled[0]).decode("ascii"), compiled[1]
        self._cache.put(key, json.dumps([time.time() + seconds, text, words]).encode())


def _state(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns
