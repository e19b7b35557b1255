# SPDX-License-Identifier: Apache-2.0
"""Where constant bank 0 holds a launch's sizes and arguments, as ptxas compiles for each architecture."""

from __future__ import annotations

from gpadvisor.model.machine import sm_number


def parameters_at(arch: str) -> int:
    """Offset of the kernel's parameters in ``c[0x0]``."""
    return 0x380 if sm_number(arch) >= 100 else 0x210 if sm_number(arch) >= 90 else 0x160


def block_size_at(arch: str) -> int:
    """Offset of the block's three sizes in ``c[0x0]``."""
    return 0x360 if sm_number(arch) >= 100 else 0x0


def grid_size_at(arch: str) -> int:
    """Offset of the grid's three sizes in ``c[0x0]``."""
    return 0x370 if sm_number(arch) >= 100 else 0xC
