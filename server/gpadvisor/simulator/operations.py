# SPDX-License-Identifier: Apache-2.0
"""The evaluator's operations as the numbers that compiled code compares; ``Op`` says what each one does."""

from __future__ import annotations

from typing import Final

from gpadvisor.simulator.meanings import Op, Special

UNKNOWN: Final = Op.UNKNOWN.value
ADD: Final = Op.ADD.value
MUL_ADD: Final = Op.MUL_ADD.value
MUL_ADD_WIDE: Final = Op.MUL_ADD_WIDE.value
MUL_ADD_HIGH: Final = Op.MUL_ADD_HIGH.value
LOGIC: Final = Op.LOGIC.value
SHIFT: Final = Op.SHIFT.value
SHIFT_ADD: Final = Op.SHIFT_ADD.value
SHIFT_ADD_HIGH: Final = Op.SHIFT_ADD_HIGH.value
COMPARE: Final = Op.COMPARE.value
SELECT: Final = Op.SELECT.value
MINIMUM: Final = Op.MINIMUM.value
PREDICATE_LOGIC: Final = Op.PREDICATE_LOGIC.value
SPECIAL: Final = Op.SPECIAL.value
ABSOLUTE: Final = Op.ABSOLUTE.value
PERMUTE: Final = Op.PERMUTE.value
BROADCAST: Final = Op.BROADCAST.value
VOTE: Final = Op.VOTE.value
ADD_WIDE: Final = Op.ADD_WIDE.value
ADD_MINIMUM: Final = Op.ADD_MINIMUM.value
SELECT_WIDE: Final = Op.SELECT_WIDE.value
FLOAT_UP: Final = Op.FLOAT_UP.value
RECIPROCAL: Final = Op.RECIPROCAL.value
TRUNCATE: Final = Op.TRUNCATE.value

FIRST_BLOCK_INDEX: Final = Special.CTAID_X.value
LAST_BLOCK_INDEX: Final = Special.CTAID_Z.value
