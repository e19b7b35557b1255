# SPDX-License-Identifier: Apache-2.0
"""Estimates beside measured outcomes: real reports of a kernel before and after a change by its authors.

``python -m tests.validation.pairs PAIRS.json REPORTS`` prints, for every pair, whether the cure that its
authors found is among the first three suggestions, and what it was expected to give beside what it gave;
then how far off the expected value, the paper's value and 1.0x are, as the mean of
``|ln(estimate / achieved)|``. A cure that is not offered counts as 1.0x. Controls are changes that gained
nothing. Last, the same for the reports without their samples.

``PAIRS.json`` lists pairs with ``before`` and ``after`` (repo, path, launch, duration), ``achieved`` (time
before over time after) and ``accepted`` (codes of the rules whose cure covers the change; empty for a
control).
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

from gpadvisor.estimators import constants
from gpadvisor.model.advice import KernelAdvice, Suggestion
from gpadvisor.model.profile import Evidence, Profile
from gpadvisor.model.remedy import Remedy
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.store import isolation
from gpadvisor.store.isolation import being_read

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "profiles" / "pairs.json"
TOP = 3
CONTROL_LIMIT = 1.1
"""A control for which more than this is expected was promised a gain."""


WORTH: Final = 1.03
"""Less is not offered by default."""
ALSO: Final[Mapping[str, frozenset[str]]] = {
    "cy-reduce-v0-v1": frozenset({"GPA109"}),  # idle threads of warps by tid % (2 * i)
    "cy-reduce-v2-v3": frozenset({"GPA109"}),  # idle threads of the tree
    "cy-reduce-v3-v4": frozenset({"GPA109"}),  # idle warps of its last steps
    "cy-relu-base-v1": frozenset({"GPA108"}),  # float4
    "cy-sgemm-v0-v2": frozenset({"GPA107"}),  # tiles in shared memory
    "cy-sgemm-v2-v4": frozenset({"GPA107"}),  # four results a thread
    "cy-sgemm-v4-v5": frozenset({"GPA107"}),
    "cy-sgemm-v5-v5_2": frozenset({"GPA107"}),
    "cy-sgemm-v6-v8": frozenset({"GPA107"}),
    "am-add-v5-v6": frozenset({"GPA108"}),
}
"""Rules that cover a change, too, and are newer than the list of pairs."""
TRIED: Final[Mapping[str, frozenset[str]]] = {
    "cy-relu-v1-v2": frozenset({"GPA107"}),
    "cy-relu-base-v3": frozenset({"GPA107"}),
    "cy-dotmul-base-v1": frozenset({"GPA108"}),
    "cy-atomic-base-v1": frozenset({"GPA108"}),
    "cy-sgemm-v2-v2_2": frozenset({"GPA301", "GPA302"}),
    "cy-upsample-v1-v2": frozenset({"GPA107"}),
    "es-bb-loadA": frozenset({"GPA106"}),
    "am-add-v2-v3": frozenset({"GPA201"}),
}
"""Of controls: rules whose suggestion would have been to do what gained nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A measured change."""

    name: str
    repository: str
    report: Path
    launch: int
    change: str
    achieved: float  # time before over time after
    accepted: frozenset[str]  # rules whose cure covers the change; empty for a control
    same_code: str  # kernels of one name and launch share their advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was said of a pair's first version beside what the change gave."""

    pair: Pair
    cure: Suggestion | None  # the best ranked one that covers the change
    rank: int | None  # among all suggestions that are shown, from 1
    best: float  # the largest expected speedup of any suggestion
    tried: float  # of a control: the largest that was expected of what its authors tried

    @property
    def expected(self) -> float:
        """1.0 where the cure is not offered."""
        return 1.0 if self.cure is None or self.cure.speedup is None else self.cure.speedup.expected

    @property
    def paper(self) -> float:
        """The paper's value of the same suggestion; where the paper has none, 1.0."""
        value = None if self.cure is None or self.cure.speedup is None else self.cure.speedup.paper
        return 1.0 if value is None else value

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range."""
        estimate = None if self.cure is None else self.cure.speedup
        return (1.0, 1.0) if estimate is None else (estimate.low, estimate.high)

    @property
    def inside(self) -> bool:
        """Whether the achieved speedup lies inside the range as it is printed."""
        low, high = self.ends
        return low <= self.pair.achieved <= high


def report_name(side: Mapping[str, str]) -> str:
    """The file of one side in the folder of reports."""
    return side["repo"].replace("/", "_") + "__" + side["path"].replace("/", "__")


def read_pairs(path: Path, reports: Path) -> list[Pair]:
    """The pairs whose report of the first version is at hand."""
    found = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        before = row["before"]
        report = reports / report_name(before)
        if report.is_file():
            found.append(
                Pair(
                    name=row["id"],
                    repository=before["repo"],
                    report=report,
                    launch=before["launch"],
                    change=row["change"],
                    achieved=row["achieved"],
                    accepted=frozenset(row["accepted"]) | ALSO.get(row["id"], frozenset()),
                    same_code=f"{report.name}:{before['launch']}",
                )
            )
    return found


def outcomes(
    pairs: Iterable[Pair], *, show_all: bool = False, note: Callable[[str], object] = str
) -> list[Outcome]:
    """The advice for every pair's first version; one analysis for each launch."""
    known: dict[str, KernelAdvice] = {}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder, "cache"))
        for pair in pairs:
            if pair.same_code not in known:
                note(f"{pair.name} ({pair.report.name})")
                request = Request(
                    settings=Settings(top=100), launch=pair.launch, show_all=show_all, root=Path(folder)
                )
                (known[pair.same_code],) = advise_file(
                    pair.report, request, lambda _: None, cache
                ).advice.kernels
            found.append(outcome(pair, known[pair.same_code].suggestions))
    return found


