# SPDX-License-Identifier: Apache-2.0
"""Paths of Bazel's commands: ``external/`` and ``bazel-out/`` are relative to its execution root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from gpadvisor.toolchain.compile_options import PATH_OPTIONS

_OF_THE_EXECUTION_ROOT: Final = ("external", "bazel-out")
_LINKS_MAX: Final = 100


def in_execution_root(options: Sequence[str], directory: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options with such paths where they are on this machine, and what was not found.

    Args:
        options: As ``--name=value``.
        directory: What relative paths are relative to, as a rule the workspace.
    """
    roots: list[Path] | None = None
    existing: list[str] = []
    missing: list[str] = []
    for option in options:
        name, _, value = option.partition("=")
        top = value.partition("/")[0]
        if name not in PATH_OPTIONS or top not in _OF_THE_EXECUTION_ROOT or (directory / value).exists():
            existing.append(option)
            continue
        roots = list(_roots(directory)) if roots is None else roots
        place = next((root / value for root in roots if (root / value).exists()), None)
        existing.append(option if place is None else f"{name}={place}")
        if place is None and top == "external":  # folders of generated files need not exist
            missing.append(value)
    return tuple(existing), tuple(missing)


def _roots(workspace: Path) -> Iterator[Path]:
    """Execution roots that links of a workspace lead to, and the output bases that hold them."""
    links = [workspace / f"bazel-{workspace.name}", workspace / "bazel-out"]
    links += islice(workspace.glob("bazel-*"), _LINKS_MAX)
    for link in dict.fromkeys(links):
        root = _execution_root(link)
        if root is not None:
            yield root
            yield root.parent.parent  # repositories stay here when the last build did not need them


def _execution_root(link: Path) -> Path | None:
    """The folder below ``execroot`` that a link leads into."""
    try:
        target = link.resolve() if link.is_symlink() else None
    except (OSError, RuntimeError):  # a loop of links
        return None
    for place in () if target is None else (target, *target.parents):
        if place.parent.name == "execroot":
            return place
    return None
