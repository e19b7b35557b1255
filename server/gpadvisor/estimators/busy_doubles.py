# SPDX-License-Identifier: Apache-2.0
"""Double precision in a kernel of floats: where its slow pipe is busy, where floats become doubles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.division_words import first_place
from gpadvisor.estimators.reduced_loads import executions
from gpadvisor.estimators.utilisation import PIPES, measured_loads
from gpadvisor.evidence.double_excursions import (
    DOUBLE_SUM,
    double_excursions,
    has_literals,
    has_number,
    mixes_precision,
)
from gpadvisor.evidence.exact_doubles import exact_doubles
from gpadvisor.evidence.library_code import is_all_librarys
from gpadvisor.evidence.patterns import CodeSequence, is_slow_on, math_sequences
from gpadvisor.evidence.queries import counted, kernel_functions, line_text
from gpadvisor.machine.timing import SLOW_DOUBLES, times_as_slow
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, OpcodeClass, Pipe
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function, FunctionKind

_POW: Final = "__internal_accurate_pow"
_DIVISION: Final = "div"
"""In what is named after a division, which has no form to call."""


_NAMED: Final = 3
_VARIABLES: Final = "keep sums, variables and constants in float where the result bears it"


@dataclass(frozen=True, slots=True)
class _Doubles:
    """Double precision in a kernel that also computes in floats, where its pipe is busy."""

    percent: float  # of the pipe's peak
    sites: tuple[StaticSite, ...]  # one for each line, the most executed first
    literals: tuple[str, ...]  # lines with a number in double precision
    powers: tuple[str, ...]  # lines that call pow()
    math: bool  # whether other math functions are called, in double precision


def busy_doubles(context: KernelContext, functions: tuple[Function, ...]) -> _Doubles | None:
    """What loads the pipe of double precision; None where it is fast, has little to do, or all is double."""
    busy = next((load for load in measured_loads(context) if load.name == PIPES[Pipe.FP64]), None)
    if busy is None or busy.percent < constants.DOUBLES_PERCENT:
        return None
    weights: Counter[str] = Counter()
    first: dict[str, StaticSite] = {}
    literals, powers = dict[str, None](), dict[str, None]()
    mixed = slow = math = False
    counts = executions(context) or {}
    for function in functions:
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        routines = {
            call.index: context.program.functions[call.callee]
            for call in function.calls
            if call.callee is not None
        }
        library = {
            index: sequence.kind for sequence in math_sequences(function) for index in sequence.indices
        }
        for index, instruction in enumerate(function.instructions):
            routine = routines.get(index)
            work = sum(map(_is_double, (instruction,) if routine is None else routine.instructions))
            if not work or (function.lines[index] is None and context.program.has_line_info):
                continue
            place = line_text(function, index)
            depth = len(function.enclosing_loops(index))
            executed = counts.get(function.id)
            weights[place] += work * (int(executed[index]) if executed is not None else _PASSES**depth)
            first.setdefault(place, StaticSite(function=function.id, index=index, detail="double precision"))
            mixed |= mixes_precision(instruction)
            slow |= instruction.info.opclass is OpcodeClass.FLOAT64 and is_slow_on(
                context.machine, instruction
            )
            if routine is not None and _POW in routine.name:
                powers[place] = None
            elif index in library:
                math |= _DIVISION not in library[index]
            elif routine is not None and routine.kind is FunctionKind.MATH_HELPER:
                math |= _DIVISION not in routine.name
            elif has_number(instruction):
                literals[line_text(function, _converted(function, index))] = None
    if not mixed or not slow:
        return None
    order = [place for place, _ in weights.most_common()]
    return _Doubles(
        percent=busy.percent,
        sites=tuple(first[place] for place in order),
        literals=tuple(place for place in order if place in literals and place not in powers),
        powers=tuple(place for place in order if place in powers),
        math=math,
    )


_PASSES: Final = 10
"""What a loop is taken to multiply executions by where nobody counted them: it only orders the lines."""


def _is_double(instruction: Instruction) -> bool:
    """Whether an instruction computes in double precision, or converts to or from it."""
    converts = instruction.info.opclass is OpcodeClass.CONVERSION and "F64" in instruction.modifiers
    return converts or instruction.info.opclass is OpcodeClass.FLOAT64


def _converted(function: Function, index: int) -> int:
    """Where a float becomes the double that an instruction computes with, else the instruction."""
    definitions = sorted(
        definition
        for used in function.instructions[index].uses
        for definition in function.reaching.definitions(index, used)
    )
    lined = (
        position
        for position in definitions
        if function.lines[position] is not None or function.lines[index] is None
    )
    return next(
        (conversion for conversion in lined if function.instructions[conversion].opcode == "F2F"), index
    )


def need_doubles(context: KernelContext) -> str | None:
    """Why floats cannot do what a kernel computes in doubles; None where nothing shows that."""
    counts, exact, total = executions(context) or {}, 0.0, 0.0
    for function in kernel_functions(context.program, context.kernel):
        cut, executed = exact_doubles(function), counts.get(function.id)
        for index, instruction in enumerate(function.instructions):
            if instruction.info.opclass is OpcodeClass.FLOAT64:
                weight = 1.0 if executed is None else float(executed[index])
                total += weight
                exact += weight if index in cut else 0.0
    if not total or exact < constants.NOTABLE * total:
        return None
    return (
        f"{percent(exact / total)} of the double operations make whole numbers that are cut by powers of "
        "two: exact arithmetic, for which a float has too few digits"
    )


def busy_advice(functions: tuple[Function, ...], doubles: _Doubles, language: Language) -> tuple[str, str]:
    """What was found, and what to change."""
    by_id = {function.id: function for function in functions}
    places = [line_text(by_id[site.function], site.index) for site in doubles.sites]
    changes = []
    if doubles.literals:
        changes.append(terms.SINGLE_LITERALS_AT.of(language, places=_list(doubles.literals)))
    if doubles.powers:
        changes.append(terms.POWER_AT.of(language, places=_list(doubles.powers)))
    if doubles.math:
        changes.append(terms.SINGLE_MATH.of(language))
    elif not changes:
        changes.append(_VARIABLES)
    problem = (
        f"The pipe of double precision, which is slow on this GPU, is busy for {percentage(doubles.percent)} "
        f"of the time in a kernel of floats, most of it at {_list(places)}: "
    )
    return problem, f"{', '.join(changes[:-1])}{' and ' if changes[:-1] else ''}{changes[-1]}."


def _list(places: Sequence[str]) -> str:
    more = f" and {counted(len(places) - _NAMED, 'more line')}" if len(places) > _NAMED else ""
    return f"{', '.join(places[:_NAMED])}{more}"


def told_doubles(
    context: KernelContext, functions: tuple[Function, ...]
) -> dict[FunctionId, tuple[CodeSequence, ...]]:
    """Floats that become doubles and come back, but for those of a library's own code.

    Without samples, where doubles are fast, only by literals: who declares a variable double means it.
    """
    meant = context.blame is None and times_as_slow(context.program.arch) < SLOW_DOUBLES
    return {
        function.id: tuple(
            double
            for double in double_excursions(function)
            if not is_all_librarys(function, double.indices) and (not meant or has_literals(function, double))
        )
        for function in functions
    }


def double_advice(
    functions: tuple[Function, ...],
    doubles: dict[FunctionId, tuple[CodeSequence, ...]],
    language: Language,
) -> tuple[str, str]:
    """What was found of conversions to double and back, and what to change."""
    all_sequences = [sequence for sequences in doubles.values() for sequence in sequences]
    place = first_place(functions, doubles)
    if all(sequence.kind == DOUBLE_SUM for sequence in all_sequences):
        return (
            f"Floats are added up in a double ({place}): ",
            "add them up in a float if the sum may lose digits, or in several that are added up at the end.",
        )
    lines = {line_text(function, double.start) for function in functions for double in doubles[function.id]}
    by_literals = any(
        has_literals(function, double) for function in functions for double in doubles[function.id]
    )
    cure = terms.SINGLE_LITERALS_AND_MATH.of(language) if by_literals else _VARIABLES
    return (
        (
            f"{counted(len(lines), 'line')} convert{'' if len(lines) > 1 else 's'} float to double and back "
            f"({place}): "
        ),
        f"{cure}.",
    )
