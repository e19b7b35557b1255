# SPDX-License-Identifier: Apache-2.0
"""Our def and use sets beside nvdisasm's life ranges, counted by operand form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
    register_file,
    register_name,
)
from gpadvisor.sass import decode, parse_json
from gpadvisor.sass.texture import FETCHES
from gpadvisor.sass.tokens import parse_operand, split_operands

SHOWN_PER_FORM = 2


@dataclass
class Score:
    """How many instructions agree, in all and by form."""

    compared: int = 0
    exact: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    by_arch: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)  # agreed but for a known fault of the table

    @property
    def share(self) -> float:
        """Share of instructions whose def and use sets are both exact."""
        return self.exact / self.compared if self.compared else 0.0

    def weak_forms(self, *, seen: int = 10, share: float = 0.95) -> list[str]:
        """Forms seen at least ``seen`` times that agree in fewer than ``share`` of them."""
        return [
            name
            for name, missed in self.missed.items()
            if self.seen[name] >= seen and 1 - missed / self.seen[name] < share
        ]

    def add(self, other: Score) -> None:
        """Counts another score in."""
        self.compared += other.compared
        self.exact += other.exact
        self.seen += other.seen
        self.missed += other.missed
        self.problems += other.problems
        self.faults += other.faults
        for arch, (compared, exact) in other.by_arch.items():
            mine = self.by_arch.setdefault(arch, [0, 0])
            mine[0] += compared
            mine[1] += exact
        for name, examples in other.examples.items():
            self.examples.setdefault(name, []).extend(examples)

    def table(self) -> str:
        """The result as text: totals, by architecture, then every form that was missed."""
        rows = [f"{'arch':10}{'compared':>10}{'missed':>8}{'exact %':>10}"]
        for arch, (compared, exact) in sorted(self.by_arch.items()):
            rows.append(f"{arch:10}{compared:10}{compared - exact:8}{100 * exact / max(compared, 1):10.4f}")
        rows.append(f"{'all':10}{self.compared:10}{self.compared - self.exact:8}{100 * self.share:10.4f}")
        rows.append(
            f"{len(self.seen)} operand forms, {sum(n >= 10 for n in self.seen.values())} seen ten times"
        )
        rows += [
            f"  {count} agree but for a fault of the table: {reason}" for reason, count in self.faults.items()
        ]
        for name, missed in self.missed.most_common():
            rows.append(f"  missed {missed} of {self.seen[name]}: {name}")
            rows.extend(f"      {example}" for example in self.examples.get(name, [])[:SHOWN_PER_FORM])
        rows.extend(f"  problem in {count} sections: {message}" for message, count in self.problems.items())
        return "\n".join(rows)


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
        marked = ranges.get(name, {})
        for instruction in instructions:
            marks = marked.get(instruction.pc)
            if marks is not None and instruction.info.opclass is not OpcodeClass.CALL:
                _count(score, f"{cubin.name}:{name}+{instruction.pc:#x}", arch, instruction, marks)
    score.by_arch[arch] = [score.compared, score.exact]
    return score


def oracle_fault(instruction: Instruction, arch: str) -> tuple[str, frozenset[Register]] | None:
    """Where the table itself is wrong: the reason, and the registers that are left out of the comparison.

    R2P and P2R: it never marks the predicates of the mask, although later instructions read what R2P wrote.
    LDGSTS.ZFILL: it marks the predicate as written; compiled loops read the same predicate again afterwards.
    Texture fetches of four components from sm_100 on: it leaves the fourth out, which the next store reads.
    """
    if instruction.opcode in ("R2P", "P2R"):
        return "mask of R2P and P2R", frozenset(
            register(RegisterFile.PREDICATE, i) for i in range(7)
        ) - _guard(instruction)
    if instruction.opcode == "LDGSTS" and "ZFILL" in instruction.modifiers:
        return "predicate of LDGSTS.ZFILL", frozenset(
            r for r in instruction.uses if register_file(r) is RegisterFile.PREDICATE
        ) - _guard(instruction)
    if instruction.opcode in FETCHES and int(arch[3:].rstrip("af")) >= 100 and len(instruction.defs) >= 4:
        later = next(o for o in map(parse_operand, split_operands(instruction.operands)) if o.is_register)
        return "fourth component of a fetch", frozenset(later.registers(2)[1:])
    return None


def _guard(instruction: Instruction) -> frozenset[Register]:
    return frozenset() if instruction.guard is None else frozenset({instruction.guard.register})


def _count(score: Score, place: str, arch: str, instruction: Instruction, marks: life_ranges.Marks) -> None:
    score.compared += 1
    name = form(instruction)
    score.seen[name] += 1
    defs, uses = set(instruction.defs), set(instruction.uses)
    if defs == marks.defs and uses == marks.uses:
        score.exact += 1
        return
    fault = oracle_fault(instruction, arch)
    if (
        fault is not None
        and defs - fault[1] == marks.defs - fault[1]
        and uses - fault[1] == marks.uses - fault[1]
    ):
        score.exact += 1
        score.faults[fault[0]] += 1
        return
    score.missed[name] += 1
    examples = score.examples.setdefault(name, [])
    if len(examples) < SHOWN_PER_FORM:
        examples.append(f"{place}: {instruction.text}")
        examples.append(
            f"    writes {_names(instruction.defs)} (nvdisasm {_names(marks.defs)}), "
            f"reads {_names(instruction.uses)} (nvdisasm {_names(marks.uses)})"
        )


def _names(registers: frozenset[Register] | tuple[Register, ...]) -> str:
    return " ".join(register_name(r) for r in sorted(registers)) or "-"


WORKERS = 2


def everything(folder: Path) -> Score:
    """All sources for all architectures."""
    sources = (*own_sources(), *fixture_sources(), *cub_sources())
    return score_all(
        ((source, arch) for arch in ARCHITECTURES for source in sources if sensible(source, arch)), folder
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
