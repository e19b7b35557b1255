# SPDX-License-Identifier: Apache-2.0
"""Blame quality: the blamer's sources of dependency stalls against what the simulated machine waited for.

Run as ``python -m tests.validation.blame [--arch sm_80 ...]``. The truth is the simulator's own state.
Scored are samples of dependency stalls whose use has two or more candidate producers before pruning. Those of
throttles, whose truth is what keeps the unit busy that a full queue waits for, are scored apart: they have no
one cause.

Three questions are asked of the top blamed instruction of a place, from the strictest to the mildest:

- strict: is it what released the sampled warp, the operation of all waited for that came last?
- alike: is it that, or an operation with the same opcode that the same counter still waited for when this
  wait began? The warp cannot tell them apart, and neither can samples: which of several loads on one
  scoreboard misses a cache and comes last is chance, anew in every sample.
- main: is it the instruction that released most of the samples of this place?
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from tests.kernels import KERNELS, Which, compile_kernel
from tests.simulations import fixture_config, program_of

from gpadvisor import machine
from gpadvisor.blamer import GPA2021, blame
from gpadvisor.blamer.queues import THROTTLES
from gpadvisor.blamer.rules import DEFAULT_RULES, PAPER, BlameRules
from gpadvisor.model.blame import NO_INDEX, Blame, DependencyEdge, DependencyKind, PruneRule
from gpadvisor.model.ids import Pc
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import StallClass
from gpadvisor.simulator import Simulation, simulate

MAX_CYCLES = 200_000
"""What one kernel does in this time is enough to score its blame."""

Place = tuple[int, int]  # function, instruction index
Use = tuple[int, int, int]  # function, instruction index, reason
Shares = Mapping[int, float]  # by instruction index of the def
Sets = Mapping[frozenset[int], float]  # samples by the instructions that held the warp alike

_LOOKED_FOR = {DependencyKind.STALL_COUNT, DependencyKind.SYNCHRONIZATION, DependencyKind.FILLS}
"""Edges that only exist where a rule wants them."""
_ALWAYS_SCORED = {StallClass.SYNCHRONIZATION, *THROTTLES}
"""Stalls that any instruction on the way, or near, may be the cause of."""
_SCOREBOARD = {StallClass.MEMORY, StallClass.EXECUTION}


@dataclass(frozen=True, slots=True)
class Setting:
    """One set of latencies and hit rates."""

    name: str
    seed: int
    l1: float
    l2: float


TUNING = Setting("as used while building", 1, 0.5, 0.5)
HELD_BACK = Setting("held back: other seed and hit rates", 11, 0.2, 0.85)


@dataclass(slots=True)
class Score:
    """Sums over scored samples."""

    samples: float = 0.0
    top: float = 0.0  # whose top blamed instruction is the true cause
    ceiling: float = 0.0  # what the best single answer for each use would reach
    alike: float = (
        0.0  # whose top blamed instruction held the warp in this wait as an equal of the true cause
    )
    alike_ceiling: float = 0.0
    main: float = 0.0  # at uses whose top blamed instruction is the most frequent true cause
    overlap: float = 0.0  # of the distributions

    def add(self, other: Score) -> None:
        """Sum up."""
        for one in fields(Score):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def text(self) -> str:
        """All in percent."""
        if not self.samples:
            return "no samples"
        share = {one.name: 100 * getattr(self, one.name) / self.samples for one in fields(Score)}
        return (
            f"strict {share['top']:5.1f} of {share['ceiling']:5.1f} %, "
            f"alike {share['alike']:5.1f} of {share['alike_ceiling']:5.1f} %, main {share['main']:5.1f} %, "
            f"overlap {share['overlap']:5.1f} % ({self.samples:,.0f} samples)"
        )


@dataclass(slots=True)
class Scores:
    """Scores of one way to blame, by stall class and kernel; what fills queues also by instruction alone."""

    total: Score = field(default_factory=Score)
    by_class: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    by_kernel: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    misses: dict[tuple[str, str, str], float] = field(default_factory=lambda: defaultdict(float))
    filled: dict[str, tuple[float, float]] = field(default_factory=dict)  # by class: samples, of them agreed


@dataclass(frozen=True, slots=True)
class Case:
    """One simulated kernel with the truth by use."""

    name: str
    program: Program
    simulation: Simulation
    table: MachineModel
    truth: Mapping[Use, Shares]
    alike: Mapping[Use, Sets]

    def stall_class(self, use: Use) -> StallClass:
        """The class of a use's reason."""
        return self.simulation.profile.reasons[use[2]].stall_class