def outcome(pair: Pair, suggestions: Sequence[Suggestion]) -> Outcome:
    """One pair beside its advice."""
    estimated = [one for one in suggestions if one.speedup is not None]
    # GPA301 names two changes: what pairs measured is a launch, and no loop that threads share.
    ranked = [
        (rank, one)
        for rank, one in enumerate(estimated, 1)
        if one.code in pair.accepted and Remedy.SHARED_PASSES not in one.remedies
    ]
    rank, cure = ranked[0] if ranked else (None, None)
    best = max((one.speedup.expected for one in estimated if one.speedup is not None), default=1.0)
    tried = TRIED.get(pair.name, frozenset())
    promised = max(
        (one.speedup.expected for one in estimated if one.speedup and one.code in tried), default=1.0
    )
    return Outcome(pair=pair, cure=cure, rank=rank, best=best, tried=promised)


def log_error(estimate: float, achieved: float) -> float:
    """``|ln(estimate / achieved)|``."""
    return abs(math.log(estimate / achieved))


def summary(title: str, found: Sequence[Outcome]) -> str:
    """One row: errors, bias, share inside, width of the ranges, share in the top three."""
    if not found:
        return f"{title:36} no pair"

    def mean(value: Callable[[Outcome], float]) -> float:
        return statistics.fmean(value(one) for one in found)

    offered = [one for one in found if one.cure is not None]
    widths = [one.ends[1] / one.ends[0] for one in offered]
    width = f"{statistics.median(widths):5.2f}" if widths else "    -"
    return (
        f"{title:36} {len(found):3} {mean(lambda one: log_error(one.expected, one.pair.achieved)):9.3f}"
        f"{mean(lambda one: log_error(one.paper, one.pair.achieved)):8.3f}"
        f"{mean(lambda one: log_error(1.0, one.pair.achieved)):8.3f}"
        f"{mean(lambda one: math.log(one.expected / one.pair.achieved)):+8.3f}"
        f"{100 * mean(lambda one: one.inside):7.0f} %"
        f"{width:>7}"
        f"{100 * mean(lambda one: one.rank is not None and one.rank <= TOP):7.0f} %"
        f"{100 * len(offered) / len(found):7.0f} %"
    )


HEAD = (
    f"{'':36} {'n':>3} {'expected':>9}{'paper':>8}{'1.0x':>8}{'bias':>8}{'inside':>9}{'width':>7}"
    f"{'top 3':>9}{'offered':>9}"
)


def least_removed(found: Iterable[Outcome]) -> str:
    """Of what was expected to go, the shares that cures with a gain removed: how many, and the least two."""
    told = [one for one in found if one.pair.accepted and min(one.pair.achieved, one.expected) >= WORTH]
    shares = sorted((1 - 1 / one.pair.achieved) / (1 - 1 / one.expected) for one in told)
    least = ", ".join(f"{share:.2f}" for share in shares[:2])
    return f"Of what was expected {len(shares)} cures with a gain removed {least} and more"


