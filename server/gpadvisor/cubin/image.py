# SPDX-License-Identifier: Apache-2.0
"""What a cubin holds, as values: code sections, symbols, launch facts and undecoded line tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.problem import Problem
from gpadvisor.model.program import KernelFacts


@dataclass(frozen=True, slots=True)
class CodeSymbol:
    """A function symbol inside a code section: the kernel itself or a helper it calls."""

    name: str  # mangled
    offset: int  # in the section, in bytes
    size: int  # bytes as the symbol table states them; 0 when it does not
    is_entry: bool  # launched from the host
    elf_index: int  # row of the ELF symbol table


@dataclass(frozen=True, slots=True)
class CodeSection:
    """One ``.text.<name>`` section."""

    name: str  # the part after ".text."
    index: int  # ELF section index
    code: bytes
    load_address: int  # device address of its first byte; 0 in a cubin that was never loaded
    symbols: tuple[CodeSymbol, ...]  # sorted by offset
    indirect_targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # of BRX, by its offset

    @property
    def instruction_count(self) -> int:
        """How many 16-byte instructions the section holds."""
        return len(self.code) // INSTRUCTION_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class LineTable:
    """The undecoded ``.debug_line`` section with what its addresses and names refer to."""

    program: bytes
    strings: bytes  # .debug_str: names of inlined functions
    line_strings: bytes  # .debug_line_str: file names of DWARF 5
    relocations: Mapping[int, tuple[int, int]]  # offset in program -> (ELF section index, offset in it)


@dataclass(frozen=True, slots=True, eq=False)
class Cubin:
    """One CUDA ELF image."""

    sha256: str
    arch: str  # "sm_86", "sm_90a"
    abi: int  # EI_ABIVERSION: 7 up to CUDA 12, 8 from CUDA 13 and for sm_100 and newer
    sections: tuple[CodeSection, ...]
    facts: Mapping[str, KernelFacts]  # by mangled kernel name
    has_line_info: bool
    problems: tuple[Problem, ...]
    line_table: LineTable
    address_taken: frozenset[str] = frozenset()  # names of functions
    compiler: str | None = None  # version of ptxas, "13.0"; None before CUDA 13, whose images do not tell

    def section(self, name: str) -> CodeSection | None:
        """The code section of this name (without ``.text.``)."""
        return next((s for s in self.sections if s.name == name), None)

    @property
    def is_loaded(self) -> bool:
        """Whether the symbols carry the device addresses of a driver that had loaded the image."""
        return any(s.load_address for s in self.sections)

    @property
    def instruction_count(self) -> int:
        """Instructions of all code sections together."""
        return sum(s.instruction_count for s in self.sections)
