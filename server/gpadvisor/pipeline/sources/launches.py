# SPDX-License-Identifier: Apache-2.0
"""Launches that a source writes with constants, so that nobody has to state them for the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.errors import SettingsError, ToolError
from gpadvisor.pipeline.launches import StatedArgument, StatedLaunch, stated_argument
from gpadvisor.pipeline.sources.facts import PathText, ask_parser
from gpadvisor.pipeline.sources.local import read_source
from gpadvisor.sandbox.codec import from_bytes
from gpadvisor.source.launch_sites import LaunchSite, LaunchSites

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,400})"', re.MULTILINE)
_UNNAMED: Final = "(anonymous namespace)::"
_MAX_TEXTS: Final = 32
_MAX_TEXT: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLaunch:
    """One kernel's launch as far as constants decide it."""

    stated: StatedLaunch
    place: str  # file and line
    unknown: tuple[str, ...]  # what the rest hangs on

    @property
    def note(self) -> str:
        """Where the launch comes from, and what to state."""
        advice = "; state it with --grid, --block or --arguments" if self.unknown else ""
        return f"{self.origin}{advice}"

    @property
    def origin(self) -> str:
        """Where the launch comes from, and what of it is not known."""
        *names, last = self.unknown or ("",)
        named = f"{', '.join(names)} and {last} are" if names else f"{last} is"
        lacks = f", where {named} not constant" if self.unknown else ""
        return f"launched as {self.place} does{lacks}"


def source_launches(path: Path, defines: tuple[str, ...] = ()) -> Mapping[str, SourceLaunch]:
    """The launches in a source and what it includes by ``#include "..."``, by the kernel's name as written.

    Of several launches of a kernel the first one whose grid and block are constants; nothing where the
    process that parses them fails.

    Args:
        path: the source.
        defines: "NAME" or "NAME=VALUE", as the compiler gets them.
    """
    texts = [*_texts(path)]
    if not any("<<<" in text for _, text in texts):
        return {}
    defined = "".join(f"#define {' '.join((*define.split('=', 1), '1')[:2])}\n" for define in defines)
    inputs = [*texts, ("defines.cu", defined)]
    try:
        answer = ask_parser("gpadvisor.source.launch_reading:answer", inputs)
        lines = [text.count("\n") + 1 for _, text in inputs]
        sites = from_bytes(answer, LaunchSites).of_texts(lines)
    except (ToolError, ValueError):
        return {}
    launches: dict[str, SourceLaunch] = {}
    for site in sorted(sites, key=lambda site: site.grid is None or site.block is None):
        place = f"{Path(inputs[site.file][0]).name}:{site.line}"
        launch = SourceLaunch(stated=_stated(site), place=place, unknown=site.unknown)
        launches.setdefault(site.kernel, launch)
    return launches


def launch_of(kernel: str, launches: Mapping[str, SourceLaunch]) -> SourceLaunch | None:
    """The launch of a kernel with this mangled name, by as many of its namespaces as are written there."""
    parts = _qualified(kernel).split("::")
    names = ("::".join(parts[start:]) for start in range(len(parts)))
    return next((launches[name] for name in names if name in launches), None)


def _qualified(kernel: str) -> str:
    """A mangled name without result, unnamed namespaces, template and other arguments."""
    name = demangle(kernel).replace(_UNNAMED, "")
    return name.partition("(")[0].partition("<")[0].rpartition(" ")[2]


def _texts(path: Path) -> Iterator[PathText]:
    """A source and the files of the project that it includes, each once."""
    pending, paths = [path.resolve()], set[Path]()
    while pending and len(paths) < _MAX_TEXTS:
        place = pending.pop(0)
        if place in paths:
            continue
        paths.add(place)
        data = read_source(place)
        if data is None or len(data) > _MAX_TEXT:
            continue
        text = data.decode("utf-8", "replace")
        yield str(place), text
        pending += [(place.parent / name).resolve() for name in _INCLUDE.findall(text)]


def _stated(site: LaunchSite) -> StatedLaunch:
    arguments: list[StatedArgument] = []
    for site_argument in site.arguments:
        argument = StatedArgument(site_argument.kind)
        with suppress(SettingsError):  # a number that its type does not hold is not known
            value = (
                float(site_argument.value)
                if site_argument.kind in {"float", "double"} and site_argument.value is not None
                else site_argument.value
            )
            argument = stated_argument(site_argument.kind, value, "")
        arguments.append(argument)
    return StatedLaunch(
        grid=site.grid,
        block=site.block,
        dynamic_shared_bytes=site.dynamic_shared_bytes,
        arguments=tuple(arguments),
    )