def case_of(name: str, which: Which, arch: str, setting: Setting) -> Case:
    """Simulate one of our kernels."""
    program, table = program_of(compile_kernel(name, which, arch)), machine.load(arch)
    config = fixture_config(
        name,
        which,
        seed=setting.seed,
        l1_hit_rate=setting.l1,
        l2_hit_rate=setting.l2,
        max_cycles=MAX_CYCLES,
        interval_cycles=32,
    )
    simulation = simulate(program, KERNELS[name].entry, table, config)
    return Case(f"{name} {which} {arch}", program, simulation, table, *_truth(program, simulation))


def _truth(program: Program, simulation: Simulation) -> tuple[Mapping[Use, Shares], Mapping[Use, Sets]]:
    section = simulation.profile.sections[0]
    strict: dict[Use, dict[int, float]] = {}
    alike: dict[Use, dict[frozenset[int], float]] = {}
    truth = simulation.truth
    columns = (truth.pc.tolist(), truth.reason.tolist(), truth.cause.tolist(), truth.samples.tolist())
    for pc, reason, cause, samples, awaited in zip(*columns, truth.awaited, strict=True):
        stall_class = simulation.profile.reasons[reason].stall_class
        if cause < 0 or not (stall_class.is_dependency or stall_class in THROTTLES):
            continue
        use, source = program.at(section, Pc(pc)), program.at(section, Pc(cause))
        if use is None or source is None or use[0].id != source[0].id:
            continue
        key = use[0].id, use[1], reason
        causes = strict.setdefault(key, {})
        causes[source[1]] = causes.get(source[1], 0.0) + samples
        sets, equal = alike.setdefault(key, {}), _equal(program, section, use[0], source[1], awaited)
        sets[equal] = sets.get(equal, 0.0) + samples
    return strict, alike


def _equal(
    program: Program, section: str, function: Function, cause: int, awaited: Iterable[int]
) -> frozenset[int]:
    """The cause, and those awaited with it that are operations like it."""
    opcode = function.instructions[cause].opcode
    places = [program.at(section, Pc(pc)) for pc in awaited]
    indices = [at[1] for at in places if at is not None and at[0].id == function.id]
    return frozenset({cause, *(one for one in indices if function.instructions[one].opcode == opcode)})


def candidates(case: Case, blamed: Blame) -> dict[Place, list[DependencyEdge]]:
    """Edges before pruning by use."""
    found: dict[Place, list[DependencyEdge]] = defaultdict(list)
    for edge in blamed.edges:
        found[edge.function, edge.use_index].append(edge)
    return found


def fits(case: Case, use: Use, edge: DependencyEdge) -> bool:
    """Whether an edge could explain a stall of this class."""
    source = case.program.functions[edge.function].instructions[edge.def_index]
    waited_for = source.info.variable_latency or source.control.write_barrier is not None
    stall = case.stall_class(use)
    if stall in _SCOREBOARD:
        return waited_for or source.control.read_barrier is not None
    if stall is StallClass.FIXED_LATENCY:
        return not waited_for
    return True


