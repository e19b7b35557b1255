# SPDX-License-Identifier: Apache-2.0
"""Scheduling control codes and guard bits from the 128-bit words, sm_70 to sm_121 (GPA section IV)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.instruction import ControlCode

CONTROL_SHIFT = 41  # bit 105 of the instruction is bit 41 of its upper word
CONTROL_MASK = (1 << 21) - 1
_LAST_BARRIER = 5  # 7 is "none", 6 is not used


def code_words(code: bytes) -> NDArray[np.uint64]:
    """The code as rows of (lower word, upper word)."""
    return np.frombuffer(code, dtype="<u8").reshape(-1, 2)


def control_fields(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Bits 105 to 125 of every instruction."""
    return ((words[:, 1] >> np.uint64(CONTROL_SHIFT)) & np.uint64(CONTROL_MASK)).astype(np.uint32)


def guard_fields(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Bits 12 to 15 of every instruction: predicate index, then the negation; 7 is PT, 15 is !PT."""
    return ((words[:, 0] >> np.uint64(12)) & np.uint64(15)).astype(np.uint8)


def control_code(field: int) -> ControlCode:
    """The control code of one 21-bit field."""
    write, read = field >> 5 & 7, field >> 8 & 7
    return ControlCode(
        stall_cycles=field & 15,
        yield_flag=bool(field >> 4 & 1),
        write_barrier=write if write <= _LAST_BARRIER else None,
        read_barrier=read if read <= _LAST_BARRIER else None,
        wait_mask=field >> 11 & 63,
        reuse=field >> 17 & 15,
    )


def control_codes(words: NDArray[np.uint64]) -> list[ControlCode]:
    """The control code of every instruction; equal ones share one value."""
    distinct, inverse = np.unique(control_fields(words), return_inverse=True)
    codes = [control_code(int(value)) for value in distinct]
    return [codes[index] for index in inverse.tolist()]
