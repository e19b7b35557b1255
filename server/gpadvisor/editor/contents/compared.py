# SPDX-License-Identifier: Apache-2.0
"""What the page shows of an earlier profile of the same program beside the one that it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpadvisor.advice.compare import pair_kernels
from gpadvisor.model.advice import Suggestion
from gpadvisor.pipeline.advise import AdvisedFile
from gpadvisor.pipeline.compare import compare_advised
from gpadvisor.report.comparison import comparison_json
from gpadvisor.report.jsonformat import text
from gpadvisor.source.line_map import split_lines


def compared_contents(
    before: AdvisedFile, after: AdvisedFile, number: Callable[[str], int], *, sources: bool
) -> dict[str, Any]:
    """The comparison as ``compare --format json`` has it, in the page's numbers.

    Each of its kernels has ``kernel``, its position in the advice of the second run; each line ``place``, the
    number of its file and the line in the second run, ``text``, of the first run if it is only there, and
    ``predicted``, the positions of the predictions that rest on it.

    Args:
        before: the earlier run.
        after: the one that the page is of.
        number: of a file, by its path in the line tables of the second run.
        sources: whether lines have their text.
    """
    values = comparison_json(compare_advised(before, after))
    positions = {id(kernel): position for position, kernel in enumerate(after.advice.kernels)}
    pairs, _, _ = pair_kernels(before.advice.kernels, after.advice.kernels)
    texts = [_lines(file.texts) if sources else {} for file in (before, after)]
    for kernel, (first, second) in zip(values["kernels"], pairs, strict=True):
        kernel["kernel"] = positions[id(second)]
        rest_on = [_places(suggestion) for suggestion in first.suggestions if suggestion.speedup is not None]
        for line in kernel["lines"]:
            new_place, then = line["after"], line["before"]
            line["place"] = None if new_place is None else [number(new_place["file"]), new_place["line"]]
            line["text"] = _text(texts[0], then) if new_place is None else _text(texts[1], new_place)
            line["predicted"] = [
                index
                for index, places in enumerate(rest_on)
                if then is not None and (then["file"], then["line"]) in places
            ]
    return {"before": text(before.analysis.path.name), **values}


def _places(suggestion: Suggestion) -> set[tuple[str, int]]:
    """Lines of its causes and of what waits for them."""
    ends = [end for spot in suggestion.hotspots for end in (spot.definition, spot.use) if end is not None]
    return {(end.location.file, end.location.line) for end in ends if end.location is not None}


def _lines(texts: Mapping[str, str]) -> dict[str, list[str]]:
    return {file: split_lines(source) for file, source in texts.items()}


def _text(texts: Mapping[str, list[str]], place: Mapping[str, Any]) -> str | None:
    lines = texts.get(place["file"], [])
    return lines[place["line"] - 1].strip() if 1 <= place["line"] <= len(lines) else None