def as_blamed(case: Case, blamed: Blame) -> dict[Use, Shares]:
    """What the blamer made of it."""
    by_name = {reason.name: at for at, reason in enumerate(case.simulation.profile.reasons)}
    found: dict[Use, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    rows = blamed.rows
    columns = (rows.function, rows.use_index, rows.reason, rows.def_index, rows.samples)
    for function, use, reason, definition, samples in zip(*(one.tolist() for one in columns), strict=True):
        own = definition == NO_INDEX and blamed.reasons[reason].stall_class in THROTTLES
        found[function, use, by_name[blamed.reasons[reason].name]][use if own else definition] += samples
    return found


def revived(case: Case, blamed: Blame, rule: PruneRule) -> dict[Use, Shares]:
    """The blame without one rule: its edges alive again, all apportioned by Eq. 1."""
    built, edges = as_blamed(case, blamed), candidates(case, blamed)
    found: dict[Use, Shares] = {}
    for use, shares in built.items():
        mine = [edge for edge in edges.get(use[:2], ()) if fits(case, use, edge)]
        if not any(edge.pruned_by is rule for edge in mine):
            found[use] = shares
            continue
        found[use] = {
            edge.def_index: edge.issue_weight / max(1, edge.distance_instructions or 1)
            for edge in mine
            if edge.pruned_by is rule or edge.def_index in shares
        }
    return found


def nearest_def(case: Case) -> dict[Use, Shares]:
    """The baseline: the closest instruction above, by address, that writes what the use reads.

    A throttle is left to the instruction that waits.
    """
    return {
        use: {use[1]: 1.0}
        if case.stall_class(use) in THROTTLES
        else _nearest(case.program.functions[use[0]], use[1])
        for use in case.truth
    }


def _nearest(function: Function, use: int) -> Shares:
    wanted = set(function.instructions[use].uses)
    for index in range(use - 1, -1, -1):
        if wanted.intersection(function.instructions[index].defs):
            return {index: 1.0}
    return {}


def score(case: Case, answer: Mapping[Use, Shares], scored: Iterable[Use], into: Scores) -> None:
    """Add one kernel's scores."""
    for use in scored:
        truth, found = case.truth[use], answer.get(use, {})
        alike: dict[int, float] = defaultdict(float)
        for equal, samples in case.alike[use].items():
            for index in equal:
                alike[index] += samples
        total, given = sum(truth.values()), sum(found.values())
        top = max(found, key=lambda index: (found[index], -index)) if given else None
        one = Score(
            samples=total,
            top=0.0 if top is None else truth.get(top, 0.0),
            ceiling=max(truth.values()),
            alike=0.0 if top is None else alike.get(top, 0.0),
            alike_ceiling=max(alike.values()),
            main=total if top is not None and truth.get(top, 0.0) == max(truth.values()) else 0.0,
            overlap=sum(min(truth[i], found.get(i, 0.0) * total / given) for i in truth) if given else 0.0,
        )
        into.by_class[case.stall_class(use).value].add(one)
        if case.stall_class(use) in THROTTLES:
            continue
        into.total.add(one)
        into.by_kernel[case.name].add(one)
        if one.alike < one.alike_ceiling:
            _remember(case, use, top, into, one.alike_ceiling - one.alike)


def score_filled(case: Case, answer: Mapping[Use, Shares], into: Scores) -> None:
    """Add how far the true and the blamed shares of instructions agree in the throttles of one kernel.

    The few samples of a single place do not tell how a full queue is shared; those of a kernel do.
    """
    whole: dict[tuple[str, int], tuple[dict[int, float], dict[int, float]]] = {}
    for use, truth in case.truth.items():
        stall, found = case.stall_class(use), answer.get(use, {})
        if stall not in THROTTLES:
            continue
        true, blamed = whole.setdefault((stall.value, use[0]), (defaultdict(float), defaultdict(float)))
        total, given = sum(truth.values()), sum(found.values())
        for shares, sums, scale in ((truth, true, 1.0), (found, blamed, total / given if given else 0.0)):
            for index, samples in shares.items():
                sums[index] += samples * scale
    for (stall_class, _), (true, blamed) in whole.items():
        samples, agreed = into.filled.get(stall_class, (0.0, 0.0))
        both = sum(min(value, blamed.get(index, 0.0)) for index, value in true.items())
        into.filled[stall_class] = samples + sum(true.values()), agreed + both


def _remember(case: Case, use: Use, top: int | None, into: Scores, samples: float) -> None:
    instructions = case.program.functions[use[0]].instructions
    right = max(case.truth[use], key=lambda index: case.truth[use][index])
    blamed = "none" if top is None or top < 0 else instructions[top].opcode
    key = (
        case.stall_class(use).value,
        f"{instructions[right].opcode} -> {instructions[use[1]].opcode}",
        blamed,
    )
    into.misses[key] += samples


Way = Callable[[Case, Blame], Mapping[Use, Shares]]


def _by_rules(rules: BlameRules) -> Way:
    def answer(case: Case, _: Blame) -> Mapping[Use, Shares]:
        return as_blamed(case, blame(case.program, case.simulation.profile, case.table, rules))

    return answer


def _without(rule: PruneRule) -> Way:
    return lambda case, blamed: revived(case, blamed, rule)


WAYS: dict[str, Way] = {
    "as built": as_blamed,
    **{f"without the {rule.value} rule": _without(rule) for rule in PruneRule},
    "paper": _by_rules(PAPER),
    "gpa2021": _by_rules(GPA2021),
    "nearest def": lambda case, _: nearest_def(case),
}


def scored_uses(case: Case, blamed: Blame) -> list[Use]:
    """Uses with two or more candidate producers before pruning.

    They do not depend on what the blamer names: at a barrier every instruction on the way to it is a
    candidate, and the bearer of a stall count, looked for where no register explains a stall, is not counted.
    """
    edges = candidates(case, blamed)

    def producers(use: Use) -> set[int]:
        return {
            edge.def_index
            for edge in edges.get(use[:2], ())
            if edge.kind not in _LOOKED_FOR and fits(case, use, edge)
        }

    return [use for use in case.truth if case.stall_class(use) in _ALWAYS_SCORED or len(producers(use)) >= 2]


def evaluate(names: Sequence[str], archs: Sequence[str], setting: Setting) -> dict[str, Scores]:
    """Score every way on some kernels."""
    found = {way: Scores() for way in WAYS}
    for name in names:
        for arch in archs:
            if arch not in KERNELS[name].architectures:
                continue
            for which in ("before", "after"):
                sys.stderr.write(f"blame: {setting.name}, {name} {which} for {arch}\n")
                case = case_of(name, which, arch, setting)
                blamed = blame(case.program, case.simulation.profile, case.table, DEFAULT_RULES)
                scored = scored_uses(case, blamed)
                for way, answer in WAYS.items():
                    answered = answer(case, blamed)
                    score(case, answered, scored, found[way])
                    score_filled(case, answered, found[way])
    return found


def split(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kernels to build with, and every third one held back."""
    held = [name for at, name in enumerate(sorted(names)) if at % 3 == 2]
    return [name for name in names if name not in held], held


def _ways_by_class(found: Mapping[str, Scores]) -> list[str]:
    """Strict and alike shares of each way by stall class, with its worst kernel by the alike one."""
    classes = sorted({name for scores in found.values() for name in scores.by_class})
    lines = [
        "Strict / alike in percent, by stall class:",
        f"  {'':28} " + " ".join(f"{n:>19}" for n in classes),
    ]
    for way, scores in found.items():
        cells = [_pair(scores.by_class.get(name, Score())) for name in classes]
        worst = min(
            scores.by_kernel.items(), key=lambda row: row[1].alike / max(1.0, row[1].samples), default=None
        )
        said = "" if worst is None else f"  worst: {worst[0]} {_pair(worst[1]).strip()}"
        lines.append(f"  {way:28} {' '.join(cells)}{said}")
    return lines


def _filled(scores: Scores) -> str:
    return "  ".join(
        f"{name} {100 * agreed / samples:5.1f} ({samples:,.0f})"
        for name, (samples, agreed) in sorted(scores.filled.items())
        if samples
    )


def _pair(one: Score) -> str:
    if not one.samples:
        return f"{'-':>19}"
    return f"{100 * one.top / one.samples:10.1f} / {100 * one.alike / one.samples:5.1f} "


def report(title: str, found: Mapping[str, Scores]) -> str:
    """The figures as text."""
    lines = [f"## {title}", ""]
    lines += [f"{way:28} {scores.total.text()}" for way, scores in found.items()]
    lines += ["", *_ways_by_class(found)]
    built = found["as built"]
    lines += ["", "As built, by stall class:"]
    lines += [f"  {name:26} {one.text()}" for name, one in sorted(built.by_class.items())]
    lines += [
        "",
        "What fills queues and pipes, by instruction of a kernel: overlap with the truth in percent",
    ]
    lines += [f"  {way:28} {_filled(scores)}" for way, scores in found.items()]
    worst = sorted(built.by_kernel.items(), key=lambda row: row[1].alike / max(1.0, row[1].samples))
    lines += ["", "As built, the worst kernels:"]
    lines += [f"  {name:34} {one.text()}" for name, one in worst[:6]]
    lines += ["", "Most missed of what a single answer can name (class, true cause -> use, blamed instead):"]
    misses = sorted(built.misses.items(), key=lambda row: -row[1])
    lines += [f"  {samples:8,.0f}  {' | '.join(key)}" for key, samples in misses[:12]]
    return "\n".join([*lines, ""])


def accuracy(scores: Scores) -> float:
    """The share of samples whose top blamed instruction is the true cause."""
    return scores.total.top / scores.total.samples if scores.total.samples else math.nan


def accuracy_alike(scores: Scores) -> float:
    """The share of samples whose top blamed instruction is the true cause or an equal of it."""
    return scores.total.alike / scores.total.samples if scores.total.samples else math.nan


def overlap(scores: Scores) -> float:
    """How far the blamed distributions agree with the true ones."""
    return scores.total.overlap / scores.total.samples if scores.total.samples else math.nan


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90"])
    parser.add_argument("--kernel", nargs="+", default=list(KERNELS))
    options = parser.parse_args()
    building, held = split(options.kernel)
    for title, names, setting in (
        ("kernels for building, settings for building", building, TUNING),
        ("kernels held back, settings for building", held, TUNING),
        ("kernels held back, settings held back", held, HELD_BACK),
    ):
        found = evaluate(names, options.arch, setting)
        sys.stdout.write(report(f"{title} ({', '.join(options.arch)})", found) + "\n")


if __name__ == "__main__":
    main()
