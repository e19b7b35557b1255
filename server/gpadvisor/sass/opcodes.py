# SPDX-License-Identifier: Apache-2.0
"""Facts about opcodes that do not depend on their operands (GPA section IV, Fig. 5)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from gpadvisor.model.instruction import InOrderQueue, MemorySpace, OpcodeClass, OpcodeInfo, Pipe

UNKNOWN_OPCODE: Final = OpcodeInfo(
    opclass=OpcodeClass.UNKNOWN,
    pipe=Pipe.UNKNOWN,
    space=None,
    variable_latency=True,
    queue=None,
    known=False,
)
"""The conservative model: such an opcode may take any time, so a wait on its barrier may be its doing."""

NEVER_EXECUTED: Final = OpcodeInfo(
    opclass=OpcodeClass.NOP,
    pipe=Pipe.CBU,
    space=None,
    variable_latency=False,
    queue=None,
    known=True,
)
"""An instruction under ``@!PT``, which compilers emit as padding."""


@dataclass(frozen=True, slots=True)
class OpcodeRow:
    """One block of the table, as far as it concerns one opcode."""

    opclass: OpcodeClass
    pipes: Mapping[str, Pipe]  # by architecture, with "default"
    latency: str | frozenset[str]  # "fixed", "variable", or where it is variable
    space: MemorySpace | None
    queue: InOrderQueue | None
    sources: tuple[str, ...]

    def info(self, arch: str) -> OpcodeInfo:
        """The facts on one architecture."""
        latency = self.latency
        return OpcodeInfo(
            opclass=self.opclass,
            pipe=self.pipes.get(arch, self.pipes["default"]),
            space=self.space,
            variable_latency=latency == "variable" if isinstance(latency, str) else arch in latency,
            queue=self.queue,
            known=True,
        )


@lru_cache(maxsize=1)
def opcode_table() -> Mapping[str, OpcodeRow]:
    """Every opcode, and every form that differs from its base opcode, by name."""
    text = resources.files("gpadvisor.sass.data").joinpath("opcodes.toml").read_text(encoding="utf-8")
    table: dict[str, OpcodeRow] = {}
    for block in tomllib.loads(text)["block"]:
        row = _row(block)
        for name in block["opcodes"]:
            if name in table:
                raise ValueError(f"opcodes.toml lists {name} twice")
            table[name] = row
    return table


def _row(block: Mapping[str, Any]) -> OpcodeRow:
    pipe, latency = block["pipe"], block["latency"]
    pipes = pipe if isinstance(pipe, dict) else {"default": pipe}
    return OpcodeRow(
        opclass=OpcodeClass(block["class"]),
        pipes={arch: Pipe(value) for arch, value in pipes.items()},
        latency=latency if isinstance(latency, str) else frozenset(latency),
        space=MemorySpace(block["space"]) if "space" in block else None,
        queue=InOrderQueue(block["queue"]) if "queue" in block else None,
        sources=tuple(block["sources"]),
    )


def plain_arch(arch: str) -> str:
    """The architecture without its feature suffix: "sm_90" of "sm_90a"."""
    match = re.match(r"sm_[0-9]+", arch)
    return match.group() if match else arch


@lru_cache(maxsize=1 << 14)
def opcode_info(arch: str, mnemonic: str) -> OpcodeInfo:
    """The facts about a mnemonic such as "LDG.E.64": of its longest prefix that the table has."""
    table = opcode_table()
    base, *modifiers = mnemonic.split(".")
    plain = plain_arch(arch)
    for modifier in modifiers:
        row = table.get(f"{base}.{modifier}")
        if row is not None:
            return row.info(plain)
    row = table.get(base)
    return UNKNOWN_OPCODE if row is None else row.info(plain)


@lru_cache(maxsize=1 << 10)
def awaited(info: OpcodeInfo) -> OpcodeInfo:
    """The facts about an instruction that sets a write barrier: whoever reads its result waits for that.

    The encoding has the last word, for compilers differ: ptxas 13.0 schedules the FP64 arithmetic of sm_100
    by stall counts, ptxas 13.5 by scoreboards.
    """
    return info if info.variable_latency else replace(info, variable_latency=True)
