# SPDX-License-Identifier: Apache-2.0
"""Which edits of a source answer a finding, with the numbers that only the finding and its launch know."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators.context import Optimizer
from gpadvisor.model.advice import Category
from gpadvisor.model.figures import gain
from gpadvisor.model.finding import Finding, NoteCode
from gpadvisor.model.fix import Fix, FixKind, LaunchFacts, TextEdit
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules import BY_CODE
from gpadvisor.source.edits import NUMBER, EditFacts, EditSite, SiteKind

DEFAULT_UNROLL: Final = 4
_COMPLETE: Final = 32
"""Loops of up to so many passes are unrolled completely."""
_SHOWN: Final = 4
_MOST_OF_A_KIND: Final = 3


@dataclass(frozen=True, slots=True)
class _Case:
    """A finding beside the source."""

    finding: Finding
    rule: Optimizer
    facts: EditFacts
    path: str
    launch: LaunchFacts

    @property
    def head(self) -> int | None:
        """The head of the finding's loop, where that is in the same file."""
        scope = self.finding.scope
        return None if scope is None or _file_name(scope.file) != _file_name(self.path) else scope.line

    def sites(self, kind: SiteKind) -> list[EditSite]:
        """Places of a kind that the finding's line or the head of its loop is in."""
        lines = [self.finding.line, *([self.head] if self.head is not None else [])]
        return [
            site
            for site in self.facts.sites
            if site.kind is kind and any(site.is_for(line) for line in lines)
        ]

    def kernels(self, kind: SiteKind) -> list[EditSite]:
        """Places that belong to the finding's kernel, wherever its line is."""
        name = base_name(self.finding.kernel_name)
        edit_sites = [site for site in self.facts.sites if site.kind is kind and site.name == name]
        return edit_sites if len(edit_sites) == 1 else []


def base_name(kernel: str) -> str:
    """A kernel's name without result, namespaces, template and other arguments."""
    head = kernel.partition("(")[0].partition("<")[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2]


def fixes_for(
    finding: Finding, facts: EditFacts, *, path: str, launch: LaunchFacts | None = None
) -> tuple[Fix, ...]:
    """The edits that answer a finding, those that are most to the point first.

    The finding's line and that of its scope are those of the text that the facts are about.
    """
    rule = BY_CODE.get(finding.code)
    if rule is None or not facts.readable or finding.suppressed is not None:
        return ()
    case = _Case(finding, rule, facts, path, launch or LaunchFacts())
    return tuple(fix for kind in rule.edits for fix in _OFFERS[kind](case))


def flag_fix(
    finding: Finding,
    flag: str,
    *,
    settings: str,
    edits: Sequence[TextEdit],
    creates: bool,
    build_line: str,
) -> Fix:
    """A compiler flag: written into the settings file alone, with what to change in the build beside it."""
    changes = flag in _ROUNDING_FLAGS
    where = f"writes {_file_name(settings)} only, the build itself is unchanged"
    title = f"Compile with {flag} ({where if edits else 'shown only'}) [{finding.code}]"
    return Fix(
        id=_identity(finding, "flag", [settings, flag]),
        code=finding.code,
        title=title,
        kind=FixKind.REWRITE,
        file=settings,
        edits=tuple(edits),
        needs_confirmation=changes,
        reason="changes rounding in all of the program: fast, less accurate forms of division, square root "
        "and functions, and denormals become zero"
        if changes
        else None,
        preferred=False,
        change="flag",
        line=finding.line,
        first_line=finding.line,
        last_line=finding.line,
        finding=finding.id,
        flag=flag,
        creates=creates,
        build_line=build_line,
        checkable=changes,
    )


def flag_of(code: str) -> str | None:
    """The flag that a rule's or a note's advice names."""
    rule = BY_CODE.get(code)
    return _NO_LINES_FLAG if code == NoteCode.NO_LINES else None if rule is None else rule.flag


