# SPDX-License-Identifier: Apache-2.0
"""Answers of jobs on profiles, kept on disk: the same profile beside the same sources needs no worker.

Only what a warm answer of the command line needs is imported here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpadvisor.errors import GpadvisorError
from gpadvisor.files import cache_folder
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.render import key_parts
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import find_settings
from gpadvisor.pipeline.sources.local import fingerprint

if TYPE_CHECKING:
    from gpadvisor.pipeline.advise import AdvisedFile


def plain_request(path: Path, arguments: Mapping[str, Any]) -> Request:
    """What a job asks of an input, by its project's settings."""
    root, launch, timeline = Path(arguments["root"]), arguments.get("launch"), arguments.get("timeline")
    return Request(
        settings=find_settings(path.parent if path.is_relative_to(root) else root).settings,
        root=root,
        may_compile=arguments.get("trusted") is True,
        launch=None if launch is None else int(launch),
        timeline=None if timeline is None else Path(timeline),
        timeline_needed=False,
    )


def kept_answer(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer to the same job on the same profile, settings, installation and sources."""
    cache = Cache(cache_folder())
    if not cache.is_on:
        return None
    try:
        path = Path(arguments["path"])
        request = plain_request(path, arguments)
        stored = cache.get(_key(path, request))
        entry = {} if stored is None else json.loads(stored)
        if not entry or fingerprint(request.root, entry["wanted"]) != entry["sources"]:
            return None
        return dict(entry["answer"])
    except (GpadvisorError, OSError, ValueError, TypeError, KeyError):  # the job says what is wrong
        return None


def keep_answer(request: Request, advised: AdvisedFile, answer: object) -> None:
    """Keep the answer for profiles, unless something has failed in passing or was compiled for it."""
    from gpadvisor.sandbox.codec import to_bytes  # noqa: PLC0415  # of a worker

    cache, sources = Cache(cache_folder()), advised.wanted_sources
    if cache.is_on and advised.lasting and advised.analysis.source_lines.beside is None:
        entry = {"wanted": sources, "sources": fingerprint(request.root, sources), "answer": answer}
        with contextlib.suppress(OSError):  # an input may be gone by now
            cache.put(_key(advised.analysis.path, request), to_bytes(entry))


def _key(path: Path, request: Request) -> str:
    return Cache.key("profile in an editor", key_parts(path, request))
