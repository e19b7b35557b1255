# SPDX-License-Identifier: Apache-2.0
"""The pages of rules and stall reasons as files in the user's cache, so that links to them work offline."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from gpadvisor import __version__
from gpadvisor.files import cache_folder, write_atomically
from gpadvisor.pipeline.cache import installation_digest

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
        stamp, digest = folder / _STAMP, installation_digest().encode()
        if not _is(stamp, digest):
            _write(folder)
            write_atomically(stamp, digest)
    except OSError:
        return None
    return f"{folder.resolve().as_uri()}/{{code}}-{{slug}}.md"


def _write(folder: Path) -> None:
    from gpadvisor.pipeline.rule_pages import all_rules, rule_page  # noqa: PLC0415  # imports every rule
    from gpadvisor.pipeline.stall_pages import stall_pages  # noqa: PLC0415  # the same

    pages = {f"{rule.code}-{rule.slug}": rule_page(rule.code) for rule in all_rules()}
    pages |= {f"stall-{page.name}": page.markdown("{code}-{slug}.md") for page in stall_pages()}
    for name, text in pages.items():
        path, data = folder / f"{name}.md", text.encode()
        if not _is(path, data):
            write_atomically(path, data)


def _is(path: Path, data: bytes) -> bool:
    with contextlib.suppress(OSError):
        return path.read_bytes() == data
    return False
