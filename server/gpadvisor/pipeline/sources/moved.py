# SPDX-License-Identifier: Apache-2.0
"""Where the lines that advice names are in the sources of today, which may be other versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpadvisor.model.advice import KernelAdvice, SourceMatch
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import lines_of
from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.source.line_map import line_keys, match_in_order, match_moved, split_lines
from gpadvisor.source.matching import CONTENT_HASH, PATH_SUFFIX, path_parts
from gpadvisor.source.plausible import can_be


def with_todays_lines(sources: FoundSources, kernels: Sequence[KernelAdvice]) -> tuple[SourceMatch, ...]:
    """The matches with what became of each named line, or that nothing tells."""
    opcodes_of_line: dict[str, dict[int, str]] = defaultdict(dict)
    for place, opcode in _named(kernels):
        opcodes_of_line[place.file].setdefault(place.line, opcode)
    return tuple(
        _told(match, sources, opcodes_of_line.get(match.report_path, {})) for match in sources.matches
    )


def _told(match: SourceMatch, sources: FoundSources, lines: Mapping[int, str]) -> SourceMatch:
    """The match with what is known of its lines, each with the opcode of an instruction there."""
    text_today = sources.local.get(match.report_path)
    if match.local_path is None or text_today is None or not lines or match.method == CONTENT_HASH:
        return match
    then = sources.profiled.get(match.report_path)
    if then is None:
        parts, local = path_parts(match.report_path), path_parts(match.local_path)
        by_name = match.method == PATH_SUFFIX and parts[-2:] != local[-2:]
        texts = dict(enumerate(split_lines(text_today), 1))
        odd = sum(bool(opcode) and not can_be(texts.get(line, ""), opcode) for line, opcode in lines.items())
        return replace(match, by_name=by_name, is_unsure=True, odd_lines=odd)
    if then == text_today:
        return match
    old, new = line_keys(then), line_keys(text_today)
    in_order = match_in_order(old, new)
    line_today = in_order | match_moved(old, new, in_order)
    today = ((line, line_today.get(line - 1)) for line in sorted(lines))
    return replace(match, today=tuple((line, None if index is None else index + 1) for line, index in today))


def _named(kernels: Sequence[KernelAdvice]) -> Iterator[tuple[SourceLocation, str]]:
    """Lines with the opcode that they are named for; of a scope, a call site and a sentence with none."""
    for kernel in kernels:
        suggestions = (*kernel.suggestions, *kernel.notes)
        for suggestion in suggestions:
            yield from (
                (place, "") for text in (suggestion.cure, suggestion.advice) for place in lines_of(text)
            )
            for spot in suggestion.hotspots:
                for code in (spot.definition, spot.use):
                    if code is not None and code.location is not None:
                        yield code.location, code.opcode
                        yield from ((frame.call_site, "") for frame in code.inline)
        scopes = [suggestion.scope for suggestion in suggestions] + [
            summary.scope for summary in kernel.scopes
        ]
        yield from ((scope.location, "") for scope in scopes if scope.location is not None)
