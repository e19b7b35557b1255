# SPDX-License-Identifier: Apache-2.0
"""From a tool's arguments to what the pipeline is asked, and the command that asks the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpadvisor.agents.roots import is_inside
from gpadvisor.errors import UsageError
from gpadvisor.pipeline.launches import StatedLaunch, is_whole, parse_launches
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.settings import find_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, with paths that were resolved and found inside of the roots."""

    given: Mapping[str, Any]
    roots: tuple[Path, ...]
    progress: Progress

    def path(self, name: str = "file") -> Path:
        """An input."""
        return Path(self.given[name])

    def text(self, name: str) -> str:
        """A string that may have been left out."""
        return str(self.given.get(name) or "")

    def request(self, name: str = "file", *, model: bool = False) -> Request:
        """What the pipeline is asked: nothing is compiled for lines, no source is read outside of the roots.

        Raises:
            UsageError: the settings name a machine table outside, or an argument is not what it should be.
        """
        path = self.path(name)
        root = next(root for root in self.roots if path.is_relative_to(root))
        settings = find_settings(path.parent if path != root else root, top=root).settings
        if settings.machine is not None and not is_inside(Path(settings.machine), self.roots):
            raise UsageError("the machine table of the settings is outside of the folders that may be read")
        kernel = self.text("kernel")
        return Request(
            settings=settings,
            kernel=re.compile(re.escape(kernel)) if kernel else None,
            model=model,
            stated=self._launch() if model else StatedLaunch(),
            may_compile=False,
            root=root,
            within=self.roots,
        )

    def command(self, *words: str) -> list[str]:
        """A command on the same input."""
        kernel = self.text("kernel")
        chosen = ["--kernel", re.escape(kernel)] if kernel else []
        return ["gpadvisor", *words, *chosen]

    def launch_words(self) -> list[str]:
        """The launch as options of the command line."""
        words = []
        for name in ("grid", "block", "arguments"):
            if self.text(name):
                words += [f"--{name}", self.text(name)]
        for loop in self.given.get("loops", ()):
            words += ["--loop", loop]
        return words

    def _launch(self) -> StatedLaunch:
        table: dict[str, object] = {}
        for name in ("grid", "block"):
            if self.text(name):
                table[name] = [_whole(part, name) for part in self.text(name).split(",")]
        if self.text("arguments"):
            table["arguments"] = [_argument(part) for part in self.text("arguments").split(",")]
        loops = [loop.partition("=") for loop in self.given.get("loops", ())]
        if loops:
            table["loops"] = {line: _whole(trips, "loops") for line, _, trips in loops}
        return parse_launches({"given": table}, "the call")["given"]


def _whole(text: str, name: str) -> int:
    if not is_whole(text.strip()):
        raise UsageError(f"'{name}' has '{text[:40]}' where a whole number is expected")
    return int(text)


def _argument(text: str) -> object:
    kind, equals, value = text.strip().partition("=")
    if not equals:
        return kind
    try:
        return {kind: int(value, 0)}
    except ValueError:
        pass
    try:
        return {kind: float(value)}
    except ValueError as error:
        raise UsageError(f"'arguments' has '{text[:40]}', whose value is no number") from error
