# SPDX-License-Identifier: Apache-2.0
"""Constants that ptxas sets in the FP16 pipe: ``HFMA2.MMA R9, -RZ, RZ, 0, 3.57e-07`` is 6."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_ZERO = frozenset({"RZ", "-RZ"})


def half_constant(sources: Sequence[str]) -> int | None:
    """The word that an HFMA2 sets by its sources; None where it computes one."""
    if len(sources) < 4 or not _ZERO.issuperset(sources[:2]):
        return None
    try:
        high, low = (struct.pack("<e", float(text)) for text in sources[2:4])
    except (ValueError, OverflowError):
        return None
    return int.from_bytes(low + high, "little")
