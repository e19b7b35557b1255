# SPDX-License-Identifier: Apache-2.0
"""``python -m gpadvisor.simulator``: makes the machine code of the inner loop, unless it is there."""

from __future__ import annotations

import numpy as np

from gpadvisor.simulator import state
from gpadvisor.simulator.engine import run
from gpadvisor.simulator.lowered import Lowered, empty_code, empty_slice, packed


def _arguments() -> tuple[object, ...]:
    """A launch of nothing: what counts is of which types it is."""
    lowered = Lowered(
        code=empty_code(1), slice=empty_slice(1, 1), entry=0, functions=(), instructions={}, decisions={},
        slots=1, flags=1, counters=1, notes=(), unknown={},
    )  # fmt: skip
    whole, real = np.ones(state.PARAMETERS, dtype=np.int64), np.ones(state.REALS)
    machine = state.empty_machine(lowered, whole, real, np.zeros(1, dtype=np.int64), 1)
    values, results = state.empty_values(lowered, 1), state.empty_results(lowered)
    return packed(lowered.code), lowered.slice, machine, values, results, 1


def loop() -> bytes:
    """The machine code of the inner loop, which is made and kept where there is none."""
    return run.prepare(*_arguments())  # type: ignore[attr-defined, no-any-return] # a NativeFunction, typed as what it runs


if __name__ == "__main__":
    loop()
