# SPDX-License-Identifier: Apache-2.0
"""What to do about exact library math, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from gpadvisor.estimators import terms
from gpadvisor.estimators.fast_forms import FAST
from gpadvisor.evidence.library_math import (
    POW,
    QUOTIENTS,
    Divisor,
    becomes_whole,
    divisor_of,
    has_broken_exponent,
    is_for_rare,
    is_of_doubles,
    routine_name,
)
from gpadvisor.evidence.patterns import DIVISION_BY_CONSTANT, FLOAT_BY_CONSTANT, CodeSequence
from gpadvisor.evidence.queries import line_text
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function

Inline: TypeAlias = Mapping[FunctionId, Sequence[CodeSequence]]
"""Math that is expanded in place, by function."""

_SHOWN_PLACES: Final = 2
_BY_CONSTANT: Final = frozenset({DIVISION_BY_CONSTANT, FLOAT_BY_CONSTANT})
_RECIPROCALS: Final = {
    Divisor.NUMBER: "multiply by the reciprocal of the constant at",
    Divisor.SAME: "multiply by the reciprocal of the parameter, passed as one of its own, at",
    Divisor.KEPT: "take one reciprocal for all that is divided by the same value at",
}


def math_advice(
    functions: Sequence[Function], inline: Inline, helpers: Sequence[Function], language: Language
) -> str:
    """What was found, and what to do about it."""
    kinds: dict[str, Counter[str]] = {}
    for function in functions:
        for sequence in inline.get(function.id, ()):
            kinds.setdefault(sequence.kind, Counter())[line_text(function, sequence.start)] += 1
    parts = []
    for kind, places in sorted(kinds.items(), key=lambda entry: (-sum(entry[1].values()), entry[0])):
        where = _some([place for place, _ in places.most_common()])
        parts.append(f"{kind} at {where}" + _fast(kind, language))
    own_routines = sorted(
        {routine_name(helper) for helper in helpers if not kinds or not is_for_rare(helper)}
    )
    if own_routines:
        parts.append("out-of-line " + ", ".join(own_routines))
    cure = math_cure(functions, inline, helpers, language)
    return f"Library math in the kernel: {'; '.join(parts)}. To try: {cure}."


def math_cure(
    functions: Sequence[Function], inline: Inline, helpers: Sequence[Function], language: Language
) -> str:
    """What to do about the kinds of library math that were found."""
    cures = concrete_cures(functions, inline, helpers, language)
    kinds = {sequence.kind for sequences in inline.values() for sequence in sequences}
    doubles = any("double" in kind for kind in kinds - _BY_CONSTANT)
    if doubles or (not kinds & _BY_CONSTANT and any(is_of_doubles(helper) for helper in helpers)):
        cures.append("use single precision where the result bears it (doubles have no fast forms)")
    return "; ".join(cures)


def concrete_cures(
    functions: Sequence[Function], inline: Inline, helpers: Sequence[Function], language: Language
) -> list[str]:
    """Changes that keep the precision of the program's types; empty where there are none."""
    cures = []
    sequences = [(function, sequence) for function in functions for sequence in inline.get(function.id, ())]
    kinds = {sequence.kind for _, sequence in sequences}
    cut = [
        line_text(function, sequence.start)
        for function, sequence in sequences
        if sequence.kind in QUOTIENTS and becomes_whole(function, sequence)
    ]
    single = kinds & FAST.keys() - _BY_CONSTANT
    if cut:
        cures.append(f"divide whole numbers at {cut[0]}, where the quotient becomes one")
    # The routine for rare arguments belongs to the sequence that is expanded beside its call.
    if single or any(not is_of_doubles(helper) and not (kinds and is_for_rare(helper)) for helper in helpers):
        fast = terms.FAST_MATH.of(language)
        where = Counter(
            (line_text(function, sequence.start), sequence.kind) for function, sequence in sequences
        )
        of = dict.fromkeys(
            f"{kind} at {place}{_fast(kind, language)}"
            for (place, kind), _ in where.most_common()
            if kind in single
        )
        if "powf" in single:
            fast += terms.NO_NEGATIVE_BASE.of(language)
        cures.append(f"{fast}: {_some(tuple(of))}" if of else fast)
    divisors: dict[Divisor | None, dict[str, None]] = {}
    for function, sequence in sequences:
        divisors.setdefault(divisor_of(function, sequence), {})[line_text(function, sequence.start)] = None
    cures += [f"{words} {_some(tuple(divisors[by]))}" for by, words in _RECIPROCALS.items() if by in divisors]
    powers = {helper.id: helper for helper in helpers if POW in helper.name}
    if any(
        call.callee in powers and not has_broken_exponent(function, call.index, powers[call.callee])
        for function in functions
        for call in function.calls
    ):
        cures.append(f"write {terms.POWER.of(language)} with a small whole exponent as a product")
    return cures


def _fast(kind: str, language: Language) -> str:
    return terms.FAST_FORM.of(language, name=FAST[kind]) if kind in FAST else ""


def shared_divisor(functions: Sequence[Function], inline: Inline) -> tuple[FunctionId, int] | None:
    """The first division whose reciprocal is told."""
    return next(
        (
            (function.id, sequence.start)
            for by in _RECIPROCALS
            for function in functions
            for sequence in inline.get(function.id, ())
            if divisor_of(function, sequence) is by
        ),
        None,
    )


def _some(places: Sequence[str]) -> str:
    """The first places, lines where some are known, and how many more there are."""
    lines = [place for place in places if "0x" not in place]
    shown = (lines or places)[:_SHOWN_PLACES]
    more = len(places) - len(shown)
    listed = ", ".join(shown)
    return f"{listed} and {more} more place{'s' if more > 1 else ''}" if more > 0 else listed
