# SPDX-License-Identifier: Apache-2.0
"""The formats of advice, one row each.

What renders is imported where it is asked for: a warm answer costs the start of Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from gpadvisor.model.advice import Advice
    from gpadvisor.pipeline.advise import AdvisedFile
    from gpadvisor.pipeline.request import Request
    from gpadvisor.report.placement import Repository


class Placing(NamedTuple):
    """Where services that show advice beside lines of a repository put it, and which of it."""

    root: str = ""  # of the repository
    folder: str = ""  # that relative paths start from
    changed: Mapping[str, tuple[tuple[int, int], ...]] | None = None  # lines that a change touches, by file
    category: str = ""
    omit_suppressed: bool = False
    pages: str = ""  # address of the folder of the rules' pages


class RenderOptions(NamedTuple):
    """How the advice is printed."""

    format: str  # of ``ADVICE_FORMATS``
    width: int
    color: bool
    use_cache: bool
    details: bool = False  # text with every number instead of one screen
    why: str | None = None  # text of one suggestion, by its number or code
    placing: Placing = Placing()


class Rendering(NamedTuple):
    """What is rendered, and what stands beside it."""

    advice: Advice
    options: RenderOptions
    texts: Mapping[str, str]  # of sources
    request: Request
    file: AdvisedFile | None  # for fixes and hashes of lines

    @property
    def repository(self) -> Repository:
        """Where the lines are that a service shows advice beside."""
        from gpadvisor.report.placement import Repository

        placing = self.options.placing
        root = placing.root or str(self.request.root.resolve())
        return Repository(root=root, folder=placing.folder, changed=placing.changed)


class AdviceFormat(NamedTuple):
    """How advice is written in one format."""

    render: Callable[[Rendering], str]
    join: Callable[[Sequence[Any]], str] | None = None  # several documents into one; else texts in a row
    placed: bool = False  # for services that show it beside lines of a repository


def _text(asked: Rendering) -> str:
    options = asked.options
    width, color = options.width, options.color
    if options.why is not None:
        from gpadvisor.report.why import render_why

        return render_why(asked.advice, options.why, width=width, color=color, sources=asked.texts)
    from gpadvisor.report.text import render_text

    return render_text(
        asked.advice,
        width=width,
        color=color,
        sources=asked.texts,
        details=options.details,
        everything=asked.request.show_all,
    )


def _markdown(asked: Rendering) -> str:
    from gpadvisor.report.markdown import render_markdown

    return render_markdown(asked.advice, sources=asked.texts)


def _json(asked: Rendering) -> str:
    from gpadvisor.report.jsonformat import render_json

    return render_json(asked.advice)


def _listed(documents: Sequence[Any]) -> str:
    return json.dumps(documents, indent=2) + "\n"


def _codequality(asked: Rendering) -> str:
    from gpadvisor.report.codequality import render_codequality

    return render_codequality(asked.advice, asked.repository, sources=asked.texts)


def _joined_findings(documents: Sequence[Any]) -> str:
    from gpadvisor.report.codequality import joined_findings

    return joined_findings(documents)


def _sarif(asked: Rendering) -> str:
    from gpadvisor.pipeline.rule_pages import rule_metadata
    from gpadvisor.pipeline.suggested_fixes import suggested_fixes
    from gpadvisor.report.sarif import SarifOptions, SarifSources, render_sarif

    placing, file = asked.options.placing, asked.file
    return render_sarif(
        asked.advice,
        SarifOptions(
            repository=asked.repository,
            category=placing.category,
            omit_suppressed=placing.omit_suppressed,
            home=placing.pages,
            rules=rule_metadata(placing.pages),
        ),
        SarifSources(
            texts=asked.texts,
            now={} if file is None else file.sources.local,
            fixes={} if file is None else suggested_fixes(file),
        ),
    )


def _joined_logs(documents: Sequence[Any]) -> str:
    from gpadvisor.report.sarif_limits import joined_logs

    return joined_logs(documents)


ADVICE_FORMATS: Final[Mapping[str, AdviceFormat]] = {
    "text": AdviceFormat(_text),
    "json": AdviceFormat(_json, join=_listed),
    "sarif": AdviceFormat(_sarif, join=_joined_logs, placed=True),
    "codequality": AdviceFormat(_codequality, join=_joined_findings, placed=True),
    "markdown": AdviceFormat(_markdown),
}