def groups(found: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    """Outcomes by a key, in order of the key."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for one in found:
        parts[key(one)].append(one)
    return dict(sorted(parts.items()))


def row(one: Outcome) -> str:
    """One pair."""
    low, high = one.ends
    said = "not offered" if one.cure is None else f"{one.expected:5.2f} ({low:.2f}-{high:.2f})"
    paper = "" if one.cure is None else f"{one.paper:.2f}"
    code = "-" if one.cure is None else one.cure.code
    mark = "inside" if one.inside else "below" if one.pair.achieved < low else "above"
    return (
        f"{one.pair.name:22} {one.pair.achieved:6.2f}  {said:20} {paper:>6} {code:7} "
        f"{one.rank or '-':>2}  {mark:7} {one.pair.change}"
    )


OVERLAPS: Final = (2.0, 3.0, 4.0, 6.0)
"""Of the one constant of the estimators that was fitted on pairs (``estimators/constants.py``)."""


ByOverlap = Mapping[float, Sequence[Outcome]]


def fitting(by_overlap: ByOverlap, without: str = "") -> float:
    """The constant with the smallest error over all cures but those of one repository."""

    def error(value: float) -> float:
        return sum(
            log_error(one.expected, one.pair.achieved)
            for one in by_overlap[value]
            if one.pair.accepted and one.pair.repository != without
        )

    return min(by_overlap, key=error)


def left_out(by_overlap: ByOverlap) -> dict[str, tuple[float, list[Outcome]]]:
    """By repository the constant that fits the others best, and its own cures with that."""
    repositories = {
        one.pair.repository for found in by_overlap.values() for one in found if one.pair.accepted
    }
    found = {}
    for repository in sorted(repositories):
        value = fitting(by_overlap, repository)
        own = [one for one in by_overlap[value] if one.pair.accepted and one.pair.repository == repository]
        found[repository] = value, own
    return found


def fitted(by_overlap: ByOverlap) -> str:
    """What the one fitted constant would be, and with each repository left out."""
    values = ", ".join(
        f"{value:g} without {repository}" for repository, (value, _) in left_out(by_overlap).items()
    )
    return f"OVERLAP that fits best: {fitting(by_overlap):g}; {values}"


def report(found: Sequence[Outcome], without: Sequence[Outcome] = ()) -> str:
    """Every table; ``without`` are the cures, each with the constant that fits other repositories."""
    cures = [one for one in found if one.pair.accepted]
    controls = [one for one in found if not one.pair.accepted]
    lines = [
        f"{'pair':22} {'ach.':>6}  {'expected (range)':20} {'paper':>6} {'rule':7} {'#':>2}  achieved is"
    ]
    lines += [row(one) for one in cures]
    lines += ["", "Controls: achieved, expected of what was tried, expected of any suggestion"]
    lines += [
        f"{one.pair.name:22} {one.pair.achieved:6.2f}  {one.tried:5.2f}  {one.best:5.2f}  {one.pair.change}"
        for one in controls
    ]
    promised = sum(one.tried > CONTROL_LIMIT for one in controls)
    lines += [f"{promised} of {len(controls)} controls were promised more than {CONTROL_LIMIT}x"]
    lines += ["", "Mean |ln(estimate / achieved)|", HEAD, summary("all cures", cures)]
    worth = [one for one in cures if one.pair.achieved >= WORTH]
    lines.append(summary(f"those that gained {WORTH}x or more", worth))
    if without:
        lines.append(summary("all, each repository left out", without))
    for repository, part in groups(cures, lambda one: one.pair.repository).items():
        lines.append(summary(repository, part))
    lines += ["", "By rule", HEAD]
    for code, part in groups(cures, lambda one: "-" if one.cure is None else one.cure.code).items():
        lines.append(summary(code, part))
    return "\n".join(lines)


_DEFAULT_SET: Final = re.compile(
    r"pct_of_peak|^launch__|^device__|^gpu__time|cycles_(?:elapsed|active)|warps_active"
)


def without_samples(profile: Profile) -> Profile:
    """A report as Nsight Compute's default set of sections makes it: loads of units, launch, occupancy."""
    kernels = []
    for one in profile.kernels:
        columns = {field.name: getattr(one.samples, field.name)[:0] for field in fields(one.samples)}
        kernels.append(
            replace(
                one,
                evidence=Evidence.STATIC,
                reasons=(),
                samples=replace(one.samples, **columns),
                counts=None,
                pc_metrics={},
                metrics={name: value for name, value in one.metrics.items() if _DEFAULT_SET.search(name)},
            )
        )
    return replace(profile, kernels=tuple(kernels))


@contextmanager
def _read_without_samples(
    path: Path, *, timeout_seconds: float, memory_bytes: int, gpubins: Path | None = None
) -> Iterator[Callable[[], Profile]]:
    with being_read(
        path, timeout_seconds=timeout_seconds, memory_bytes=memory_bytes, gpubins=gpubins
    ) as read:
        yield lambda: without_samples(read())


def counted(pairs: Iterable[Pair]) -> str:
    """The summary for the same reports without their samples and without counts of instructions."""
    with patch.object(isolation, "being_read", _read_without_samples):
        found = outcomes(pairs)
    cures = [one for one in found if one.pair.accepted]
    lines = ["The same reports with the counters of Nsight Compute's default set alone", HEAD]
    lines.append(summary("all cures", cures))
    for code, part in groups(cures, lambda one: "-" if one.cure is None else one.cure.code).items():
        lines.append(summary(code, part))
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the tables, or why there are none."""
    folder = arguments[1] if len(arguments) > 1 else os.environ.get("GPADVISOR_REPORTS", "")
    path = Path(arguments[0]) if arguments else PAIRS
    pairs = read_pairs(path, Path(folder)) if folder and path.is_file() else []
    if not pairs:
        sys.stdout.write(
            f"no measured pairs: {path} and the folder GPADVISOR_REPORTS name none that is here\n"
        )
        return 0
    by_overlap = {}
    for value in OVERLAPS:
        with patch.object(constants, "OVERLAP", value):
            by_overlap[value] = outcomes(pairs, note=lambda text: sys.stderr.write(text + "\n"))
    without = [one for _, own in left_out(by_overlap).values() for one in own]
    sys.stdout.write(
        f"{report(by_overlap[constants.OVERLAP], without)}\n\n{fitted(by_overlap)}\n"
        f"{least_removed(by_overlap[constants.OVERLAP])}\n\n{counted(pairs)}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
