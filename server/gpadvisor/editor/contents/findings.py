# SPDX-License-Identifier: Apache-2.0
"""Suggestions as findings: one for each line and rule, however many template instantiations have it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpadvisor.editor.contents.lines import CausedLine
from gpadvisor.editor.contents.places import Places, ProfiledText
from gpadvisor.editor.contents.words import (
    estimate_words,
    folded_words,
    opcode,
    opcodes,
    own_words,
    part_words,
    sampled_message,
    share_words,
    static_message,
    trace_of,
    use_words,
)
from gpadvisor.editor.show.words import reason_words
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.model.advice import Category, Match, ScopeKind, Suggestion
from gpadvisor.model.blame import Role
from gpadvisor.model.figures import short_percent
from gpadvisor.model.finding import Finding, FindingPart, Place, Related
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.model.sentence import Sentence
from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.rules import BY_CODE
from gpadvisor.source.facts import SourceFacts, SuppressionComment
from gpadvisor.source.line_map import line_keys
from gpadvisor.source.naming import name_arithmetic

RELATED: Final = 5
_MAX_LINES: Final = 5
"""Lines of one suggestion for one kernel with samples; more of them hide the heavy ones."""
_MAX_STATIC_LINES: Final = 20
_MIN_SHARE: Final = 0.01
_MIN_SAMPLES: Final = 5
"""Fewer say nothing about a line; the heaviest line of a suggestion is shown all the same."""
_COVERED: Final = 0.8
"""Share of a suggestion's samples from which on further lines are left out."""
_INLINED: Final = 2
_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelInput:
    """One kernel with what findings are made of."""

    kernel: str  # mangled
    name: str  # short
    advised: AdvisedKernel
    rows: Sequence[CausedLine]
    place: Place | None  # of its definition
    total: int  # samples


