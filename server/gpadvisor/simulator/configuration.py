# SPDX-License-Identifier: Apache-2.0
"""What a simulation is told: the launch, the data-dependent facts no machine code holds, and its bounds."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from gpadvisor.errors import UsageError
from gpadvisor.model.machine import BLOCK_LIMITS, GRID_LIMITS

POINTER_BASE: Final = 0x10_0000_0000
POINTER_STEP: Final = 0x1000_0000
ASSUMED_HIT_RATE: Final = 0.5
"""Where hits are neither told nor found by address."""
BY_DATA_L1_HITS: Final = 0.33
"""Of accesses whose addresses were loaded: 0.02 to 0.99 in eight kernels on an H100, the median of them."""
BY_DATA_L2_HITS: Final = 0.97
"""Of what L1 lacks of these: 0.94 to 0.99 in the six kernels that do little else there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationConfig:
    """A launch and what is assumed about it; everything unset is a stated default."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0
    sms: int | None = None  # None: of the architecture's device
    seed: int = 1
    interval_cycles: int = 1
    """Between two samples of the SM; doubled during a run as often as its samples outgrow the buffer."""
    arguments: Mapping[int, int] = field(default_factory=dict)
    """Known 32-bit words of the kernel's parameters by byte offset; see ``argument_words``."""
    l1_hit_rate: float | None = None
    """Of global accesses; None: by their addresses where these are known, else as often as not."""
    l2_hit_rate: float | None = None
    local_hit_rate: float = 0.97
    """L1 hits of loads from local memory (0.93 to 0.997 in six kernels on an H100); what misses is in L2."""
    l1_hit_rate_at: Mapping[int, float] = field(default_factory=dict)  # by source line
    l2_hit_rate_at: Mapping[int, float] = field(default_factory=dict)  # by source line
    sectors_per_request: float | None = None
    """Of global accesses; None: from the addresses where they are known, else neighbouring lanes."""
    sectors_per_request_at: Mapping[int, float] = field(default_factory=dict)  # by Pc
    bank_conflict_ways: float | None = None
    """Wavefronts of a shared access for each it needs at least; None: from the addresses, else 1."""
    bank_conflict_ways_at: Mapping[int, float] = field(default_factory=dict)  # by Pc
    branch_taken: float = 0.5
    """Probability of a forward branch whose condition is not known."""
    branch_taken_at: Mapping[int, float] = field(default_factory=dict)  # by Pc
    divergent_branches: bool = False
    """Whether each lane draws for itself at a branch whose condition is not known."""
    default_trips: int = 16
    """Iterations of a loop whose end is not known."""
    loop_trips: Mapping[int, int] = field(default_factory=dict)
    """Iterations by source line, for loops whose end does not follow from the arguments."""
    passed_barriers: frozenset[int] = frozenset()
    """Barriers of the block, by Pc, that are passed as if they were not there: what waiting at them costs."""
    waves: int | None = None
    """At most this many waves of blocks are simulated; further ones repeat the full ones of these.
    None: three, or as many as little work allows."""
    max_cycles: int = 20_000_000
    max_instructions: int = 20_000_000

    def __post_init__(self) -> None:
        for name, extents, most in (("grid", self.grid, GRID_LIMITS), ("block", self.block, BLOCK_LIMITS)):
            for axis, value, limit in zip("xyz", extents, most, strict=True):
                if not 1 <= value <= limit:
                    raise UsageError(f"{name}.{axis} is {value}, a launch needs 1 to {limit}")
        for name in ("l1_hit_rate", "l2_hit_rate", "local_hit_rate", "branch_taken"):
            if getattr(self, name) is not None:
                _probability(name, getattr(self, name))
        for name in ("l1_hit_rate_at", "l2_hit_rate_at", "branch_taken_at"):
            for key, value in getattr(self, name).items():
                _probability(f"{name}[{key}]", value)
        for name in ("interval_cycles", "default_trips", "waves", "max_cycles", "max_instructions"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}, it must be at least 1")
        if self.sms is not None and self.sms < 1:
            raise UsageError(f"sms is {self.sms}, a GPU has at least 1")
        for line, trips in self.loop_trips.items():
            if trips < 1:
                raise UsageError(f"the loop at line {line} has {trips} iterations, it must have at least 1")

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def _probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{name} is {value}, a probability lies between 0 and 1")


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument; a value of None is not known."""

    kind: Literal["pointer", "integer", "float"]
    size: int  # bytes
    value: float | None = None


def argument_words(arguments: Sequence[Argument]) -> dict[int, int]:
    """The known 32-bit words of a parameter list, laid out by natural alignment.

    Each pointer without a value is given a place of its own, aligned as allocations are, so that the pattern
    of its accesses can be followed.
    """
    words: dict[int, int] = {}
    offset = 0
    for position, argument in enumerate(arguments):
        size = argument.size
        alignment = min(size, 8) if size in {1, 2, 4, 8} else 8
        offset = -(-offset // alignment) * alignment
        for index, word in enumerate(_words(argument, position)):
            words[offset + 4 * index] = word
        offset += size
    return words


def _words(argument: Argument, position: int) -> Sequence[int]:
    if argument.kind == "pointer":
        value = int(argument.value or POINTER_BASE + position * POINTER_STEP)
        return (
            [(value + 0) & 0xFFFF_FFFF, value >> 32]
            if argument.size == 8
            else _pointers(argument.size, value)
        )
    if argument.value is None or argument.size not in {4, 8}:
        return ()
    if argument.kind == "float":
        data = struct.pack("<f" if argument.size == 4 else "<d", argument.value)
    else:
        data = (int(argument.value) & ((1 << 8 * argument.size) - 1)).to_bytes(argument.size, "little")
    return struct.unpack(f"<{len(data) // 4}I", data)


def _pointers(size: int, value: int) -> Sequence[int]:
    """A struct of pointers: each 8 bytes a place of its own."""
    places = (value + index * (POINTER_STEP >> 6) for index in range(size // 8))
    return [word for place in places for word in (place & 0xFFFF_FFFF, place >> 32)]
