# SPDX-License-Identifier: Apache-2.0
"""The mix of instructions: every executed opcode in a class, by the report's counts of opcodes first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from gpadvisor.model.instruction import MemorySpace, OpcodeClass, OpcodeInfo
from gpadvisor.model.profile import KernelProfile
from gpadvisor.sass.opcodes import opcode_info
from gpadvisor.views.columns import Columns
from gpadvisor.views.roofline.model import MixRow

_BY_OPCODE: Final = (
    "sass__inst_executed_per_opcode_with_modifier_all",
    "sass__inst_executed_per_opcode",
)
_KEY: Final = re.compile(r"\[([A-Z][A-Za-z0-9_.]*)\]$")

_NAMES: Final = {
    OpcodeClass.FLOAT16: "FP16",
    OpcodeClass.FLOAT32: "FP32",
    OpcodeClass.FLOAT64: "FP64",
    OpcodeClass.TRANSCENDENTAL: "special functions",
    OpcodeClass.CONVERSION: "conversions",
    OpcodeClass.TENSOR: "tensor",
    OpcodeClass.INTEGER: "integer",
    OpcodeClass.INTEGER_MULTIPLY: "integer",
    OpcodeClass.PREDICATE: "integer",
    OpcodeClass.MOVE: "integer",
    OpcodeClass.SPECIAL_REGISTER: "integer",
    OpcodeClass.SHUFFLE: "warp exchange",
    OpcodeClass.VOTE: "warp exchange",
}
_SPACES: Final = {
    MemorySpace.GLOBAL: "global memory",
    MemorySpace.GENERIC: "global memory",
    MemorySpace.LOCAL: "local memory",
    MemorySpace.SHARED: "shared memory",
    MemorySpace.DISTRIBUTED_SHARED: "shared memory",
    MemorySpace.CONSTANT: "constants",
    MemorySpace.TEXTURE: "textures",
    MemorySpace.TENSOR: "tensor",
}
_CONTROL: Final = "control and synchronization"


def _class_name(info: OpcodeInfo) -> str:
    if info.opclass is OpcodeClass.UNKNOWN:
        return "unknown"
    if info.space is not None and info.opclass not in _NAMES:
        return _SPACES[info.space]
    return _NAMES.get(info.opclass, _CONTROL)


def mix(profile: KernelProfile, rows: Columns | None) -> tuple[MixRow, ...]:
    """Classes of instructions, the largest first; empty where nothing is counted by opcode."""
    counts: dict[str, float] = defaultdict(float)
    for name, count in _by_opcode(profile) or _by_instruction(rows):
        counts[name] += count
    total = sum(counts.values())
    return tuple(
        MixRow(name=name, instructions=count, share=count / total)
        for name, count in sorted(counts.items(), key=lambda row: -row[1])
        if count > 0
    )


def _by_opcode(profile: KernelProfile) -> list[tuple[str, float]]:
    for base in _BY_OPCODE:
        result = [
            (_class_name(opcode_info(profile.device.arch, key[1])), count)
            for name in profile.metrics
            if name.startswith(f"{base}[")
            and (key := _KEY.search(name))
            and (count := profile.metric(name)) is not None
        ]
        if result:
            return result
    return []


def _by_instruction(rows: Columns | None) -> Iterator[tuple[str, float]] | Iterable[tuple[str, float]]:
    if rows is None:
        return ()
    return ((_class_name(instruction.info), float(rows.warps[row])) for row, _, _, instruction in rows.rows())
