# SPDX-License-Identifier: Apache-2.0
"""The suggestions of a report, numbered and each once, as the screen, Markdown and ``--why`` name them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpadvisor.analyzer.places import is_library
from gpadvisor.model.advice import Advice, Category, CodeRef, KernelAdvice, ScopeKind, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import is_launched_by_library
from gpadvisor.model.sentence import Sentence
from gpadvisor.report.folding import SMALL_SHARE
from gpadvisor.report.names import base_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedSuggestion:
    """One suggestion; what several kernels share on one line is told of the heaviest."""

    number: int  # from 1, over the whole report
    kernel: KernelAdvice
    suggestion: Suggestion
    also: tuple[KernelAdvice, ...]  # other kernels that it holds for


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Kernels of one name: instantiations of a template, and what was launched in several ways."""

    kernels: tuple[KernelAdvice, ...]  # heaviest first
    entries: tuple[NumberedSuggestion, ...]
    elsewhere: tuple[int, ...] = ()  # numbers of other families' entries that hold for its kernels, too

    @property
    def head(self) -> KernelAdvice:
        """The heaviest kernel."""
        return self.kernels[0]

    @property
    def share(self) -> float | None:
        """Of the GPU time in the report; None where it is not known."""
        shares = [share for kernel in self.kernels if (share := kernel.time_share) is not None]
        return sum(shares) if shares and math.isfinite(sum(shares)) else None

    @property
    def saved(self) -> float:
        """The share of the GPU time that its best suggestion is expected to save."""
        return max((saved(entry) for entry in self.entries), default=0.0)


def saved(entry: NumberedSuggestion) -> float:
    """The share of the report's GPU time that goes; of the kernel's where its part is not known."""
    estimate, share = entry.suggestion.speedup, entry.kernel.time_share
    if estimate is None or not estimate.expected > 0:
        return 0.0
    return (1.0 if share is None or not math.isfinite(share) else share) * (1 - 1 / estimate.expected)


def families(advice: Advice) -> tuple[Family, ...]:
    """Kernels by name with what no comment in the source sets aside, those first where most can be saved.

    What several kernels share is told once: a finding on one line, the same change of the launch, and of one
    template what has no figure and the same words, on whichever lines.
    """
    groups: dict[str, list[KernelAdvice]] = {}
    for kernel in advice.kernels:
        groups.setdefault(base_name(kernel.name), []).append(kernel)
    merged: dict[tuple[str, object], NumberedSuggestion] = {}
    owners: dict[tuple[str, object], str] = {}
    of_words: dict[tuple[str, str, str], tuple[str, object]] = {}
    for name, kernels in groups.items():
        for kernel in kernels:
            for suggestion in kernel.suggestions:
                if suggestion.suppressed is not None:
                    continue
                key: tuple[str, object] = (
                    suggestion.code,
                    wording(suggestion) or primary(suggestion) or name,
                )
                if suggestion.speedup is None:
                    key = of_words.setdefault((name, suggestion.code, _without_lines(suggestion)), key)
                earlier = merged.get(key)
                if earlier is None:
                    owners[key] = name
                    merged[key] = NumberedSuggestion(number=0, kernel=kernel, suggestion=suggestion, also=())
                else:
                    merged[key] = replace(earlier, also=(*earlier.also, kernel))
    by_owner: dict[str, list[NumberedSuggestion]] = {name: [] for name in groups}
    for merged_key, entry in merged.items():
        by_owner[owners[merged_key]].append(entry)
    result = [
        Family(kernels=tuple(kernels), entries=tuple(sorted(by_owner[name], key=_first)))
        for name, kernels in groups.items()
    ]
    modelled = sum(_one_launch(family) for family in result)
    numbers = itertools.count(1)
    numbered = [
        replace(family, entries=tuple(replace(entry, number=next(numbers)) for entry in family.entries))
        for family in sorted(result, key=lambda family: _order(family, modelled))
    ]
    held: dict[int, list[int]] = {}
    for family in numbered:
        for entry in family.entries:
            for kernel in entry.also:
                held.setdefault(id(kernel), []).append(entry.number)
    return tuple(replace(family, elsewhere=_elsewhere(family, held)) for family in numbered)


def _first(entry: NumberedSuggestion) -> tuple[bool, float]:
    return not entry.suggestion.leads, -saved(entry)


def _order(family: Family, modelled: float) -> tuple[float, float, bool, bool]:
    """Most saved first, all of it where what leads has no figure; else what takes most of the time.

    Of simulated kernels no share of a run is known: theirs is of one launch each, ``modelled`` altogether.
    Where no time is known, those with a finding come first, then those that no library brings along.
    """
    first = next((entry.suggestion for entry in family.entries), None)
    open_end = first is not None and first.leads and first.speedup is None
    of_run, share = 1.0, family.share or 0.0
    if modelled and family.share is None:
        of_run = share = _one_launch(family) / modelled
    saved = share if open_end else family.saved * of_run
    library = is_launched_by_library(family.head.name)
    return -saved if saved >= SMALL_SHARE else 0.0, -share, first is None, library


def _one_launch(family: Family) -> float:
    """What one launch of each of its kernels takes, where no share of a run is known."""
    return sum(kernel.duration_ns or 0.0 for kernel in family.kernels if kernel.time_share is None)


def _elsewhere(family: Family, held: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    own_numbers = {entry.number for entry in family.entries}
    numbers = {number for kernel in family.kernels for number in held.get(id(kernel), ())}
    return tuple(sorted(numbers - own_numbers))


def wording(suggestion: Suggestion) -> str:
    """The words of a change of the launch that has no figure: kernels that share them are told once."""
    launch = suggestion.category is Category.PARALLEL and suggestion.speedup is None
    return suggestion.cure if launch else ""


def _without_lines(suggestion: Suggestion) -> str:
    """What to change, wherever that is."""
    return Sentence(suggestion.cure or suggestion.advice).at(lambda _: "")


def heaviest(all_families: Sequence[Family]) -> Family:
    """The one that takes most of the time; the first where times are not known."""
    return max(all_families, key=lambda family: family.share or 0.0)


def cause(suggestion: Suggestion) -> CodeRef | None:
    """The instruction to look at: the def of the heaviest hotspot, else its use."""
    ends = [code for spot in suggestion.hotspots for code in (spot.definition, spot.use) if code is not None]
    return next((code for code in ends if code.location is not None), ends[0] if ends else None)


def primary(suggestion: Suggestion) -> SourceLocation | None:
    """Its line, else that of the scope; of library code without a caller's line the user's loop around."""
    code, scope = cause(suggestion), suggestion.scope
    code_location = None if code is None else code.location
    if code_location is None or scope.location is None:
        return scope.location if code_location is None else code_location
    inside = (
        scope.kind is ScopeKind.LOOP
        and is_library(code_location.file)
        and not is_library(scope.location.file)
    )
    return scope.location if inside else code_location


def by_number(all_families: Sequence[Family], number_or_code: str) -> NumberedSuggestion | None:
    """The entry with that number, or the first with that rule code."""
    entries = [entry for family in all_families for entry in family.entries]
    return next(
        (entry for entry in entries if number_or_code in {str(entry.number), entry.suggestion.code}), None
    )
