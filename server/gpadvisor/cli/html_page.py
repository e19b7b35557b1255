# SPDX-License-Identifier: Apache-2.0
"""The advice as one HTML page: ``advise`` and ``compare --format html`` print it, ``view`` opens it."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.pipeline.render import Rendered
from gpadvisor.pipeline.request import Request


def render_html(
    path: Path,
    request: Request,
    *,
    use_cache: bool = True,
    sources: bool = True,
    before: tuple[Path, Request] | None = None,
) -> Rendered:
    """The page of a file, beside an earlier one if there is one, and what of its advice a CI gate looks at.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    from gpadvisor.editor.contents.page import page_contents
    from gpadvisor.files import cache_folder
    from gpadvisor.pipeline.cache import Cache
    from gpadvisor.pipeline.render import fired_suggestions, unread_kernels
    from gpadvisor.report.jsonformat import text
    from gpadvisor.views.page.html import render_page

    progress = TerminalProgress()
    try:
        cache = Cache(cache_folder() if use_cache else None)
        contents = page_contents(path, request, progress, cache, sources=sources, before=before)
    finally:
        progress.clear()
    return Rendered(
        text=render_page(contents.document, f"{text(path.name)} - gpadvisor"),
        fired=fired_suggestions(contents.advice),
        unread=unread_kernels(contents.advice),
    )
