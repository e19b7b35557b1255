# SPDX-License-Identifier: Apache-2.0
"""The whole way from a file to printed advice, answered from the cache where nothing has changed.

Only the standard library is imported at the top: a warm answer costs the start of Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpadvisor.errors import UsageError
from gpadvisor.files import cache_folder
from gpadvisor.pipeline.cache import Cache, file_digest, installation_digest
from gpadvisor.pipeline.formats import ADVICE_FORMATS, Rendering, RenderOptions
from gpadvisor.pipeline.inputs import InputKind, input_digest, input_kind
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources import local as local_sources

if TYPE_CHECKING:
    from gpadvisor.gate.baseline import Findings
    from gpadvisor.model.advice import Advice
    from gpadvisor.pipeline.advise import AdvisedFile
    from gpadvisor.pipeline.prefetch import Opened


class Fired(NamedTuple):
    """A suggestion or note that is not suppressed; ``expected`` is None for static findings and notes."""

    code: str
    expected: float | None


class Gate(NamedTuple):
    """A ``--fail-on`` condition."""

    text: str
    code: str | None
    speedup: float | None
    new: bool = False  # only what the baseline does not have

    def met(self, fired: Sequence[Fired]) -> bool:
        """Whether a suggestion meets it; one that asks for what is new is given that alone."""
        if self.new and self.speedup is None:
            return bool(fired)
        if self.code is not None:
            return any(entry.code == self.code for entry in fired)
        limit = self.speedup or 0.0
        return any(entry.expected is not None and entry.expected >= limit for entry in fired)


class Rendered(NamedTuple):
    """Printed advice, and what of it a CI gate looks at."""

    text: str
    fired: tuple[Fired, ...]
    unread: tuple[str, ...]  # kernels of which no tool could read the machine code: rules on it said nothing
    kept: str = ""  # what a baseline keeps, as it is written

    @property
    def state(self) -> Findings:
        """What a baseline keeps."""
        from gpadvisor.gate.baseline import Findings, parse

        return parse(self.kept.encode(), "the cache") if self.kept else Findings()


def render_file(path: Path, request: Request, options: RenderOptions, progress: Progress) -> Rendered:
    """Advice for a file in the wanted format.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    kind = input_kind(path)
    # A source includes headers that only its compiler knows: it is compiled each time, also for its lines.
    cache = Cache(cache_folder() if options.use_cache and kind is not InputKind.SOURCE else None)
    is_cached = cache.is_on and not request.lines_from
    key = cache.key("answer", {**key_parts(path, request), "shown": options._asdict()}) if is_cached else ""
    stored = cache.get(key) if key else None
    if stored is not None and (rendered := _still_true(stored, request)) is not None:
        return rendered
    return _fresh(path, request, options, progress, cache, key)


def render_forms(
    path: Path, request: Request, forms: Sequence[RenderOptions], progress: Progress
) -> tuple[list[str], Rendered]:
    """Advice for a file in several formats from one analysis; the answer's own text is that of the first.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    cache = Cache(cache_folder())
    with _opened(path, request, cache) as opened:
        from gpadvisor.pipeline.advise import advise_file

        result = advise_file(path, request, progress, cache, opened=opened)
    texts = [render(result.advice, form, result.texts, request, result) for form in forms]
    return texts, _rendered(result, texts[0])


def joined(texts: Sequence[str], form: str) -> str:
    """The answers to several inputs as one."""
    known = ADVICE_FORMATS.get(form)
    if len(texts) == 1 or known is None or known.join is None:
        return "\n".join(texts)
    return known.join([json.loads(text) for text in texts])


def key_parts(path: Path, request: Request) -> dict[str, object]:
    """What decides an answer, but for the sources: the input, the installation and what was asked."""
    machine = request.settings.machine
    return {
        "input": input_digest(path),
        "path": str(path),
        "installation": installation_digest(),
        "request": request.describe(),
        "machine": None if machine is None or not Path(machine).is_file() else file_digest(Path(machine)),
    }


def _still_true(stored: bytes, request: Request) -> Rendered | None:
    try:
        entry = json.loads(stored)
        if local_sources.fingerprint(request.root, entry["wanted"]) != entry["sources"]:
            return None
        fired = tuple(Fired(code=str(code), expected=_number(expected)) for code, expected in entry["fired"])
        return Rendered(
            text=str(entry["text"]),
            fired=fired,
            unread=tuple(map(str, entry["unread"])),
            kept=str(entry["state"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # of another shape
        return None


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _fresh(
    path: Path, request: Request, options: RenderOptions, progress: Progress, cache: Cache, key: str
) -> Rendered:
    with _opened(path, request, cache) as opened:
        from gpadvisor.pipeline.advise import advise_file  # takes as long to import as a report to read

        result = advise_file(path, request, progress, cache, opened=opened)
    answer = _rendered(result, render(result.advice, options, result.texts, request, result))
    if key and result.lasting:
        entry = {
            "wanted": result.wanted_sources,
            "sources": local_sources.fingerprint(request.root, result.wanted_sources),
            "text": answer.text,
            "fired": [[entry.code, entry.expected] for entry in answer.fired],
            "unread": answer.unread,
            "state": answer.kept,
        }
        cache.put(key, json.dumps(entry).encode())
    return answer


def _rendered(result: AdvisedFile, text: str) -> Rendered:
    from gpadvisor.gate.baseline import dump
    from gpadvisor.gate.state import state_of

    compilers = {kernel.advice.mangled: kernel.analysed.context.program.compiler for kernel in result.kernels}
    return Rendered(
        text=text,
        fired=fired_suggestions(result.advice),
        unread=unread_kernels(result.advice),
        kept=dump(state_of(result.advice, result.texts, compilers)),
    )


def _opened(path: Path, request: Request, cache: Cache) -> AbstractContextManager[Opened | None]:
    if request.model or input_kind(path) is not InputKind.PROFILE:
        return nullcontext()
    from gpadvisor.pipeline.prefetch import prefetched

    return prefetched(path, request, cache)


def fired_suggestions(advice: Advice) -> tuple[Fired, ...]:
    """What a CI gate looks at."""
    return tuple(
        Fired(code=entry.code, expected=None if entry.speedup is None else entry.speedup.expected)
        for kernel in advice.kernels
        for entry in (*kernel.suggestions, *kernel.notes)
        if entry.suppressed is None
    )


def unread_kernels(advice: Advice) -> tuple[str, ...]:
    """Kernels that a CI gate cannot judge, for want of a disassembler."""
    from gpadvisor.model.problem import ProblemCode

    return tuple(
        kernel.name
        for kernel in advice.kernels
        if any(problem.code is ProblemCode.NO_DISASSEMBLY for problem in kernel.problems)
    )


def render(
    advice: Advice,
    options: RenderOptions,
    texts: Mapping[str, str],
    request: Request,
    file: AdvisedFile | None = None,
) -> str:
    """The advice in one of the formats; ``file`` for fixes and hashes of lines beside it."""
    if options.format not in ADVICE_FORMATS:
        raise UsageError(f"{options.format!r} is no format; {', '.join(ADVICE_FORMATS)} are")
    return ADVICE_FORMATS[options.format].render(Rendering(advice, options, texts, request, file))
