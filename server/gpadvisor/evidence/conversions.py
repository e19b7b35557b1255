# SPDX-License-Identifier: Apache-2.0
"""Conversions by what would spare them: sums of integers, numbers of few bits, and factors made half."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_shared
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.program import Function

_SHORT: Final = {"U8": 1, "U16": 2}
"""Bytes of a number that the fraction of a float holds, by the modifier that tells it."""
_HALF_ARITHMETIC: Final = frozenset({"HFMA2", "HMUL2", "HADD2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversions:
    """Conversions of a function that the pipe of special functions does, by index."""

    summed: tuple[int, ...]  # whose floats are only added up
    sums: tuple[int, ...]  # additions that nothing is added to, each the last of its sum
    short: tuple[int, ...]  # others, of unsigned numbers of 8 or 16 bits
    from_shared: int | None  # bytes of the narrowest of the short ones, where all are read from shared memory


def halved_factors(function: Function) -> dict[int, int]:
    """Conversions of a loaded float to half, for nothing but half arithmetic, each with a load of it."""
    code, definitions = function.instructions, function.reaching.definitions
    conversions = {
        index
        for index, instruction in enumerate(code)
        if instruction.opcode == "F2F"
        and instruction.modifiers[:2] == ("F16", "F32")
        and instruction.info.pipe is Pipe.XU
    }
    readers = _readers(function) if conversions else {}
    # What else a register may hold, where a guard kept a load or conversion back, is not what is meant.
    only = {
        index: {code[reader].opcode for reader, sources in readers.get(index, ()) if sources <= conversions}
        for index in conversions
    }
    return {
        index: loads[0]
        for index in sorted(conversions)
        if only[index] and only[index] <= _HALF_ARITHMETIC
        for loads in (
            [
                definition
                for used in code[index].uses
                for definition in definitions(index, used)
                if code[definition].info.opclass is OpcodeClass.LOAD
            ],
        )
        if loads
    }


def _readers(function: Function) -> Mapping[int, list[tuple[int, frozenset[int]]]]:
    """Who reads what each instruction writes, with all that may have written what is read."""
    readers: defaultdict[int, list[tuple[int, frozenset[int]]]] = defaultdict(list)
    for index, instruction in enumerate(function.instructions):
        for used in set(instruction.uses):
            sources = frozenset(function.reaching.definitions(index, used))
            for source in sources:
                readers[source].append((index, sources))
    return readers


@lru_cache(maxsize=64)
def conversions(function: Function) -> Conversions:
    """The conversions from integer to float of a function."""
    code, definitions = function.instructions, function.reaching.definitions
    converted = {
        index
        for index, instruction in enumerate(code)
        if instruction.opcode == "I2F" and instruction.info.pipe is Pipe.XU
    }
    converted = {index for index in converted if "F64" not in code[index].modifiers}
    if not converted:
        return Conversions(summed=(), sums=(), short=(), from_shared=None)
    readers = _readers(function)
    adds = {reader for index in converted for reader, _ in readers[index] if code[reader].opcode == "FADD"}
    terms = {
        addition: sum(any(by == addition for by, _ in readers[source]) for source in converted | adds)
        for addition in adds
    }
    # One number alone, to which no other comes, is no sum.
    adds = {
        addition
        for addition in adds
        if terms[addition] > 1 or any(after in adds for after, _ in readers[addition])
    }
    # Where a guarded addition may not have happened, what comes behind it reads the converted number itself.
    summed = {
        index
        for index in converted
        if any(reader in adds for reader, _ in readers[index])
        and all(reader in adds or sources & adds for reader, sources in readers[index])
    }
    adds = {reader for index in summed for reader, _ in readers[index] if reader in adds}
    final_adds = {
        addition
        for addition in adds
        if all(after == addition or after not in adds for after, _ in readers[addition])
    }
    short = [
        index for index in sorted(converted - summed) if not _SHORT.keys().isdisjoint(code[index].modifiers)
    ]
    read = [
        definition for index in short for used in code[index].uses for definition in definitions(index, used)
    ]
    shared = bool(read) and all(is_shared(code[definition]) for definition in read)
    widths = [bytes_ for index in short for name, bytes_ in _SHORT.items() if name in code[index].modifiers]
    return Conversions(
        summed=tuple(sorted(summed)),
        sums=tuple(sorted(final_adds)),
        short=tuple(short),
        from_shared=min(widths) if shared else None,
    )
