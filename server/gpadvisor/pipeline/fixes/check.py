# SPDX-License-Identifier: Apache-2.0
"""Two builds of a translation unit, without and with a fix, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.model.fix import Change, Fix, KernelChange, PatternState, TextEdit, moved_line
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.pipeline.fixes.built import Built, BuiltKernel, FileLine, paired, places
from gpadvisor.source.edits import SiteKind

_BY_LINES: Final = frozenset(
    {
        *(SiteKind.FLOAT_LITERALS.value, SiteKind.RECIPROCAL.value),
        *(SiteKind.KEEP_ELEMENT.value, SiteKind.BOTH_SIDES.value),
    }
)
"""What these do is seen on the lines that they change."""
_IN_RANGE: Final = frozenset(
    {*_BY_LINES, SiteKind.UNROLL.value, SiteKind.RESTRICT.value, SiteKind.GRID_CONSTANT.value}
)
"""What these are about lies between the first and the last line of the fix."""
_BY_LAUNCH: Final = frozenset({SiteKind.BLOCK_SIZE.value})
"""Only the launch shows what these do."""
_MAX_KERNELS: Final = 64


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two builds, and which of its lines are the fix's."""

    built: Built
    is_file: Callable[[str], bool]
    lines: Collection[int]

    def holds(self, place: FileLine) -> bool:
        """Whether a place is on the lines of the fix."""
        return place[1] in self.lines and self.is_file(place[0])


def fix_lines(fix: Fix) -> tuple[set[int], set[int]]:
    """The lines that a fix is about, before and after it."""
    before = {fix.line, *range(fix.first_line, fix.last_line + 1)}
    if fix.change in _BY_LINES:
        before |= {edit.start_line for edit in fix.edits if not _inserts(edit)}
    after = {moved_line(line, fix.edits) for line in before}
    return before, after


def _inserts(edit: TextEdit) -> bool:
    """Whether an edit only adds lines."""
    return edit.new_text.endswith("\n") and edit.start_column == edit.end_column == 0


def concerns(side: Side) -> bool:
    """Whether any machine code of a build comes from the lines of the fix."""
    return any(
        side.holds(place)
        for kernel in side.built.kernels.values()
        for function in kernel.program.functions
        for index in range(len(function.instructions))
        for place in places(function, index)
    )


def kernel_changes(fix: Fix, before: Side, after: Side, kernel: str | None) -> tuple[KernelChange, ...]:
    """What changed in each kernel, the finding's own and then the most changed first."""
    pairs = sorted(paired(before.built, after.built), key=lambda pair: pair[0].name)
    changes = [_change(fix, before, after, old, new) for old, new in pairs[:_MAX_KERNELS]]
    offered_for = (
        None if kernel is None else demangle(kernel)
    )  # of a profile, perhaps, whose build had another path
    changes.sort(
        key=lambda change: (
            change.unchanged,
            demangle(change.kernel) != offered_for,
            -_size(change),
            change.kernel,
        )
    )
    return tuple(changes)


def _size(change: KernelChange) -> int:
    return sum(count for _, count in (*change.gone, *change.added))


def where_changed(fix: Fix) -> str:
    """Where the opcodes of a change are counted."""
    if fix.change not in _BY_LINES:
        return "in the kernel"
    before, _ = fix_lines(fix)
    return f"on line {min(before)}" if len(before) == 1 else f"on lines {min(before)} to {max(before)}"


def _change(fix: Fix, before: Side, after: Side, old: BuiltKernel, new: BuiltKernel) -> KernelChange:
    gone, added = _opcodes(fix, before, after, old, new)
    return KernelChange(
        kernel=old.name,
        name=old.demangled,
        instructions=Change(before=old.instructions, after=new.instructions),
        registers=_fact(old, new, "registers_per_thread"),
        local_bytes=_fact(old, new, "stack_bytes"),
        local_accesses=Change(before=old.local_accesses, after=new.local_accesses),
        shared_bytes=_fact(old, new, "static_shared_bytes"),
        gone=gone,
        added=added,
        unchanged=old.code == new.code,
    )


