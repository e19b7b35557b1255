# SPDX-License-Identifier: Apache-2.0
"""Advice that names what the source says: the literal, the division, the pragma that is already there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from gpadvisor.model.advice import Category, KernelAdvice, ScopeKind, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import line_mark, marked
from gpadvisor.source.facts import HASH_SUFFIXES, SourceFacts, Token

_SHOWN: Final = 4
_LINES: Final = 8

FactsByPath: TypeAlias = Callable[[str], SourceFacts | None]
"""The facts of a source by the path that the advice uses; None where there are none."""
Naming: TypeAlias = Callable[[Suggestion, FactsByPath], str | None]
"""The sentence that a source adds to a suggestion, empty where it has nothing to say; None where it makes the
change already, which makes a note of the suggestion.
"""


def name_source_tokens(
    kernels: Sequence[KernelAdvice], sources: FactsByPath, rules: Mapping[str, Naming]
) -> tuple[KernelAdvice, ...]:
    """The kernels with a sentence added to each suggestion that the source has something to say about.

    Args:
        kernels: Advice.
        sources: Facts of the sources as they were when the code was built.
        rules: What a rule's advice names of a source, by its code.
    """
    return tuple(_named_in(kernel, sources, rules) for kernel in kernels)


def _named_in(kernel: KernelAdvice, sources: FactsByPath, rules: Mapping[str, Naming]) -> KernelAdvice:
    told = [(one, _sentence(one, sources, rules)) for one in kernel.suggestions]
    noted = [one for one, sentence in told if sentence is None]
    return replace(
        kernel,
        suggestions=tuple(_named(one, sentence) for one, sentence in told if sentence is not None),
        notes=(*(_named(note, _sentence(note, sources, rules) or "") for note in kernel.notes), *noted),
    )


def _sentence(suggestion: Suggestion, sources: FactsByPath, rules: Mapping[str, Naming]) -> str | None:
    ask = rules.get(suggestion.code)
    return "" if ask is None else ask(suggestion, sources)


def files_asked_about(kernels: Sequence[KernelAdvice], rules: Mapping[str, Naming]) -> set[str]:
    """The files whose facts ``name_source_tokens`` would look at."""
    paths: set[str] = set()

    def note(path: str) -> None:
        paths.add(path)

    name_source_tokens(kernels, note, rules)
    return {path for path in paths if not path.lower().endswith(HASH_SUFFIXES)}


def _named(suggestion: Suggestion, sentence: str) -> Suggestion:
    if not sentence:
        return suggestion
    # Without a figure a change of the launch is told once for all kernels that it holds for.
    shared = suggestion.category is Category.PARALLEL and suggestion.speedup is None
    cure = _with(suggestion.cure, sentence) if suggestion.cure and not shared else suggestion.cure
    return replace(suggestion, advice=_with(suggestion.advice, sentence), cure=cure)


def _with(words: str, sentence: str) -> str:
    text = marked(words).rstrip()
    stop = "" if not text or text.endswith((".", ":", "!", "?")) else "."
    return f"{text}{stop} {sentence}".strip()


def _places(suggestion: Suggestion) -> list[SourceLocation]:
    """Lines of the hotspots, heaviest first, each once."""
    locations = [
        code.location
        for hotspot in suggestion.hotspots
        for code in (hotspot.definition, hotspot.use)
        if code is not None and code.location is not None
    ]
    return list(dict.fromkeys(locations))[:_LINES]


def _opcodes(suggestion: Suggestion) -> set[str]:
    ends = (code for hotspot in suggestion.hotspots for code in (hotspot.definition, hotspot.use))
    return {part for code in ends if code is not None for part in code.opcode.split(".")}


def name_arithmetic(suggestion: Suggestion, source: FactsByPath) -> str:
    """Strength reduction: the double literals and divisions on the lines of the hotspots."""
    opcodes = _opcodes(suggestion)
    parts = []
    if opcodes & {"F64", "DADD", "DMUL", "DFMA", "DSETP"}:
        literals = _tokens(suggestion, source, lambda facts: facts.double_literals)
        parts.append(_list("double literal", "double literals", literals))
    if opcodes & {"I2F", "F2I", "RCP", "RCP64H"}:
        divisions = _tokens(suggestion, source, lambda facts: facts.divisions)
        parts.append(_list("division", "divisions", divisions))
    return " ".join(part for part in parts if part)


def _tokens(
    suggestion: Suggestion, source: FactsByPath, query: Callable[[SourceFacts], tuple[Token, ...]]
) -> list[str]:
    described = []
    for place in _places(suggestion):
        facts = source(place.file)
        tokens = () if facts is None else query(facts)
        described += [_on_line(token, place.file) for token in tokens if token.line == place.line]
    return list(dict.fromkeys(described))


def _on_line(token: Token, file: str) -> str:
    return f"{token.text} (line {line_mark(SourceLocation(file, token.line), with_file=False)})"


def _list(singular: str, several: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"The source has the {singular if len(names) == 1 else several} {', '.join(names[:_SHOWN])}{more}."


def name_pragma(suggestion: Suggestion, source: FactsByPath) -> str | None:
    """Loop unrolling: what a loop's pragma says already; without samples, of all loops that are named."""
    place = suggestion.scope.location
    if suggestion.scope.kind is not ScopeKind.LOOP:
        pragmas = [_pragma_around(place, source) for place in _places(suggestion)]
        if pragmas and all(pragmas) and not any(map(_FORBIDS.match, pragmas)):
            return None
        found = dict.fromkeys(filter(None, pragmas))
        return f"There is already {', '.join(found)}." if found else ""
    facts = None if place is None else source(place.file)
    loop = None if facts is None or place is None else facts.loop(place.line)
    if loop is None or loop.unroll is None:
        return ""
    if loop.unroll.strip("() ") == "1":
        return "#pragma unroll 1 there forbids it now."
    return f"The loop has #pragma unroll {loop.unroll}".rstrip() + " already."


