# SPDX-License-Identifier: Apache-2.0
"""Launch facts of kernels from the ``.nv.info`` attribute records (GPA section III, static analyzer)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from gpadvisor.model.program import KernelFacts

# Names as cuobjdump -elf prints them, without "EIATTR_".
MAX_THREADS: Final = 0x05
REQNTID: Final = 0x10
FRAME_SIZE: Final = 0x11
MIN_STACK_SIZE: Final = 0x12
MAXREG_COUNT: Final = 0x1B
REGCOUNT: Final = 0x2F
INDIRECT_BRANCH_TARGETS: Final = 0x34
NUM_BARRIERS: Final = 0x4C
ANNOTATIONS: Final = 0x55

_SPILL_OR_REFILL: Final = 1  # a kind of annotation

_FORMAT_NONE: Final = 1
_FORMAT_BYTE: Final = 2
_FORMAT_HALF: Final = 3
_FORMAT_SIZED: Final = 4
_WORD: Final = struct.Struct("<I")
_STACK_UNKNOWN: Final = 1 << 31  # recursion: the compiler writes a value with the sign bit set

_PTX_WORD: Final = re.compile(rb"\.entry[\s\0]+([\w$.]+)|\.minnctapersm[\s\0]+(\d{1,9})|\{")


class Attribute(NamedTuple):
    """One record: its code and its payload as little-endian words (one word for short forms)."""

    code: int
    words: tuple[int, ...]


def attributes(raw: bytes) -> Iterator[Attribute]:
    """The records of one ``.nv.info`` section; stops at the first that does not fit."""
    index = 0
    while index + 4 <= len(raw):
        form, code, value = raw[index], raw[index + 1], raw[index + 2] | raw[index + 3] << 8
        index += 4
        if form == _FORMAT_SIZED:
            payload = raw[index : index + value]
            if len(payload) < value:
                return
            index += value
            usable = len(payload) - len(payload) % 4
            yield Attribute(code, tuple(word for (word,) in _WORD.iter_unpack(payload[:usable])))
        elif form in (_FORMAT_NONE, _FORMAT_BYTE, _FORMAT_HALF):
            yield Attribute(code, (value & 0xFF if form == _FORMAT_BYTE else value,))
        else:
            return


class ModuleFacts(NamedTuple):
    """What the module-wide ``.nv.info`` states, by ELF symbol index."""

    registers: dict[int, int]
    frame_bytes: dict[int, int]
    stack_bytes: dict[int, int]


def module_facts(raw: bytes) -> ModuleFacts:
    """Register counts and stack sizes of every function."""
    result = ModuleFacts({}, {}, {})
    tables = {REGCOUNT: result.registers, FRAME_SIZE: result.frame_bytes, MIN_STACK_SIZE: result.stack_bytes}
    for code, words in attributes(raw):
        table = tables.get(code)
        if table is not None and len(words) >= 2:
            table[words[0]] = words[1]
    return result


def min_blocks_by_kernel(ptx: bytes) -> dict[str, int]:
    """``__launch_bounds__``' second number, which only the PTX kept for -lineinfo still states."""
    result: dict[str, int] = {}
    entry: bytes | None = None
    for name, count in _PTX_WORD.findall(ptx):
        if count and entry is not None:
            result[entry.decode("ascii", "replace")] = int(count)
        else:
            entry = name or None  # a brace begins the body
    return result


def indirect_targets(kernel_info: bytes) -> dict[int, tuple[int, ...]]:
    """Where each indirect branch of a function can go: section offsets, by the section offset of the branch.

    A record holds (offset, reserved, count, targets...) after one another; what does not fit its record is
    left out.
    """
    targets_of: dict[int, set[int]] = {}
    for code, words in attributes(kernel_info):
        index = 0
        while code == INDIRECT_BRANCH_TARGETS and index + 3 <= len(words):
            branch, _, count = words[index : index + 3]
            index += 3
            if index + count > len(words):
                break
            targets_of.setdefault(branch, set()).update(words[index : index + count])
            index += count
    return {branch: tuple(sorted(targets)) for branch, targets in targets_of.items() if targets}


def spills(kernel_info: bytes) -> frozenset[int]:
    """Section offsets of the instructions that spill registers or refill them, where ptxas (13.0) says it.

    A record holds (kind, offset) after one another.
    """
    found = set[int]()
    for code, words in attributes(kernel_info):
        if code == ANNOTATIONS:
            pairs = zip(words[::2], words[1::2], strict=False)
            found.update(offset for kind, offset in pairs if kind == _SPILL_OR_REFILL)
    return frozenset(found)


def kernel_facts(
    kernel_info: bytes,
    module: ModuleFacts,
    *,
    annotated: bool,
    symbol: int,
    section_flags: int,
    section_info: int,
    shared_bytes: int,
    min_blocks: int | None,
) -> KernelFacts:
    """The facts of one kernel from its own records, the module's, and its section header."""
    records = dict(attributes(kernel_info))
    registers = module.registers.get(symbol)
    if registers is None:
        # Before CUDA 9 there is no REGCOUNT record; the section header's info has the count in its top byte.
        registers = section_info >> 24 or None
    barriers = records.get(NUM_BARRIERS)
    block = records.get(REQNTID)
    threads = records.get(MAX_THREADS)
    limit = records.get(MAXREG_COUNT)
    return KernelFacts(
        registers_per_thread=registers,
        static_shared_bytes=shared_bytes,
        stack_bytes=_stack(module, symbol),
        max_threads_per_block=_product(threads),
        required_block=(block[0], block[1], block[2]) if block is not None and len(block) == 3 else None,
        min_blocks_per_sm=min_blocks,
        uses_barriers=barriers[0] if barriers else section_flags >> 20 & 0x7F,
        spills=spills(kernel_info) if annotated else None,
        register_limit=limit[0] or None if limit else None,
    )


def _stack(module: ModuleFacts, symbol: int) -> int | None:
    """Bytes of stack per thread: the kernel's frame and, where it is bounded, that of its callees."""
    sizes = [table[symbol] for table in (module.frame_bytes, module.stack_bytes) if symbol in table]
    return max(sizes) if sizes and max(sizes) < _STACK_UNKNOWN else None


def _product(words: tuple[int, ...] | None) -> int | None:
    """Threads of a three-dimensional bound."""
    if words is None or len(words) != 3:
        return None
    return words[0] * words[1] * words[2] or None
