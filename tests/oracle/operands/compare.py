# SPDX-License-Identifier: Apache-2.0
"""Our def and use sets beside nvdisasm's life ranges, counted by operand form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from tests.oracle.operands import life_ranges
from tests.oracle.operands.corpus import (
    ARCHITECTURES,
    compile_cubin,
    cub_sources,
    disassembly,
    fixture_sources,
    own_sources,
    sensible,
)

from gpadvisor.model.instruction import (
    Instruction,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
    register_name,
)
from gpadvisor.sass import decode, parse_json
from gpadvisor.sass.texture import FETCHES
from gpadvisor.sass.tokens import parse_operand, split_operands

SHOWN_PER_FORM = 2
STRICT, SET_ASIDE = "strict", "set aside"


@dataclass
class Score:
    """How many instructions agree, in all and by form.

    ``exact`` is strict: a row in which the table contradicts the program is a miss like any other, and is
    counted in ``contradicted`` besides.
    """

    compared: int = 0
    exact: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    by_arch: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    contradicted: Counter[tuple[str, str]] = field(default_factory=Counter)  # by form and reason
    without_mask: int = 0  # exact rows of R2P and P2R, on what the table prints of them

    @property
    def share(self) -> float:
        """Share of instructions whose def and use sets are both exact."""
        return self.exact / self.compared if self.compared else 0.0

    @property
    def share_where_consistent(self) -> float:
        """The same share without the rows in which the table contradicts the program."""
        compared = self.compared - self.contradicted.total()
        return self.exact / compared if compared else 0.0

    def weak_forms(self, *, seen: int = 10, share: float = 0.95, strict: bool = True) -> list[str]:
        """Forms seen at least ``seen`` times that agree in fewer than ``share`` of them."""
        aside: Counter[str] = Counter()
        for (name, _), count in self.contradicted.items():
            aside[name] += 0 if strict else count
        return [
            name
            for name, missed in self.missed.items()
            if self.seen[name] >= seen and 1 - (missed - aside[name]) / self.seen[name] < share
        ]

    def add(self, other: Score) -> None:
        """Counts another score in."""
        self.compared += other.compared
        self.exact += other.exact
        self.seen += other.seen
        self.missed += other.missed
        self.problems += other.problems
        self.contradicted += other.contradicted
        self.without_mask += other.without_mask
        for arch, row in other.by_arch.items():
            mine = self.by_arch.setdefault(arch, [0, 0, 0])
            for column, count in enumerate(row):
                mine[column] += count
        for name, examples in other.examples.items():
            self.examples.setdefault(name, []).extend(examples)

    def table(self) -> str:
        """The result as text: totals, by architecture, then every form that was missed."""
        rows = [f"{'arch':10}{'compared':>10}{'missed':>8}{STRICT:>10}{'contradicted':>14}{SET_ASIDE:>11}"]
        rows += [_row(arch, *counts) for arch, counts in sorted(self.by_arch.items())]
        rows.append(_row("all", self.compared, self.exact, self.contradicted.total()))
        frequent = sum(count >= 10 for count in self.seen.values())
        rows.append(f"{len(self.seen)} operand forms, {frequent} seen ten times or more")
        for name, forms in (
            (STRICT, self.weak_forms()),
            (SET_ASIDE, self.weak_forms(strict=False)),
        ):
            rows.append(f"  {name}: {len(forms)} of those exact in fewer than 95 %")
        rows.append(
            f"  {self.without_mask} rows of R2P and P2R compared without the predicates of their masks"
        )
        for reason, count in self._reasons().items():
            rows.append(f"  {count} rows contradict the program: {reason}")
        for name, missed in self.missed.most_common():
            rows.append(f"  missed {missed} of {self.seen[name]}: {name}")
            rows.extend(f"      {example}" for example in self.examples.get(name, [])[:SHOWN_PER_FORM])
        rows.extend(f"  problem in {count} sections: {message}" for message, count in self.problems.items())
        return "\n".join(rows)

    def _reasons(self) -> Counter[str]:
        reasons: Counter[str] = Counter()
        for (_, reason), count in self.contradicted.items():
            reasons[reason] += count
        return reasons


def _row(name: str, compared: int, exact: int, contradicted: int) -> str:
    strict, consistent = 100 * exact / max(compared, 1), 100 * exact / max(compared - contradicted, 1)
    return f"{name:10}{compared:10}{compared - exact:8}{strict:10.4f}{contradicted:14}{consistent:11.4f}"


def form(instruction: Instruction) -> str:
    """The operand form: mnemonic and the kinds of its operands, "LDG.E R,M"."""
    kinds = (parse_operand(text).kind.value for text in split_operands(instruction.operands))
    return ".".join((instruction.opcode, *instruction.modifiers)) + " " + ",".join(kinds)


def compare(cubin: Path, arch: str) -> Score:
    """Every instruction of a cubin except calls and the rows that nvdisasm leaves out."""
    score = Score()
    listing = parse_json(disassembly(cubin, "-json"))
    ranges: dict[str, dict[int, life_ranges.Marks]] = {}
    for section, offset, marks in life_ranges.read(disassembly(cubin, "-c", "-plr", "-lrm", "narrow")):
        ranges.setdefault(section, {})[offset] = marks
    with cubin.open("rb") as file:
        sections = {
            s.name.removeprefix(".text."): s.data()
            for s in ELFFile(file).iter_sections()
            if s.name.startswith(".text.")
        }
    for name, code in sections.items():
        instructions, problems = decode(arch, code, listing[name])
        score.problems.update(f"{arch}: {problem.message}" for problem in problems)
        section = _Section(f"{cubin.name}:{name}", instructions, ranges.get(name, {}))
        for index, instruction in enumerate(instructions):
            if instruction.pc in section.marks and instruction.info.opclass is not OpcodeClass.CALL:
                _count(score, section, index)
    score.by_arch[arch] = [score.compared, score.exact, score.contradicted.total()]
    return score


@dataclass(frozen=True)
class _Section:
    name: str
    instructions: Sequence[Instruction]
    marks: Mapping[int, life_ranges.Marks]


def unprinted(instruction: Instruction) -> frozenset[Register]:
    """What the table never marks: the predicates of the mask of R2P and P2R, which later code reads."""
    if instruction.opcode not in ("R2P", "P2R"):
        return frozenset()
    return frozenset(register(RegisterFile.PREDICATE, i) for i in range(7)) - _guard(instruction)


def contradiction(section: _Section, index: int) -> str | None:
    """Why the row of an instruction cannot be right, from the rest of the table and of the code.

    A fetch of four components (sm_100 to sm_121, but for sm_107): the table leaves one out, and the next row
    in which it marks that register is a read. LDGSTS.ZFILL: it marks the predicate as written, and another
    LDGSTS.ZFILL reads it with nothing in between that sets it.
    """
    instruction = section.instructions[index]
    marks = section.marks[instruction.pc]
    defs, uses = set(instruction.defs), set(instruction.uses)
    if uses != marks.uses:
        return None
    missing, added = defs - marks.defs, marks.defs - defs
    if instruction.opcode in FETCHES and missing and not added:
        if all(_read_next(section, index, one) for one in missing):
            return "a component of a fetch that the table itself reads next is not marked"
        return None
    if "ZFILL" in instruction.modifiers and added and not missing:
        if all(_read_by_another(section, index, one) for one in added):
            return "the predicate of LDGSTS.ZFILL is marked as written and read again unchanged"
        return None
    return None


def _read_next(section: _Section, index: int, wanted: Register) -> bool:
    for later in section.instructions[index + 1 :]:
        marks = section.marks.get(later.pc)
        if marks is not None and wanted in marks.uses:
            return True
        if _leaves(later) or (marks is not None and wanted in marks.defs):
            return False
    return False


def _leaves(instruction: Instruction) -> bool:
    """Whether no path goes on to the next instruction."""
    return instruction.target is not None and instruction.guard is None


def _read_by_another(section: _Section, index: int, wanted: Register) -> bool:
    def found(others: Iterable[Instruction]) -> bool:
        for other in others:
            if "ZFILL" in other.modifiers and wanted in other.uses:
                return True
            if _leaves(other) or wanted in other.defs:
                return False
        return False

    return found(section.instructions[index + 1 :]) or found(reversed(section.instructions[:index]))


def _guard(instruction: Instruction) -> frozenset[Register]:
    return frozenset() if instruction.guard is None else frozenset({instruction.guard.register})


def _count(score: Score, section: _Section, index: int) -> None:
    instruction = section.instructions[index]
    marks = section.marks[instruction.pc]
    score.compared += 1
    name = form(instruction)
    score.seen[name] += 1
    left_out = unprinted(instruction)
    defs, uses = frozenset(instruction.defs) - left_out, frozenset(instruction.uses) - left_out
    if defs == marks.defs - left_out and uses == marks.uses - left_out:
        score.exact += 1
        score.without_mask += bool(left_out)
        return
    score.missed[name] += 1
    reason = contradiction(section, index)
    if reason is not None:
        score.contradicted[name, reason] += 1
    examples = score.examples.setdefault(name, [])
    if len(examples) < SHOWN_PER_FORM:
        examples.append(f"{section.name}+{instruction.pc:#x}: {instruction.text}")
        examples.append(
            f"    writes {_names(instruction.defs)} (nvdisasm {_names(marks.defs)}), "
            f"reads {_names(instruction.uses)} (nvdisasm {_names(marks.uses)})"
        )


def _names(registers: frozenset[Register] | tuple[Register, ...]) -> str:
    return " ".join(register_name(r) for r in sorted(registers)) or "-"


WORKERS = 2


def kernels_and_cub(folder: Path, architectures: Sequence[str] = ARCHITECTURES) -> Score:
    """Code that people write: the kernels that the project ships, and CUB's algorithms."""
    return _all_of((*fixture_sources(), *cub_sources()), folder, architectures)


def everything(folder: Path, architectures: Sequence[str] = ARCHITECTURES) -> Score:
    """The same, and the files written to reach forms that such code seldom has."""
    return _all_of((*own_sources(), *fixture_sources(), *cub_sources()), folder, architectures)


def _all_of(sources: Iterable[Path], folder: Path, architectures: Sequence[str]) -> Score:
    return score_all(
        ((source, arch) for arch in architectures for source in sources if sensible(source, arch)), folder
    )


def score_all(jobs: Iterable[tuple[Path, str]], folder: Path) -> Score:
    """Compiles and compares every (source, architecture)."""

    def one(job: tuple[Path, str]) -> Score:
        return compare(compile_cubin(*job, folder), job[1])

    total = Score()
    with ThreadPoolExecutor(WORKERS) as pool:
        for score in pool.map(one, jobs):
            total.add(score)
    return total
