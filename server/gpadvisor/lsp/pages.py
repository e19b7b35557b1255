# SPDX-License-Identifier: Apache-2.0
"""The rules' pages as files in the user's cache, so that a diagnostic's link works offline everywhere."""

from __future__ import annotations

import contextlib

from gpadvisor import __version__
from gpadvisor.files import write_atomically
from gpadvisor.pipeline.cache import cache_folder
from gpadvisor.pipeline.rule_pages import all_rules, rule_page


def write_rule_pages() -> str | None:
    """The pages' address with ``{code}`` and ``{slug}``; None where there is no cache to write to."""
    base = cache_folder()
    if base is None:
        return None
    folder = base / "pages" / __version__
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for rule in all_rules():
            path, data = folder / f"{rule.code}-{rule.slug}.md", rule_page(rule.code).encode()
            with contextlib.suppress(OSError):
                if path.read_bytes() == data:
                    continue
            write_atomically(path, data)
    except OSError:
        return None
    return f"{folder.resolve().as_uri()}/{{code}}-{{slug}}.md"