_FORBIDS: Final = re.compile(r"#pragma unroll\s*\(?\s*1\b")


def _pragma_around(place: SourceLocation, source: FactsByPath) -> str:
    """The pragma of the innermost loop that a line is in; empty where it has none."""
    facts = source(place.file)
    around = [] if facts is None else [one for one in facts.loops if one.line <= place.line <= one.last_line]
    loop = max(around, key=lambda one: one.line, default=None)
    if loop is None or loop.unroll is None:
        return ""
    line = line_mark(SourceLocation(place.file, loop.line))
    return f"{f'#pragma unroll {loop.unroll}'.rstrip()} at {line}"


def name_pointers(suggestion: Suggestion, source: FactsByPath) -> str | None:
    """Code reordering: pointers that the compiler must assume to overlap, where the advice is about them."""
    if Remedy.RESTRICT not in suggestion.remedies:
        return ""
    for place in _places(suggestion):
        facts = source(place.file)
        kernel = None if facts is None else facts.kernel(place.line)
        if kernel is None:
            continue
        names = kernel.unrestricted
        if len(names) > 1:
            return f"Pointers without __restrict__: {', '.join(names)}."
        # One alone overlaps with none of those that are marked.
        marked_ones = sum("*" in kind for kind in kernel.parameters or ()) - len(names)
        return None if marked_ones > 0 and suggestion.remedies == (Remedy.RESTRICT,) else ""
    return ""


def name_launch(suggestion: Suggestion, source: FactsByPath) -> str:
    """Thread and block increase: where the launch is written, and the launch bounds that are there."""
    place = suggestion.scope.location
    facts = None if place is None else source(place.file)
    if facts is None or place is None:
        return ""
    kernel = facts.kernel(place.line)
    bounds = None if kernel is None else kernel.launch_bounds
    name = suggestion.scope.name.partition("(")[0].partition("<")[0].rpartition(" ")[2].rpartition("::")[2]
    launch = next((launch_place for launch_place in facts.launches if launch_place.kernel == name), None)
    parts = []
    if launch is not None:
        sizes = " and ".join(_on_line(size, place.file) for size in launch.sizes)
        where = line_mark(SourceLocation(place.file, launch.line))
        parts.append(f"It is launched at {where}" + (f" with {sizes}." if sizes else "."))
        parts += [f"{name} sizes its shared arrays, too: both change with it." for name in launch.tile]
    if bounds is not None:
        parts.append(f"The kernel has __launch_bounds__({bounds}) already.")
    return " ".join(parts)


def name_parameter(suggestion: Suggestion, source: FactsByPath) -> str:
    """Register reuse: the type of the parameter that is copied, where one alone can be."""
    place = suggestion.scope.location
    facts = None if place is None else source(place.file)
    kernel = None if facts is None or place is None else facts.kernel(place.line)
    if kernel is None or kernel.parameters is None or Remedy.GRID_CONSTANT not in suggestion.remedies:
        return ""
    types = {name for name in kernel.parameters if not name.endswith("*") and not _NUMBER.search(name)}
    return f"It is the parameter of type {types.pop()}." if len(types) == 1 else ""


_NUMBER: Final = re.compile(r"\b(?:bool|char|short|int|long|unsigned|float|double|half|\w+_t)\d?$")
"""A type that holds no array."""


def name_tile(suggestion: Suggestion, source: FactsByPath) -> str:
    """Data reuse: the constant that several results per thread take apart, where block and tile share one."""
    place = suggestion.scope.location
    facts = None if place is None else source(place.file)
    kernel = None if facts is None or place is None else facts.kernel(place.line)
    if place is None or facts is None or kernel is None or Remedy.SEVERAL_RESULTS not in suggestion.remedies:
        return ""
    name = kernel.name.rpartition("::")[2]
    launch = next((launch_place for launch_place in facts.launches if launch_place.kernel == name), None)
    if launch is None or not launch.tile:
        return ""
    (size, *_) = (size for size in launch.sizes if size.text in launch.tile)
    return f"{_on_line(size, place.file)} sizes the block and its tiles: they need a constant each then."
