# SPDX-License-Identifier: Apache-2.0
"""What to do about exact library math, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.estimators import terms
from gpadvisor.estimators.fast_forms import FAST, FoundMath, is_product
from gpadvisor.evidence.library_math import (
    POW,
    Divisor,
    divisor_of,
    has_no_whole_exponent,
    is_for_rare,
    is_made_whole,
    is_of_doubles,
    is_whole_power,
    is_whole_quotient,
    roots_divided_by,
    routine_name,
    takes_negative_base,
)
from gpadvisor.evidence.patterns import (
    DIVISION_BY_CONSTANT,
    FLOAT_BY_CONSTANT,
    SINE,
    SLOW_PATH,
    CodeSequence,
)
from gpadvisor.evidence.queries import line_text
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function

_SHOWN_PLACES: Final = 2
_BY_CONSTANT: Final = frozenset({DIVISION_BY_CONSTANT, FLOAT_BY_CONSTANT})
_RECIPROCALS: Final = {
    Divisor.KEPT: "take the reciprocal of the divisor before the loop, in which it stays, and multiply at",
    Divisor.SHARED: "take one reciprocal for all that is divided by the same value at",
    Divisor.SAME: "multiply by the reciprocal of the parameter, passed as one of its own, at",
    Divisor.NUMBER: "multiply by the reciprocal of the constant at",
}
"""In the order in which they are told."""


def math_advice(found: FoundMath, *, single: bool = False) -> str:
    """What was found, and what to do about it."""
    kinds: dict[str, Counter[str]] = {}
    for function, sequence in found.sequences():
        kinds.setdefault(sequence.kind, Counter())[line_text(function, sequence.start)] += 1
    if SLOW_PATH in kinds and SINE in kinds and kinds[SLOW_PATH].keys() <= kinds[SINE].keys():
        del kinds[SLOW_PATH]
    parts = []
    for kind, places in kinds.items():
        where = _some(list(places))
        parts.append(f"{kind} at {where}" + _fast(kind, found.language))
    own_routines = sorted(
        {routine_name(helper) for helper in found.helpers if not kinds or not is_for_rare(helper)}
    )
    if own_routines:
        parts.append("out-of-line " + ", ".join(own_routines))
    return f"Library math in the kernel: {'; '.join(parts)}. To try: {math_cure(found, single=single)}."


def math_cure(found: FoundMath, *, single: bool = False) -> str:
    """What to do about the kinds of library math that were found.

    Args:
        found: the library math.
        single: whether single precision gives most of what is expected, so that it is told first.
    """
    cures = concrete_cures(found)
    kinds = {sequence.kind for _, sequence in found.sequences()}
    doubles = any("double" in kind for kind in kinds - _BY_CONSTANT)
    if doubles or (not kinds & _BY_CONSTANT and any(is_of_doubles(helper) for helper in found.helpers)):
        words = "use single precision where the result bears it (doubles have no fast forms)"
        cures.insert(0 if single else len(cures), words)
    return "; ".join(cures)


@dataclass(frozen=True, slots=True)
class _Cure:
    """A change, what it is about, and the first place of it."""

    words: str
    samples: int
    place: tuple[FunctionId, int] | None = None


def concrete_cures(found: FoundMath) -> list[str]:
    """Changes that keep the precision of the program's types, those with most samples first."""
    return [cure.words for cure in _cures(found)]


def first_place(found: FoundMath) -> tuple[FunctionId, int] | None:
    """The place of what is told first, where that is a product, or a quotient of whole numbers."""
    return next((cure.place for cure in _cures(found)), None)


@lru_cache(maxsize=1)
def _cures(found: FoundMath) -> tuple[_Cure, ...]:
    """Quotients of whole numbers, then reciprocals and fast forms, then powers."""
    whole = [
        _Cure(
            f"divide whole numbers at {line_text(function, sequence.start)}, where the quotient becomes one",
            0,
            (function.id, sequence.start),
        )
        for function, sequence in found.sequences()
        if is_whole_quotient(function, sequence)
    ][:1]
    powers = {helper.id: helper for helper in found.helpers if POW in helper.name}
    words = f"write {terms.POWER.of(found.language)} with a small whole exponent as a product"
    products = [
        _Cure(words, 0, (function.id, call.index))
        for function in found.functions
        for call in function.calls
        if call.callee in powers and not has_no_whole_exponent(function, call.index, powers[call.callee])
    ][:1]
    return (*whole, *_products_and_fast_forms(found), *products)


