# SPDX-License-Identifier: Apache-2.0
"""The words of constant bank 0 that follow from the launch: block and grid sizes, and known arguments."""

from __future__ import annotations

from gpadvisor.machine import code_form
from gpadvisor.simulator.configuration import SimulationConfig


def constant_words(arch: str, config: SimulationConfig) -> dict[int, int]:
    """Known 32-bit words by offset in ``c[0x0]``."""
    words = {code_form(arch).block_size_at + 4 * axis: value for axis, value in enumerate(config.block)}
    words |= {code_form(arch).grid_size_at + 4 * axis: value for axis, value in enumerate(config.grid)}
    words |= {
        code_form(arch).parameters_at + offset: value & 0xFFFF_FFFF
        for offset, value in config.arguments.items()
    }
    return words