def _fact(old: BuiltKernel, new: BuiltKernel, name: str) -> Change:
    return Change(before=getattr(old.facts, name, None), after=getattr(new.facts, name, None))


_Counts = tuple[tuple[str, int], ...]


def _opcodes(
    fix: Fix, before: Side, after: Side, old: BuiltKernel, new: BuiltKernel
) -> tuple[_Counts, _Counts]:
    """Opcodes that are fewer and more; with modifiers only where nothing else differs."""
    selections = (before.holds, after.holds) if fix.change in _BY_LINES else (None, None)
    for full in (False, True):
        counts, two = old.opcodes(selections[0], full=full), new.opcodes(selections[1], full=full)
        for counter in (counts, two):
            counter.pop("NOP", None)  # they only fill up
        gone, added = counts - two, two - counts
        if gone or added:
            return _ranked(gone), _ranked(added)
    return (), ()


def _ranked(counts: Counter[str]) -> _Counts:
    return tuple(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def pattern_state(fix: Fix, before: Side, after: Side) -> PatternState:
    """Whether what the finding is about is still in the machine code."""
    if fix.change in _BY_LAUNCH:
        return PatternState.UNKNOWN
    pairs = paired(before.built, after.built)
    for count in (_rule_sites, _signs):
        old = sum(count(fix, before, kernel) for kernel, _ in pairs)
        new = sum(count(fix, after, kernel) for _, kernel in pairs)
        if old:
            return _state(old, new)
    return PatternState.UNKNOWN


def _state(old: int, new: int) -> PatternState:
    if not new:
        return PatternState.GONE
    return PatternState.FEWER if new < old else PatternState.STAYS


def _rule_sites(fix: Fix, side: Side, kernel: BuiltKernel) -> int:
    """Places in which the rule itself finds its pattern."""
    if fix.change not in _IN_RANGE:
        return len(kernel.sites)
    return sum(1 for site in kernel.sites if any(map(side.holds, site)))


def _signs(fix: Fix, side: Side, kernel: BuiltKernel) -> int:
    """Instructions that give the pattern away where the rule needs more than one place, or a profile."""
    if fix.change == SiteKind.FORCE_INLINE.value:
        return kernel.calls
    if fix.change == SiteKind.LAUNCH_BOUNDS.value:
        return kernel.local_accesses
    if fix.change not in _BY_LINES:
        return 0
    is_sign = _SIGNS[SiteKind(fix.change)]
    return sum(
        is_sign(instruction.opcode, instruction.modifiers, instruction.info.opclass)
        for function in kernel.program.functions
        for index, instruction in enumerate(function.instructions)
        if any(map(side.holds, places(function, index)))
    )


def _computes_double(_opcode: str, modifiers: tuple[str, ...], opclass: OpcodeClass) -> bool:
    return opclass is OpcodeClass.FLOAT64 or (opclass is OpcodeClass.CONVERSION and "F64" in modifiers)


def _divides(opcode: str, modifiers: tuple[str, ...], opclass: OpcodeClass) -> bool:
    return opclass is OpcodeClass.CALL or (opcode == "MUFU" and "RCP" in modifiers)


def _stores(_opcode: str, _modifiers: tuple[str, ...], opclass: OpcodeClass) -> bool:
    return opclass is OpcodeClass.STORE


def _leaves(_opcode: str, _modifiers: tuple[str, ...], opclass: OpcodeClass) -> bool:
    return opclass in {OpcodeClass.BRANCH, OpcodeClass.EXIT}


_SIGNS: Final = {
    SiteKind.FLOAT_LITERALS: _computes_double,
    SiteKind.RECIPROCAL: _divides,
    SiteKind.KEEP_ELEMENT: _stores,
    SiteKind.BOTH_SIDES: _leaves,
}
