# SPDX-License-Identifier: Apache-2.0
"""The words of constant bank 0 that follow from the launch: sizes, known arguments, the stack's end."""

from __future__ import annotations

from typing import Final

from gpadvisor.machine import code_form
from gpadvisor.simulator.configuration import SimulationConfig

_STACK_END: Final = 0xFFFD00
"""Some place: what counts is that local arrays lie at the same one in every thread."""


def constant_words(arch: str, config: SimulationConfig) -> dict[int, int]:
    """Known 32-bit words by offset in ``c[0x0]``."""
    words = {code_form(arch).block_size_at + 4 * axis: value for axis, value in enumerate(config.block)}
    words[code_form(arch).stack_at] = _STACK_END
    words |= {code_form(arch).grid_size_at + 4 * axis: value for axis, value in enumerate(config.grid)}
    words |= {
        code_form(arch).parameters_at + offset: value & 0xFFFF_FFFF
        for offset, value in config.arguments.items()
    }
    return words
