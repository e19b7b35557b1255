# SPDX-License-Identifier: Apache-2.0
"""Advice that names what the source says: the literal, the division, the pragma that is already there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gpadvisor.model.advice import KernelAdvice, ScopeKind, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.source.patterns import CudaSource, Token

_OTHER_LANGUAGES: Final = (".py", ".pyi", ".pyx", ".jl")
_SHOWN: Final = 4
_MAX_TOKEN: Final = 60
_LINES: Final = 8

Sources = Callable[[str], CudaSource | None]


def name_source_tokens(kernels: Sequence[KernelAdvice], texts: Mapping[str, str]) -> tuple[KernelAdvice, ...]:
    """The kernels with a sentence added to each suggestion that the source has something to say about.

    Args:
        kernels: Advice.
        texts: Sources by the path that the advice uses, as they were when the code was built.
    """
    parsed: dict[str, CudaSource | None] = {}

    def source(path: str) -> CudaSource | None:
        if path not in parsed:
            known = path in texts and not path.lower().endswith(_OTHER_LANGUAGES)
            parsed[path] = CudaSource(texts[path]) if known else None
        return parsed[path]

    return tuple(
        replace(kernel, suggestions=tuple(_named(suggestion, source) for suggestion in kernel.suggestions))
        for kernel in kernels
    )


def _named(suggestion: Suggestion, source: Sources) -> Suggestion:
    ask = _QUESTIONS.get(suggestion.code)
    sentence = "" if ask is None else ask(suggestion, source)
    if not sentence:
        return suggestion
    advice = suggestion.advice.rstrip()
    stop = "" if not advice or advice.endswith((".", ":", "!", "?")) else "."
    return replace(suggestion, advice=f"{advice}{stop} {sentence}".strip())


def _places(suggestion: Suggestion) -> list[SourceLocation]:
    """Lines of the hotspots, heaviest first, each once."""
    found = [
        code.location
        for hotspot in suggestion.hotspots
        for code in (hotspot.definition, hotspot.use)
        if code is not None and code.location is not None
    ]
    return list(dict.fromkeys(found))[:_LINES]


def _opcodes(suggestion: Suggestion) -> set[str]:
    ends = (code for hotspot in suggestion.hotspots for code in (hotspot.definition, hotspot.use))
    return {part for code in ends if code is not None for part in code.opcode.split(".")}


def _arithmetic(suggestion: Suggestion, source: Sources) -> str:
    """Strength reduction: the double literals and divisions on the lines of the hotspots."""
    opcodes = _opcodes(suggestion)
    parts = []
    if opcodes & {"F64", "DADD", "DMUL", "DFMA", "DSETP"}:
        literals = _tokens(suggestion, source, CudaSource.double_literals)
        parts.append(_list("double literal", "double literals", literals))
    if opcodes & {"I2F", "F2I", "RCP", "RCP64H"}:
        parts.append(_list("division", "divisions", _tokens(suggestion, source, CudaSource.divisions)))
    return " ".join(part for part in parts if part)


def _tokens(
    suggestion: Suggestion, source: Sources, query: Callable[[CudaSource, int], tuple[Token, ...]]
) -> list[str]:
    found = []
    for place in _places(suggestion):
        text = source(place.file)
        tokens = () if text is None else query(text, place.line)
        found += [f"{_short(token.text)} (line {token.line})" for token in tokens if token.line == place.line]
    return list(dict.fromkeys(found))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TOKEN else text[: _MAX_TOKEN - 3] + "..."


def _list(one: str, several: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"The source has the {one if len(names) == 1 else several} {', '.join(names[:_SHOWN])}{more}."


def _pragma(suggestion: Suggestion, source: Sources) -> str:
    """Loop unrolling: what the loop's pragma says already."""
    place = suggestion.scope.location
    text = None if place is None or suggestion.scope.kind is not ScopeKind.LOOP else source(place.file)
    loop = None if text is None or place is None else text.loop(place.line)
    if loop is None or loop.unroll is None:
        return ""
    return f"The loop has #pragma unroll {loop.unroll}".rstrip() + " already."


def _aliasing(suggestion: Suggestion, source: Sources) -> str:
    """Code reordering: pointers that the compiler must assume to overlap."""
    for place in _places(suggestion):
        text = source(place.file)
        kernel = None if text is None else text.kernel(place.line)
        if kernel is not None:
            names = list(kernel.unrestricted)
            return "" if len(names) < 2 else f"Pointers without __restrict__: {', '.join(names[:8])}."
    return ""


def _bounds(suggestion: Suggestion, source: Sources) -> str:
    """Thread and block increase: the launch bounds that are there."""
    place = suggestion.scope.location
    text = None if place is None else source(place.file)
    kernel = None if text is None or place is None else text.kernel(place.line)
    if kernel is None or kernel.launch_bounds is None:
        return ""
    return f"The kernel has __launch_bounds__({_short(kernel.launch_bounds)}) already."


_QUESTIONS: Final[Mapping[str, Callable[[Suggestion, Sources], str]]] = {
    "GPA102": _arithmetic,
    "GPA201": _pragma,
    "GPA202": _aliasing,
    "GPA301": _bounds,
    "GPA302": _bounds,
}
