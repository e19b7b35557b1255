# SPDX-License-Identifier: Apache-2.0
"""What a fix does to the machine code, in one sentence and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.fix import Change, Fix, KernelChange, PatternState
from gpadvisor.model.sentence import capitalised

_OPCODES: Final = 4
_KERNELS: Final = 8
_PATTERN: Final = {
    PatternState.GONE: "the pattern is gone",
    PatternState.FEWER: "the pattern stands in fewer places",
    PatternState.STAYS: "the pattern is still there",
    PatternState.UNKNOWN: "whether the stalls go only a new profile tells",
}


def sentence(fix: Fix, arch: str, kernels: Sequence[KernelChange], pattern: PatternState, where: str) -> str:
    """What was recompiled, and what changed."""
    head = f"{fix.code}: recompiled for {arch}"
    changed = [kernel for kernel in kernels if not kernel.unchanged]
    if not changed:
        return f"{head}: the machine code is the same; {_PATTERN[pattern]}"
    first = changed[0]
    parts = [part for part in (*_instructions(first, where), *_resources(first)) if part]
    more = f"; {len(changed) - 1} more kernels changed" if len(changed) > 2 else ""
    more = "; one more kernel changed" if len(changed) == 2 else more
    return f"{head}: {', '.join(parts)}{more}; {_PATTERN[pattern]}"


def _instructions(kernel: KernelChange, where: str) -> list[str]:
    """The opcodes that changed; where these are many, how many instructions there are."""
    if len(kernel.gone) + len(kernel.added) <= 2 * _OPCODES:
        return [_opcodes(kernel, where)]
    return [_number("instructions", kernel.instructions), _opcodes(kernel, where)]


def _opcodes(kernel: KernelChange, where: str) -> str:
    gone, added = _counted(kernel.gone), _counted(kernel.added)
    if gone and added:
        return f"{gone} gone {where}, {added} added"
    if gone:
        return f"{gone} gone {where}"
    return f"{added} added {where}" if added else f"the same instructions {where} in another order"


def _counted(opcodes: Sequence[tuple[str, int]]) -> str:
    counts = [f"{name} x{count}" if count > 1 else name for name, count in opcodes[:_OPCODES]]
    more = len(opcodes) - len(counts)
    if more > 0:
        return f"{', '.join(counts)} and {more} more"
    return " and ".join([", ".join(counts[:-1]), counts[-1]]) if len(counts) > 1 else "".join(counts)


def _resources(kernel: KernelChange) -> list[str]:
    parts = [_number("registers", kernel.registers)]
    if kernel.local_bytes != Change(before=0, after=0):
        parts.append(_number("bytes of local memory", kernel.local_bytes))
    if kernel.shared_bytes.before != kernel.shared_bytes.after:
        parts.append(_number("bytes of shared memory", kernel.shared_bytes))
    return [part for part in parts if part]


def _number(name: str, change: Change) -> str:
    if change.before is None or change.after is None:
        return ""
    if change.before == change.after:
        return f"{name} {change.before} (unchanged)"
    return f"{name} {change.before} to {change.after}"


def markdown(
    fix: Fix,
    unit: str,
    compiler: str,
    arch: str,
    kernels: Sequence[KernelChange],
    pattern: PatternState,
    where: str,
) -> str:
    """A table of each kernel that changed."""
    lines = [f"**{fix.title}**", "", f"`{unit}` compiled by {compiler} for {arch}, without and with it."]
    changed = [kernel for kernel in kernels if not kernel.unchanged]
    if not changed:
        lines += ["", "The machine code is the same, byte for byte."]
    for kernel in changed[:_KERNELS]:
        lines += ["", f"`{kernel.name}`", "", "| | before | after |", "|--|--|--|"]
        lines += [
            f"| {name} | {_cell(change.before)} | {_cell(change.after)} |"
            for name, change in (
                ("instructions", kernel.instructions),
                ("registers", kernel.registers),
                ("local memory, bytes per thread", kernel.local_bytes),
                ("local loads and stores", kernel.local_accesses),
                ("static shared memory, bytes", kernel.shared_bytes),
            )
        ]
        if kernel.gone or kernel.added:
            lines += ["", f"Instructions {where}: {_signed(kernel)}"]
    if len(changed) > _KERNELS:
        lines += ["", f"{len(changed) - _KERNELS} more kernels changed."]
    verdict = _PATTERN[pattern]
    lines += ["", f"{capitalised(verdict)}. Nothing was measured: profile again to confirm."]
    return "\n".join(lines)


def _signed(kernel: KernelChange) -> str:
    parts = [f"`{name}` -{count}" for name, count in kernel.gone]
    parts += [f"`{name}` +{count}" for name, count in kernel.added]
    return ", ".join(parts[:24])


def _cell(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
