# SPDX-License-Identifier: Apache-2.0
"""Which parameters are pointers, where no arguments are stated: those that addresses are made of.

Where an array begins matters to no pattern of accesses as long as it is aligned as allocations are: the
pattern follows from the launch although the pointer does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpadvisor.model.program import Function
from gpadvisor.simulator.configuration import POINTER_BASE, POINTER_STEP
from gpadvisor.simulator.meanings import IMMEDIATE, Meaning
from gpadvisor.simulator.slices import SectionGraph, addends, relevance

_MARK: Final = 1 << 40
"""Stands for the word of a parameter, beside its offset; no word has this bit."""


def pointer_words(functions: Sequence[Function], constants: Mapping[int, int], first: int) -> dict[int, int]:
    """Words for the parameters of a section that are pointers, each with a place of its own.

    Args:
        functions: of the section.
        constants: words of the constant bank that follow from the launch.
        first: offset of the parameters in the bank.
    """

    def words(offset: int) -> int | None:
        return constants.get(offset) if offset < first or offset in constants else _MARK | offset

    low = _marked(addends(functions, words, high=False))
    high = _marked(addends(functions, words, high=True))
    # One that is compared, as the end of a range is, decides how often a loop runs: that is not known.
    compared = _marked(relevance(SectionGraph(functions), words, addresses=False).meanings.values())
    offsets = [
        offset
        for offset in sorted(low)
        if offset % 8 == 0 and offset + 4 in high and not {offset, offset + 4} & compared
    ]
    places = {offset: POINTER_BASE + index * POINTER_STEP for index, offset in enumerate(offsets)}
    return {offset: place & 0xFFFF_FFFF for offset, place in places.items()} | {
        offset + 4: place >> 32 for offset, place in places.items()
    }


def _marked(meanings: Iterable[Meaning]) -> set[int]:
    """Offsets of the parameters that instructions read."""
    return {
        source.value & ~_MARK
        for meaning in meanings
        for source in meaning.sources
        if source.kind == IMMEDIATE and source.value & _MARK
    }
