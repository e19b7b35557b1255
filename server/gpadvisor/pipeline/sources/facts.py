# SPDX-License-Identifier: Apache-2.0
"""Facts of sources, parsed in one child process with limits of time, memory and output."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Final, TypeAlias

from gpadvisor.errors import ToolError, ToolTimeoutError
from gpadvisor.files import open_file
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.source.facts import SourceFacts

PathText: TypeAlias = tuple[str, str]
"""Path and text: a file may be asked about as it was profiled and as it is now."""

_FACTS: Final = "gpadvisor.source.reading:answer"
_TIMEOUT_SECONDS: Final = 20.0
_MEMORY_BYTES: Final = 2 << 30
_OUTPUT_BYTES: Final = 64 << 20
_AHEAD_BYTES: Final = 1 << 20


def read_source_facts(
    sources: Collection[PathText],
    *,
    timeout_seconds: float = _TIMEOUT_SECONDS,
    memory_bytes: int = _MEMORY_BYTES,
) -> tuple[Mapping[PathText, SourceFacts], tuple[Problem, ...]]:
    """The facts of each source; none, and a problem, where the process that parses them fails."""
    begun = {source: _begun.pop((Path(source[0]).suffix, source[1]), None) for source in sorted(sources)}
    source_facts = {source: read for source, future in begun.items() if future and (read := future.result())}
    unread = [source for source in begun if source not in source_facts]
    if not unread:
        return source_facts, ()
    try:
        answer = ask_parser(_FACTS, unread, timeout_seconds, memory_bytes)
        facts = dict(zip(unread, _checked(unread, answer), strict=True))
    except ToolTimeoutError:
        return source_facts, (_problem(unread, f"took longer than {timeout_seconds:g} s and was stopped"),)
    except ValueError:
        return source_facts, (_problem(unread, "gave no sensible answer"),)
    except ToolError:
        return source_facts, (_problem(unread, "failed"),)
    return {**source_facts, **facts}, ()


_begun: dict[
    PathText, Future[SourceFacts | None]
] = {}  # by suffix and text; the last one alone is waited for


def begin_reading(path: Path) -> None:
    """Parse a source while it is compiled; ``read_source_facts`` waits for that, if the text is the same."""
    _begun.clear()
    try:
        with open_file(path) as stream:
            text = stream.read(_AHEAD_BYTES + 1).decode("utf-8", "replace")
    except OSError:
        return
    if len(text) <= _AHEAD_BYTES:
        future = _begun[path.suffix, text] = Future()
        threading.Thread(target=_read_ahead, args=((path.name, text), future), daemon=True).start()


def _read_ahead(source: PathText, future: Future[SourceFacts | None]) -> None:
    try:
        (facts,) = _checked([source], ask_parser(_FACTS, [source]))
        future.set_result(facts)
    except (ToolError, ValueError, OSError):
        future.set_result(None)  # it is tried once more, and a problem of the advice if it fails again


def ask_parser(
    entry: str,
    inputs: list[PathText],
    timeout_seconds: float = _TIMEOUT_SECONDS,
    memory_bytes: int = _MEMORY_BYTES,
    cancelled: Callable[[], bool] | None = None,
) -> bytes:
    """What a function that parses sources, ``module:function``, answers in a process of its own.

    Raises:
        ToolError: it failed, took too long or was cancelled.
    """
    return call(
        entry,
        to_bytes(inputs),
        timeout_seconds=timeout_seconds,
        memory_bytes=memory_bytes,
        output_bytes=_OUTPUT_BYTES,
        cancelled=cancelled,
    )


def _checked(inputs: list[PathText], answer: bytes) -> list[SourceFacts]:
    """The facts in an answer; ValueError where it is none."""
    read = from_bytes(answer, list[SourceFacts])
    return [facts.of_text(text.count("\n") + 1) for facts, (_, text) in zip(read, inputs, strict=True)]


def _problem(inputs: list[PathText], event: str) -> Problem:
    paths = sorted({path for path, _ in inputs})
    excerpt = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return Problem(
        ProblemCode.SOURCE_NOT_READ,
        f"the process that parses {excerpt} {event}: their gpadvisor comments do not count in this"
        " advice and "
        "nothing of them is named; look for a generated or damaged file among them",
    )
