# SPDX-License-Identifier: Apache-2.0
"""The words of constant bank 0 that follow from the launch: block and grid sizes, and known arguments."""

from __future__ import annotations

from gpadvisor.analyzer.constants import block_size_at, grid_size_at, parameters_at
from gpadvisor.simulator.configuration import SimulationConfig


def constant_words(arch: str, config: SimulationConfig) -> dict[int, int]:
    """Known 32-bit words by offset in ``c[0x0]``."""
    words = {block_size_at(arch) + 4 * axis: value for axis, value in enumerate(config.block)}
    words |= {grid_size_at(arch) + 4 * axis: value for axis, value in enumerate(config.grid)}
    words |= {parameters_at(arch) + offset: value & 0xFFFF_FFFF for offset, value in config.arguments.items()}
    return words
