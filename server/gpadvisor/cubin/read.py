# SPDX-License-Identifier: Apache-2.0
"""Cubin bytes to a Cubin value: dialect, code sections, symbols, launch facts (GPA section III)."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from gpadvisor.cubin.address_taken import address_taken
from gpadvisor.cubin.attributes import (
    ModuleFacts,
    indirect_targets,
    kernel_facts,
    min_blocks_by_kernel,
    module_facts,
)
from gpadvisor.cubin.elf import STT_FUNC, STT_SECTION, ElfHeader, ElfImage, ElfSymbol, SectionHeader
from gpadvisor.cubin.image import CodeSection, CodeSymbol, Cubin, LineTable
from gpadvisor.errors import CubinError, NoDeviceCodeError
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import KernelFacts

_TEXT: Final = ".text."
_INFO: Final = ".nv.info."
_OTHER_ENTRY: Final = 0x10  # STO_CUDA_ENTRY
_ABI_CUDA_12: Final = 7
_FLAGS_AT: Final = 48  # in a 64-bit ELF header
_ABI_CUDA_13: Final = 8
_FLAG_ACCELERATED: Final = 0x800  # ABI 7 only: architecture-specific code such as sm_90a
_COMPAT_ACCELERATED: Final = b"\x02\x09\x01\x00"  # .nv.compat record 9 with value 1
_TARGET: Final = re.compile(rb"-arch\s+sm_(\d+[af]?)\b")
_TOOL_NOTE: Final = ".note.nv.tkinfo"
_RELEASE: Final = re.compile(rb"Cuda compilation tools, release (\d{1,3}\.\d{1,3})\b")
_DEBUG_OPTION: Final = re.compile(rb"\s-g\s")
_REGISTERS_FOR_DEBUGGER: Final = ".nv_debug_info_reg_sass"
_DEBUG_BUILD: Final = (
    "the code was compiled for the debugger (-G), without optimization: most of what is said about it is not "
    "true of a release build; compile with -lineinfo instead of -G"
)
_OLDEST: Final = 70
_RELOCATION: Final = {".rel.debug_line": struct.Struct("<QQ"), ".rela.debug_line": struct.Struct("<QQq")}
_RESERVED_SECTION: Final = ".nv.shared.reserved.0"
_RESERVED_BYTES: Final = 1024
_ABS64: Final = 2  # R_CUDA_64


def read_cubin(data: bytes) -> Cubin:
    """Read one CUDA ELF image of sm_70 or newer; raise CubinError with one clear sentence otherwise."""
    elf = ElfImage(data)
    arch = _arch(elf)
    problems: list[Problem] = []
    functions, bases = _function_symbols(elf)
    sections: list[CodeSection] = []
    budget = len(data)
    for index, header in enumerate(elf.sections):
        if not header.name.startswith(_TEXT) or len(header.name) == len(_TEXT):
            continue
        budget -= header.size
        if budget < 0:
            raise CubinError("cubin is damaged: its code sections overlap; build or extract it again")
        sections.append(
            _code_section(elf, index, header, functions.get(index, ()), bases.get(index, 0), problems)
        )
    if not sections:
        raise NoDeviceCodeError(
            "no code for a GPU in it; that takes a __global__ function, and of a template an instance"
        )
    line_table = _line_table(elf, functions, bases)
    if _is_debug_build(elf):
        problems.append(Problem(ProblemCode.DEBUG_BUILD, _DEBUG_BUILD))
    return Cubin(
        sha256=hashlib.sha256(data).hexdigest(),
        arch=arch,
        abi=elf.header.abi_version,
        sections=tuple(sections),
        facts=_facts(elf, sections),
        has_line_info=bool(line_table.program),
        problems=tuple(problems),
        line_table=line_table,
        address_taken=address_taken(elf),
        compiler=_compiler(elf),
    )


def _arch(elf: ElfImage) -> str:
    """The architecture name: from the ELF flags, its suffix from where the dialect keeps it."""
    number = _sm_number(elf.header)
    if number < _OLDEST:
        raise CubinError(
            f"cubin is for sm_{number}, whose instructions are not 16 bytes long; "
            f"build it for sm_{_OLDEST} or newer"
        )
    return f"sm_{number}{_suffix(elf, number)}"


def _sm_number(header: ElfHeader) -> int:
    """The SM version in the flags word of either dialect."""
    if header.abi_version == _ABI_CUDA_12:
        return header.flags & 0xFF
    if header.abi_version == _ABI_CUDA_13:
        return header.flags >> 8 & 0xFF
    raise CubinError(
        f"cubin has ELF ABI version {header.abi_version}, and 7 (CUDA 9 to 12) and 8 (CUDA 12.8 and newer) "
        "are known; build it with one of these toolkits"
    )


def stamped(data: bytes, number: int) -> bytes:
    """A cubin with another SM version in its ELF flags; its code stays as it is."""
    old, flag_bytes = _sm_number(ElfImage(data).header), slice(_FLAGS_AT, _FLAGS_AT + 4)
    # The older dialect states the version of the machine code and that of the virtual code it comes from.
    flags = bytes(number if byte == old else byte for byte in data[flag_bytes])
    return data[: flag_bytes.start] + flags + data[flag_bytes.stop :]


def _suffix(elf: ElfImage, number: int) -> str:
    """The "a" or "f" of an architecture-specific target, or nothing where the image does not tell."""
    note = elf.find(_TOOL_NOTE)
    if note is not None:
        for target in _TARGET.findall(elf.contents(note)):
            digits = target.rstrip(b"af")
            if int(digits) == number:
                return str(target[len(digits) :], "ascii")
    if elf.header.abi_version == _ABI_CUDA_12:
        return "a" if elf.header.flags & _FLAG_ACCELERATED else ""
    compat = elf.find(".nv.compat")
    return "a" if compat is not None and elf.contents(compat)[:4] == _COMPAT_ACCELERATED else ""


def _compiler(elf: ElfImage) -> str | None:
    """The release of the toolkit whose ptxas made the image, where a note says it."""
    note = elf.find(_TOOL_NOTE)
    match = None if note is None else _RELEASE.search(elf.contents(note))
    return None if match is None else str(match[1], "ascii")


def _is_debug_build(elf: ElfImage) -> bool:
    """Whether ptxas compiled for the debugger: by its options where they are kept, else by its tables."""
    note = elf.find(_TOOL_NOTE)
    if note is not None and (options := elf.contents(note)).find(b"-arch") >= 0:
        return _DEBUG_OPTION.search(options) is not None
    return elf.find(_REGISTERS_FOR_DEBUGGER) is not None


def _function_symbols(elf: ElfImage) -> tuple[dict[int, list[ElfSymbol]], dict[int, int]]:
    """Function symbols by section, and the load address of each section that has one."""
    functions: dict[int, list[ElfSymbol]] = {}
    section_values: dict[int, int] = {}
    for symbol in elf.symbols():
        if symbol.section == 0 or symbol.section >= len(elf.sections):
            continue
        if symbol.kind == STT_FUNC:
            functions.setdefault(symbol.section, []).append(symbol)
        elif symbol.kind == STT_SECTION:
            section_values[symbol.section] = symbol.value
    bases = {
        index: _load_address(symbols, elf.sections[index].size, section_values.get(index, 0))
        for index, symbols in functions.items()
    }
    return functions, bases


def _load_address(symbols: list[ElfSymbol], size: int, section_value: int) -> int:
    """The device address of a section: zero unless its symbols lie beyond it.

    A driver that has loaded the image writes the entry's device address into its symbol, sometimes into the
    section's and the helpers' as well; other helpers keep their offset in the section.
    """
    if section_value >= size > 0:
        return section_value
    beyond = [s for s in symbols if s.value >= size]
    if not beyond:
        return 0
    entries = [s.value for s in beyond if s.other & _OTHER_ENTRY]
    return min(entries or [s.value for s in beyond])


def _code_section(
    elf: ElfImage,
    index: int,
    header: SectionHeader,
    symbols: Iterable[ElfSymbol],
    load_address: int,
    problems: list[Problem],
) -> CodeSection:
    """One code section with its symbols relative to its start."""
    name = header.name[len(_TEXT) :]
    code = elf.contents(header)
    if len(code) % INSTRUCTION_BYTES:
        raise CubinError(
            f"cubin is damaged: the code of {name} has {len(code)} bytes, which is no multiple of "
            f"{INSTRUCTION_BYTES}; build or extract it again"
        )
    placed: list[CodeSymbol] = []
    for symbol in symbols:
        offset = symbol.value - load_address if symbol.value >= load_address else symbol.value
        if offset >= max(len(code), 1) or offset % INSTRUCTION_BYTES:
            problems.append(
                Problem(
                    ProblemCode.DAMAGED_CUBIN,
                    f"symbol {elf.symbol_name(symbol)} lies outside the code of {name} and is ignored",
                )
            )
            continue
        placed.append(
            CodeSymbol(
                name=elf.symbol_name(symbol),
                offset=offset,
                size=min(symbol.size, len(code) - offset),
                is_entry=bool(symbol.other & _OTHER_ENTRY),
                elf_index=symbol.row,
            )
        )
    placed.sort(key=lambda s: (s.offset, s.elf_index))
    records = elf.find(f"{_INFO}{name}")
    return CodeSection(
        name=name,
        index=index,
        code=code,
        load_address=load_address,
        symbols=tuple(placed),
        indirect_targets=MappingProxyType(indirect_targets(elf.contents(records)) if records else {}),
    )


def _facts(elf: ElfImage, sections: Iterable[CodeSection]) -> Mapping[str, KernelFacts]:
    """Launch facts of every kernel, by mangled name."""
    by_name = {header.name: header for header in elf.sections}
    shared = by_name.get(".nv.info")
    module = module_facts(elf.contents(shared)) if shared is not None else ModuleFacts({}, {}, {})
    ptx = by_name.get(".nv_debug_ptx_txt")
    min_blocks = min_blocks_by_kernel(elf.contents(ptx)) if ptx is not None else {}
    annotated = _compiler(elf) is not None
    facts: dict[str, KernelFacts] = {}
    for section in sections:
        header = elf.sections[section.index]
        for symbol in section.symbols:
            if not symbol.is_entry:
                continue
            info_section = by_name.get(f"{_INFO}{symbol.name}")
            memory = by_name.get(f".nv.shared.{symbol.name}")
            facts[symbol.name] = kernel_facts(
                elf.contents(info_section) if info_section is not None else b"",
                module,
                annotated=annotated,
                symbol=symbol.elf_index,
                section_flags=header.flags,
                section_info=header.info,
                shared_bytes=_static_shared(memory, reserved=_RESERVED_SECTION in by_name),
                min_blocks=min_blocks.get(symbol.name),
            )
    return MappingProxyType(facts)


def _static_shared(section: SectionHeader | None, *, reserved: bool) -> int:
    """Bytes of shared memory that the source declares.

    From sm_90 on the section of a kernel that uses shared memory begins with what the driver keeps for
    itself; a section of another name gives that away.
    """
    if section is None:
        return 0
    return section.size - _RESERVED_BYTES if reserved and section.size >= _RESERVED_BYTES else section.size


def _relocated(base: int, value: int, addend: int, in_place: int) -> int:
    """The offset in its section that a relocated address means.

    In a loaded image the driver has put the device address in place already, and the symbol carries it too.
    """
    if base and in_place >= base:
        return in_place - base
    return (value - base if value >= base else value) + addend


def _line_table(
    elf: ElfImage, functions: Mapping[int, list[ElfSymbol]], bases: Mapping[int, int]
) -> LineTable:
    """The raw line table and the relocations that say which code each address means."""

    def raw(name: str) -> bytes:
        header = elf.find(name)
        return elf.contents(header) if header is not None else b""

    program = raw(".debug_line")
    targets: dict[int, tuple[int, int]] = {}
    if program:
        values = {s.row: (s.section, s.value) for s in elf.symbols()}
        for name, layout in _RELOCATION.items():
            records = raw(name)
            usable = len(records) - len(records) % layout.size
            for offset, info, *addend in layout.iter_unpack(records[:usable]):
                section, value = values.get(info >> 32, (0, 0))
                if info & 0xFFFFFFFF == _ABS64 and section in functions:
                    in_place = int.from_bytes(program[offset : offset + 8], "little")
                    target = _relocated(bases[section], value, addend[0] if addend else in_place, in_place)
                    targets[offset] = (section, target)
    return LineTable(
        program=program,
        strings=raw(".debug_str"),
        line_strings=raw(".debug_line_str"),
        relocations=MappingProxyType(targets),
    )
