# SPDX-License-Identifier: Apache-2.0
"""The words of constant bank 0 that follow from the launch: block and grid sizes, and known arguments."""

from __future__ import annotations

from gpadvisor.simulator.configuration import SimulationConfig


def constant_words(arch: str, config: SimulationConfig) -> dict[int, int]:
    """Known 32-bit words by offset in ``c[0x0]``; read from what ptxas compiles for each architecture."""
    number = int("".join(letter for letter in arch[3:] if letter.isdecimal()) or 0)
    block, grid, parameters = (0x0, 0xC, 0x160) if number < 90 else (0x0, 0xC, 0x210)
    if number >= 100:
        block, grid, parameters = 0x360, 0x370, 0x380
    words = {block + 4 * axis: value for axis, value in enumerate(config.block)}
    words |= {grid + 4 * axis: value for axis, value in enumerate(config.grid)}
    words |= {parameters + offset: value & 0xFFFF_FFFF for offset, value in config.arguments.items()}
    return words
