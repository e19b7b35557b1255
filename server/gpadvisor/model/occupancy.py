# SPDX-License-Identifier: Apache-2.0
"""How many blocks and warps an SM holds of a launch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Theoretical and achieved occupancy, as shares of the SM's warps."""

    theoretical: float | None
    achieved: float | None
    limiter: str | None  # "registers", "shared memory", "warps", "blocks", "grid"
    blocks_per_sm: int | None
    warps_per_sm: int | None
    limits: tuple[tuple[str, int], ...]  # blocks per SM that each resource allows

    @property
    def blocks(self) -> int:
        """Blocks that an SM holds; none where that is not known."""
        return self.blocks_per_sm or 0