_NO_LINES_FLAG: Final = "-lineinfo"
_ROUNDING_FLAGS: Final = frozenset({"--use_fast_math"})


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _identity(finding: Finding, change: str, parts: Iterable[object]) -> str:
    text = "\0".join((finding.code, change, *map(repr, parts)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def text_edits(site: EditSite, number: str = "") -> list[TextEdit]:
    """A site's replacements with the number that they leave open."""
    return [
        TextEdit(
            start_line=replacement.start_line,
            start_column=replacement.start_column,
            end_line=replacement.end_line,
            end_column=replacement.end_column,
            new_text=replacement.text.replace(NUMBER, number) if number else replacement.text,
        )
        for replacement in site.replacements
    ]


def _fix(
    case: _Case,
    sites: Sequence[EditSite],
    text: str,
    *,
    number: str = "",
    short: str = "",
    reason: str | None = None,
    preferred: bool = False,
    kind: FixKind = FixKind.QUICKFIX,
) -> Fix:
    """One fix of one or more sites; ``short`` says in the title why it asks."""
    edits = sorted(
        (edit for site in sites for edit in text_edits(site, number)),
        key=lambda edit: (edit.start_line, edit.start_column),
    )
    notes = "; ".join(note for note in (_estimate(case.finding), short) if note)
    return Fix(
        id=_identity(case.finding, sites[0].kind.value, [case.path, *edits]),
        code=case.finding.code,
        title=f"{text}{f' ({notes})' if notes else ''} [{case.finding.code}]",
        words=text,
        kind=kind,
        file=case.path,
        edits=tuple(edits),
        needs_confirmation=bool(short),
        reason=reason,
        preferred=preferred,
        change=sites[0].kind.value,
        line=case.finding.line,
        first_line=min(site.first_line for site in sites),
        last_line=max(site.last_line for site in sites),
        finding=case.finding.id,
    )


def _estimate(finding: Finding) -> str:
    return "" if finding.speedup is None else f"est. {gain(finding.speedup)}"


def _listed(words: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(words))
    more = len(distinct) - _SHOWN
    if more > 0:
        return f"{', '.join(distinct[:_SHOWN])} and {more} more"
    return distinct[0] if len(distinct) == 1 else f"{', '.join(distinct[:-1])} and {distinct[-1]}"


def _float_literals(case: _Case) -> Iterator[Fix]:
    is_remedy = Remedy.IN_FLOAT in case.finding.remedies
    sites = [site for site in case.sites(SiteKind.FLOAT_LITERALS) if site.sure or is_remedy]
    if not sites:
        return
    words = [word for site in sites for word in site.words]
    exact = all(site.exact for site in sites)
    yield _fix(
        case,
        sites,
        f"Use float literal{'s' if len(set(words)) > 1 else ''} {_listed(words)}",
        short="" if exact else "changes rounding",
        reason="the comparison has the same result in single precision"
        if exact
        else "changes rounding: the expression is then computed in single precision",
        preferred=exact,  # nothing is changed without asking that could change results
    )


def _reciprocal(case: _Case) -> Iterator[Fix]:
    for site in case.sites(SiteKind.RECIPROCAL)[:_MOST_OF_A_KIND]:
        yield _fix(
            case,
            [site],
            f"Divide once before the loop and multiply by {site.words[0]}",
            short="changes rounding",
            reason=f"changes rounding: a product with 1.0f / {site.name} may differ from the quotient in its "
            "last bit",
        )


def _keep_element(case: _Case) -> Iterator[Fix]:
    if Remedy.KEEP_ELEMENT not in case.finding.remedies:
        return
    for site in case.sites(SiteKind.KEEP_ELEMENT)[:_MOST_OF_A_KIND]:
        yield _fix(
            case,
            [site],
            f"Keep {site.name} in {site.words[0]} while the loop runs",
            short="promises no other access",
            reason="a promise: while the loop runs, nothing else in it and no other thread reads or writes "
            f"{site.name}, which is then also loaded and stored where the loop does not run",
        )


def _both_sides(case: _Case) -> Iterator[Fix]:
    if Remedy.BOTH_SIDES not in case.finding.remedies:
        return
    for site in case.sites(SiteKind.BOTH_SIDES)[:_MOST_OF_A_KIND]:
        yield _fix(
            case,
            [site],
            "Evaluate both sides of the condition (& for &&)",
            short="reads both values",
            reason="the value behind && is then read whatever the one before it says: where there may be no "
            "such element, as behind the end of an array, the kernel may fail",
        )


def _unroll(case: _Case) -> Iterator[Fix]:
    if Remedy.LOADS_FIRST in case.finding.remedies:
        return  # a pragma alone would change nothing
    sites = case.sites(SiteKind.UNROLL)
    # The loop that the finding names, else the innermost one around its line.
    site = next(
        (edit_site for edit_site in sites if edit_site.first_line == case.head), sites[-1] if sites else None
    )
    if site is None or not site.replacements:
        return
    trips = case.launch.trips.get(site.first_line, site.limit)
    copies = case.launch.copies.get(site.first_line, 1)
    if copies >= DEFAULT_UNROLL and not case.launch.lacks_warps:
        return  # the compiler has unrolled it as far, and fewer copies would be a step back
    times = DEFAULT_UNROLL if copies < DEFAULT_UNROLL else DEFAULT_UNROLL * copies
    if trips is not None and trips <= _COMPLETE:
        times = trips
    if times < 2 or (site.number is not None and times <= site.number):
        return
    if site.number is None:
        text = f"Add #pragma unroll {times}"
    else:
        text = f"Unroll {times} times instead of {site.number}"
    if trips == times:
        text += ", all of the loop's passes"
    yield _fix(case, [site], text, number=str(times), preferred=True)


def _restrict(case: _Case) -> Iterator[Fix]:
    for site in case.sites(SiteKind.RESTRICT)[:1]:
        text = f"Mark {_listed(site.words)} as __restrict__"
        reason = (
            "a promise: where memory that one of these pointers reaches is written through another, results "
            "are wrong"
        )
        if site.more_words:
            text += f", {_listed(site.more_words)} as const"
            reason += "; a declaration in another file must get the same const"
        yield _fix(case, [site], text, short="promises no aliasing", reason=reason)


def _grid_constant(case: _Case) -> Iterator[Fix]:
    if Remedy.GRID_CONSTANT not in case.finding.remedies:
        return
    for site in case.kernels(SiteKind.GRID_CONSTANT) or case.sites(SiteKind.GRID_CONSTANT)[:1]:
        yield _fix(case, [site], f"Read {_listed(site.words)} in place (__grid_constant__)", preferred=True)


def _launch_bounds(case: _Case) -> Iterator[Fix]:
    threads, blocks = case.launch.block_threads, case.launch.blocks_per_sm
    if threads is None:
        return
    for site in case.kernels(SiteKind.LAUNCH_BOUNDS):
        if case.rule.category is not Category.PARALLEL:
            # A bound above what is launched keeps registers from the threads there are.
            if site.number is not None and site.limit is None and threads < site.number:
                yield _bounds(case, site, (threads,), f"Lower the launch bound to {threads} threads")
            continue
        most = max(threads, site.number or 0)
        if blocks is not None and blocks > (site.limit or 1):
            text = f"Bound {site.name} to {most} threads, {blocks} blocks per SM"
            yield _bounds(case, site, (most, blocks), text)


def _bounds(case: _Case, site: EditSite, bounds: Sequence[int], text: str) -> Fix:
    """A fix that writes ``bounds``: threads of a block, and blocks of an SM where they are told."""
    number = ", ".join(map(str, bounds))
    return _fix(
        case,
        [site],
        f"{text} (__launch_bounds__({number}))",
        number=number,
        short="limits the block size",
        reason=f"a launch of {site.name} with more than {bounds[0]} threads per block then fails",
    )


def _force_inline(case: _Case) -> Iterator[Fix]:
    for site in case.sites(SiteKind.FORCE_INLINE)[:_MOST_OF_A_KIND]:
        yield _fix(case, [site], f"Mark {site.name} as __forceinline__", number="", preferred=True)


def _no_inline(case: _Case) -> Iterator[Fix]:
    for site in case.sites(SiteKind.NO_INLINE)[:_MOST_OF_A_KIND]:
        yield _fix(case, [site], f"Mark {site.name} as __noinline__", kind=FixKind.REWRITE)


def _block_size(case: _Case) -> Iterator[Fix]:
    threads = case.launch.threads_new
    for site in case.kernels(SiteKind.BLOCK_SIZE):
        if threads is None or threads == site.number or (site.limit is not None and threads > site.limit):
            continue
        yield _fix(
            case,
            [site],
            f"Launch blocks of {threads} threads instead of {site.number} ({site.words[0]})",
            number=str(threads),
            short="changes the launch",
            reason=f"everything that depends on {site.words[0]} changes with it: check the grid, the shared "
            "memory and what the kernel takes for granted",
            kind=FixKind.REWRITE,
        )


_OFFERS: Final[Mapping[SiteKind, Callable[[_Case], Iterator[Fix]]]] = {
    SiteKind.FLOAT_LITERALS: _float_literals,
    SiteKind.RECIPROCAL: _reciprocal,
    SiteKind.KEEP_ELEMENT: _keep_element,
    SiteKind.BOTH_SIDES: _both_sides,
    SiteKind.NO_INLINE: _no_inline,
    SiteKind.FORCE_INLINE: _force_inline,
    SiteKind.UNROLL: _unroll,
    SiteKind.RESTRICT: _restrict,
    SiteKind.GRID_CONSTANT: _grid_constant,
    SiteKind.LAUNCH_BOUNDS: _launch_bounds,
    SiteKind.BLOCK_SIZE: _block_size,
}
