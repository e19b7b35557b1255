# SPDX-License-Identifier: Apache-2.0
"""The words of constant bank 0 that follow from the launch: block and grid sizes, and known arguments."""

from __future__ import annotations

from gpadvisor.simulator.configuration import SimulationConfig


def parameters_at(arch: str) -> int:
    """Offset of the kernel's parameters in ``c[0x0]``."""
    return 0x380 if _number(arch) >= 100 else 0x210 if _number(arch) >= 90 else 0x160


def block_size_at(arch: str) -> int:
    """Offset of the size of a block in ``c[0x0]``, 4 bytes for each dimension."""
    return 0x360 if _number(arch) >= 100 else 0x0


def _number(arch: str) -> int:
    return int("".join(letter for letter in arch[3:] if letter.isdecimal()) or 0)


def constant_words(arch: str, config: SimulationConfig) -> dict[int, int]:
    """Known 32-bit words by offset in ``c[0x0]``; read from what ptxas compiles for each architecture."""
    block, grid = block_size_at(arch), 0x370 if _number(arch) >= 100 else 0xC
    words = {block + 4 * axis: value for axis, value in enumerate(config.block)}
    words |= {grid + 4 * axis: value for axis, value in enumerate(config.grid)}
    words |= {parameters_at(arch) + offset: value & 0xFFFF_FFFF for offset, value in config.arguments.items()}
    return words