@dataclass(slots=True)
class _Site:
    """One line of one suggestion in one kernel."""

    samples: int = 0
    rows: list[CausedLine] = field(default_factory=list)
    static: list[tuple[Function, int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """A site that is shown, with the kernel and suggestion it is of."""

    kernel: KernelInput
    suggestion: Suggestion
    site: _Site
    first: Place  # the heaviest line of its suggestion
    rank: int  # among the lines of its suggestion, 0 for the heaviest
    lines: int  # of its suggestion, shown or not


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFindings:
    """All findings of an analysis."""

    by_file: Mapping[str, Sequence[Finding]]
    leading: Mapping[tuple[str, str], str]  # id of the heaviest finding by mangled kernel and rule code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindingSources:
    """What findings are named and set aside by."""

    places: Places
    texts: Mapping[str, ProfiledText]
    facts: Mapping[str, SourceFacts]
    comments: Mapping[str, Sequence[SuppressionComment]]


def findings(kernels: Sequence[KernelInput], sources: FindingSources) -> FileFindings:
    """The findings of all kernels, those on one line by one rule folded into one."""
    parts: dict[tuple[str, Place], list[_Part]] = {}
    for kernel in kernels:
        for suggestion in kernel.advised.advice.suggestions:
            sites, lines = _sites(kernel, suggestion, sources.places)
            for rank, (place, site) in enumerate(sites):
                part = _Part(
                    kernel=kernel,
                    suggestion=suggestion,
                    site=site,
                    first=sites[0][0],
                    rank=rank,
                    lines=lines,
                )
                parts.setdefault((suggestion.code, place), []).append(part)
    by_file: dict[str, list[Finding]] = {}
    leading: dict[tuple[str, str], str] = {}
    counts: Counter[str] = Counter()
    ordered = sorted(parts.items(), key=lambda item: (item[0][1].file, item[0][1].line, item[0][0]))
    for (code, place), shared in ordered:
        shared.sort(key=_weight)
        finding = _finding(place, shared, sources, _identity(place, shared, sources, counts))
        by_file.setdefault(place.file, []).append(finding)
        for part in shared:
            if part.rank == 0:
                leading[part.kernel.kernel, code] = finding.id
    return FileFindings(by_file=by_file, leading=leading)


def _weight(part: _Part) -> tuple[float, int, int, str]:
    """Parts by how much of the GPU's time they are, else by samples."""
    share = part.site.samples / part.kernel.total if part.kernel.total else 0.0
    time = part.kernel.advised.advice.time_share or 0.0
    return -share * time, -part.site.samples, part.rank, part.kernel.name


def _sites(
    kernel: KernelInput, suggestion: Suggestion, places: Places
) -> tuple[list[tuple[Place, _Site]], int]:
    """The lines of a suggestion that are shown, heaviest first, and how many there are."""
    match = kernel.advised.matches.get(suggestion.code)
    sites = {} if match is None else _matched_sites(kernel, match, places)
    ranked = sorted(
        sites.items(), key=lambda item: (-item[1].samples, -len(item[1].static), item[0].file, item[0].line)
    )
    if not ranked:
        return ([], 0) if kernel.place is None else ([(kernel.place, _Site())], 1)
    if not kernel.rows:
        return ranked[:_MAX_STATIC_LINES], len(ranked)
    most = 1 if suggestion.category is Category.NOTE else _MAX_LINES
    least = max(_MIN_SHARE * kernel.total, _MIN_SAMPLES)
    enough = _COVERED * sum(site.samples for _, site in ranked)
    chosen: list[tuple[Place, _Site]] = []
    covered = 0
    for place, site in ranked[:most]:
        if chosen and (covered >= enough or site.samples < least):
            break
        chosen.append((place, site))
        covered += site.samples
    return chosen, len(ranked)


def _matched_sites(kernel: KernelInput, match: Match, places: Places) -> dict[Place, _Site]:
    sites: dict[Place, _Site] = {}
    if kernel.rows:
        for position in matched_rows(match).tolist():
            row = kernel.rows[position]
            place = None if row.function is None or row.cause is None else places.of(row.function, row.cause)
            if place is not None and row.samples:
                site = sites.setdefault(place, _Site())
                site.samples += row.samples
                site.rows.append(row)
        return sites
    program = kernel.advised.analysed.context.program
    for entry in match.static_sites:
        function = program.functions[entry.function]
        place = places.of(function, entry.index)
        if place is not None:
            sites.setdefault(place, _Site()).static.append((function, entry.index, entry.detail))
    return sites


def _finding(place: Place, parts: Sequence[_Part], sources: FindingSources, identity: str) -> Finding:
    first = parts[0]
    suggestion, kernel = first.suggestion, first.kernel
    sampled = kernel.total > 0
    scope = suggestion.scope.location if suggestion.scope.kind is ScopeKind.LOOP else None
    head = None if scope is None else Place(file=sources.places.name(scope.file), line=scope.line)
    return Finding(
        id=identity,
        code=suggestion.code,
        slug=suggestion.slug,
        name=suggestion.name,
        title=_title(first),
        message=_message(parts),
        advice=Sentence(suggestion.advice),
        cure=Sentence(suggestion.cure),
        remedies=suggestion.remedies,
        leads=first.rank == 0,
        lead=None if first.rank == 0 else first.first,
        line=place.line,
        token=_token(first, place, sources.facts),
        kernel=kernel.kernel,
        kernel_name=kernel.name,
        evidence=suggestion.evidence,
        samples=sum(part.site.samples for part in parts),
        importance=first.site.samples / kernel.total if sampled else None,
        matched=suggestion.importance if sampled else None,
        speedup=suggestion.speedup,
        parts=tuple(
            FindingPart(
                kernel=part.kernel.kernel,
                kernel_name=part.kernel.name,
                samples=part.site.samples,
                importance=part.site.samples / part.kernel.total if part.kernel.total else None,
                speedup=part.suggestion.speedup,
                program_speedup=part.suggestion.program_speedup,
                run=trace_of(part.kernel.advised.advice),
            )
            for part in parts
        ),
        related=_related(first, place, head, sources.places),
        scope=head,
        suppressed=_suppressed(parts, place, sources),
    )


def _message(parts: Sequence[_Part]) -> str:
    first = parts[0]
    suggestion, kernel, site = first.suggestion, first.kernel, first.site
    if site.rows:
        text = _sampled(first)
    elif site.static:
        names = [opcode(function.instructions[index]) for function, index, _ in site.static]
        text = static_message(names, [detail for _, _, detail in site.static])
    else:
        text = f"Of {kernel.name} as a whole."
    matched = share_words(suggestion.matched_samples, kernel.total, kernel.name)
    text += estimate_words(suggestion.speedup, first.lines if site.rows else 1, matched)
    share_of_kernel = {
        part.kernel.name: short_percent(part.site.samples / part.kernel.total) if part.kernel.total else ""
        for part in parts[1:]
    }
    return text + folded_words(share_of_kernel)


def _title(part: _Part) -> str:
    """The pattern that stands on this line, where the suggestion is about several kinds of it."""
    match = part.kernel.advised.matches.get(part.suggestion.code)
    titles = {} if match is None else match.titles
    places = [(row.function, row.cause, row.samples) for row in part.site.rows]
    counts: Counter[str] = Counter()
    for function, index, weight in (*places, *((*entry[:2], 1) for entry in part.site.static)):
        if function is not None and index is not None:
            counts[titles.get((function.id, index), part.suggestion.title)] += weight
    return counts.most_common(1)[0][0] if counts else part.suggestion.title


def _sampled(part: _Part) -> str:
    blamed = [row for row in part.site.rows if row.role is Role.BLAMED]
    waited = sum(row.samples for row in blamed)
    mostly = 2 * waited >= part.site.samples
    heavy = _heaviest(blamed if mostly else [row for row in part.site.rows if row.role is not Role.BLAMED])
    names = opcodes(opcode(row.instruction(row.cause)) for row in heavy if row.cause is not None)
    blame = part.kernel.advised.analysed.context.blame
    reasons: Counter[str] = Counter()
    for row in part.site.rows:
        reasons[blame.reasons[row.reason].name if blame is not None else ""] += row.samples
    most = ", ".join(reason_words(name) for name, _ in reasons.most_common(2) if name)
    return sampled_message(
        share=share_words(part.site.samples, part.kernel.total, part.kernel.name),
        waited=names if mostly else "",
        waiting=names,
        reasons=most,
    )


def _heaviest(rows: Sequence[CausedLine]) -> list[CausedLine]:
    return sorted(rows, key=lambda row: (-row.samples, row.cause or 0, row.use or 0))


def _related(part: _Part, place: Place, head: Place | None, places: Places) -> tuple[Related, ...]:
    """Def-to-use pairs, heaviest first; then where the line was inlined to, and the loop around it."""
    chain = [*_inlined(part, place, places)]
    if head is not None and head != place and part.site.rows:
        chain.append(Related(place=head, message="the loop that this is in begins here"))
    return (*_pairs(part, places)[: RELATED - min(len(chain), _INLINED)], *chain)[:RELATED]


@dataclass(slots=True)
class _Pair:
    """Def-to-use pairs that read alike: between the same two lines, by the same opcodes."""

    row: CausedLine
    at: Place
    samples: int = 0
    distances: set[int] = field(default_factory=set)
    uses: set[int] = field(default_factory=set)


def _pairs(part: _Part, places: Places) -> list[Related]:
    pairs: dict[tuple[object, ...], _Pair] = {}
    for row in part.site.rows:
        place = None if row.function is None or row.use is None else places.of(row.function, row.use)
        if place is None or row.use is None or row.cause is None:
            continue
        blamed = row.role is Role.BLAMED
        kind = row.kind if blamed else row.reason
        key = place, opcode(row.instruction(row.cause)), opcode(row.instruction(row.use)), blamed, kind
        pair = pairs.setdefault(key, _Pair(row=row, at=place))
        pair.samples += row.samples
        pair.uses.add(row.use)
        if row.distance is not None:
            pair.distances.add(row.distance)
    ranked = sorted(pairs.values(), key=lambda pair: (-pair.samples, pair.row.use or 0, pair.row.cause or 0))
    return [Related(place=pair.at, message=_pair_words(part, pair)) for pair in ranked[:RELATED]]


def _pair_words(part: _Part, pair: _Pair) -> str:
    row, blame = pair.row, part.kernel.advised.analysed.context.blame
    if row.use is None or row.cause is None or blame is None:
        return ""
    share = part_words(pair.samples, part.kernel.total)
    use = row.instruction(row.use)
    if row.role is not Role.BLAMED:
        return own_words(use, blame.reasons[row.reason].name, share, len(pair.uses))
    return use_words(row.instruction(row.cause), use, row.kind, sorted(pair.distances), share)


def _inlined(part: _Part, place: Place, places: Places) -> list[Related]:
    """Where the heaviest instruction of the line was inlined, and the library line that it is inside of."""
    heavy = _heaviest(part.site.rows)
    owners = [
        (row.function, row.cause) for row in heavy if row.function is not None and row.cause is not None
    ]
    owners += [(function, index) for function, index, _ in part.site.static]
    if not owners:
        return []
    function, index = owners[0]
    if function.kind is FunctionKind.MATH_HELPER:
        return []
    entry = function.lines[index]
    sites = places.call_sites(function, index)
    relateds = [Related(place=site, message="inlined into the kernel from here") for site in sites[:_INLINED]]
    if entry is not None:
        inner = places.chain(entry)[:1]
        if inner and inner[0] != place:
            relateds.append(
                Related(place=inner[0], message=f"{opcode(function.instructions[index])} is of this line")
            )
    return relateds[:_INLINED]


def _token(part: _Part, place: Place, facts: Mapping[str, SourceFacts]) -> str | None:
    """The one literal or division on the line that strength reduction is about."""
    source_facts = facts.get(place.file)
    if source_facts is None or BY_CODE[part.suggestion.code].naming is not name_arithmetic:
        return None
    tokens = [*source_facts.double_literals, *source_facts.divisions]
    texts = list(dict.fromkeys(token.text for token in tokens if token.line == place.line))
    return texts[0] if len(texts) == 1 else None


def _suppressed(parts: Sequence[_Part], place: Place, sources: FindingSources) -> str | None:
    """The reason of the comment that covers this line, or that sets the whole suggestion aside."""
    code = parts[0].suggestion.code
    for comment in sources.comments.get(place.file, ()):
        if code in comment.codes and comment.covers(place.line):
            return comment.reason
    suppressions = [part.suggestion.suppressed for part in parts]
    if all(suppression is not None for suppression in suppressions):
        return suppressions[0].reason if suppressions[0] is not None else None
    return None


def _identity(place: Place, parts: Sequence[_Part], sources: FindingSources, counts: Counter[str]) -> str:
    """A digest of the rule, the file's name and the line's words; equal ones are numbered in order."""
    text = sources.texts.get(place.file)
    words: str | None = None
    if text is not None and text.text is not None:
        keys = line_keys(text.text)
        words = keys[place.line - 1] if place.line <= len(keys) else None
    if not words:
        site = parts[0].site
        rows = [
            row.instruction(row.cause).opcode for row in _heaviest(site.rows)[:2] if row.cause is not None
        ]
        rows += [function.instructions[index].opcode for function, index, _ in site.static[:2]]
        words = " ".join(rows)
    file = place.file.replace("\\", "/").rpartition("/")[2]
    key = f"{parts[0].suggestion.code}\0{file}\0{words}"
    number = counts[key]
    counts[key] += 1
    return hashlib.sha256(f"{key}\0{number}".encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]