def _products_and_fast_forms(found: FoundMath) -> list[_Cure]:
    """Reciprocals and fast forms."""
    cures = []
    for by, words in _RECIPROCALS.items():
        divided = [(one, sequence) for one, sequence in found.sequences() if divisor_of(one, sequence) is by]
        if divided:
            lines = dict.fromkeys(line_text(function, sequence.start) for function, sequence in divided)
            place = (divided[0][0].id, divided[0][1].start)
            product = f"{words} {_some(tuple(lines))}{_caveat(divided)}"
            cures.append(_Cure(product, found.samples_of(divided), place))
    pairs = [
        (one, pair)
        for one in found.functions
        for pair in roots_divided_by(one)
        if {*pair} <= {*found.inline.get(one.id, ())}
    ]
    if pairs:
        parts = {(one.id, part.start): (one, part) for one, pair in pairs for part in pair}
        lines = dict.fromkeys(line_text(one, division.start) for one, (_, division) in pairs)
        words = f"{terms.RECIPROCAL_ROOT.of(found.language)} for a root and the division by it at"
        cures.append(_Cure(f"{words} {_some(tuple(lines))}", found.samples_of(list(parts.values()))))
    whole = [one for one in found.sequences() if is_whole_power(*one)]
    if whole:
        lines = dict.fromkeys(line_text(function, sequence.start) for function, sequence in whole)
        words = terms.WHOLE_POWER_AT.of(found.language, places=_some(tuple(lines)))
        cures.append(_Cure(words, found.samples_of(whole)))
    return sorted([*cures, *_fast_forms(found)], key=lambda cure: -cure.samples)


def _fast_forms(found: FoundMath) -> list[_Cure]:
    """What to call or to compile with, where a division does not become a product instead."""
    single = [
        (function, sequence)
        for function, sequence in found.sequences()
        if sequence.kind in FAST.keys() - _BY_CONSTANT and not is_product(function, sequence)
    ]
    # The routine for rare arguments belongs to the sequence that is expanded beside its call.
    routines = (
        helper
        for helper in found.helpers
        if not is_of_doubles(helper) and not (any(found.inline.values()) and is_for_rare(helper))
    )
    if not single and not any(routines):
        return []
    fast = terms.FAST_MATH.of(found.language) + _caveat(single)
    if any(takes_negative_base(function, sequence) for function, sequence in single):
        fast += terms.NO_NEGATIVE_BASE.of(found.language)
    kinds = [*dict.fromkeys(sequence.kind for _, sequence in single)]
    single.sort(key=lambda one: (kinds.index(one[1].kind), _place(one)))
    of = {(sequence.kind, line_text(function, sequence.start)): None for function, sequence in single}
    named = [
        f"{kind} at {place}{_fast(kind, found.language)}"
        for kind, place in of
        if kind != SLOW_PATH or (SINE, place) not in of
    ]
    return [_Cure(f"{fast}: {_some(named)}" if named else fast, found.samples_of(single))]


def _caveat(sequences: Sequence[tuple[Function, CodeSequence]]) -> str:
    """What comes of a quotient that is nearly a whole number and becomes one."""
    off = any(is_made_whole(*one) for one in sequences)
    return " (a quotient that is cut or rounded to an integer may then be one off)" if off else ""


def _place(found: tuple[Function, CodeSequence]) -> tuple[str, int, int]:
    """Where a reader of the source comes to it: copies of a template have their code in any order."""
    function, sequence = found
    entry = function.lines[sequence.start]
    file, line = ("", 0) if entry is None else (entry.location.file, entry.location.line)
    return file, line, sequence.start


def _fast(kind: str, language: Language) -> str:
    return terms.FAST_FORM.of(language, name=FAST[kind]) if kind in FAST else ""


def _some(places: Sequence[str]) -> str:
    """The first places, lines where some are known, and how many more there are."""
    lines = [place for place in places if "0x" not in place]
    shown = (lines or places)[:_SHOWN_PLACES]
    more = len(places) - len(shown)
    listed = ", ".join(shown)
    return f"{listed} and {more} more place{'s' if more > 1 else ''}" if more > 0 else listed
