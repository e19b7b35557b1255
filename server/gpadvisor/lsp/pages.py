# SPDX-License-Identifier: Apache-2.0
"""The rules' pages as files in the user's cache, so that a diagnostic's link works offline everywhere."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from gpadvisor import __version__
from gpadvisor.files import write_atomically
from gpadvisor.pipeline.cache import cache_folder, installation_digest

_STAMP: Final = ".installation"
"""Digest of the installation whose pages lie beside it."""


def write_rule_pages() -> str | None:
    """The pages' address with ``{code}`` and ``{slug}``; None where there is no cache to write to."""
    base = cache_folder()
    if base is None:
        return None
    folder = base / "pages" / __version__
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp, now = folder / _STAMP, installation_digest().encode()
        if not _is(stamp, now):
            _write(folder)
            write_atomically(stamp, now)
    except OSError:
        return None
    return f"{folder.resolve().as_uri()}/{{code}}-{{slug}}.md"


def _write(folder: Path) -> None:
    from gpadvisor.pipeline.rule_pages import all_rules, rule_page  # noqa: PLC0415  # imports every rule

    for rule in all_rules():
        path, data = folder / f"{rule.code}-{rule.slug}.md", rule_page(rule.code).encode()
        if not _is(path, data):
            write_atomically(path, data)


def _is(path: Path, data: bytes) -> bool:
    with contextlib.suppress(OSError):
        return path.read_bytes() == data
    return False
