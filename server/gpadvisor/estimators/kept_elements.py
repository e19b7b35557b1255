# SPDX-License-Identifier: Apache-2.0
"""What to say of elements that the passes of a loop write to memory, where the last would do."""

from __future__ import annotations

from typing import Final

from gpadvisor.evidence.accumulators import kept_in_loops, kept_in_passes
from gpadvisor.evidence.queries import line_text
from gpadvisor.model.program import Function

_UNLESS: Final = "(not if it is volatile, or read at another index that may be the same)"


def in_register(function: Function, store: int) -> str:
    """How an element stays in a register; of an unrolled loop, whose passes are stores behind each other.

    A loop around that one may go on to another element.
    """
    place = line_text(function, store)
    stores = next((run for run in kept_in_passes(function) if store in run), ())
    if not stores or store in kept_in_loops(function):
        return (
            f"keep the element at {place} in a local variable and store it behind the loop: it is the same "
            f"in every pass {_UNLESS}."
        )
    return (
        f"keep the element at {place} in a local variable and store it behind the loop that is unrolled "
        f"there: {len(stores)} stores behind each other write it {_UNLESS}."
    )
