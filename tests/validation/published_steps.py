# SPDX-License-Identifier: Apache-2.0
"""Published optimizations in steps: is the author's next change named, and what is expected of it?

Run as ``python -m tests.validation.published_steps [MIRRORS]``, where the folder (else ``GPADVISOR_MIRRORS``)
holds bare repositories named OWNER+NAME/repo. Each version of a kernel is compiled and advised as a user
without a GPU would do it (``advise --model``), with its own launch; beside what is told of it stands what its
author measured of the next version. What one version gains over the other in the simulator is printed, too:
where that is far from what was measured, no advice that rests on it can be near.
Steps that were run with this very code are taken from ``build/validation``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from tests.kernels import ROOT
from tests.validation.published_steps_held_out import HELD_OUT
from tests.validation.published_steps_rows import CHAINS, Chain, Version
from tests.validation.table3 import replaced, simulated
from tests.validation.what_ifs import within_range

from gpadvisor.cli import options
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache, installation_digest
from gpadvisor.pipeline.launches import StatedLaunch
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

TOP: Final = 3
GAINS: Final = 1.03
"""What gains less is not offered, and rightly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One suggestion as it is shown."""

    code: str
    title: str
    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is said of one version, beside what the simulator makes of the next."""

    told: tuple[Told, ...] = ()  # in the order of the screen, those with a number
    plain: tuple[str, ...] = ()  # rules that tell a change without one
    simulated: float | None = None  # duration of this version over that of the next
    samples: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Two versions that follow one another."""

    chain: Chain
    before: Version
    after: Version

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.chain.name}: {self.before.name} to {self.after.name}"

    @property
    def achieved(self) -> float:
        """As published: time before over time after."""
        return self.before.time / self.after.time

    @property
    def runs(self) -> str:
        """Everything that its outcome depends on."""
        sides = [replace(one, time=1.0, change="", accepted=()) for one in (self.before, self.after)]
        return repr((replace(self.chain, versions=()), *sides))

    def cure(self, outcome: Outcome) -> tuple[int, Told] | None:
        """The first suggestion that is the author's change, with its rank."""
        ranked = enumerate(outcome.told, 1)
        return next(((rank, one) for rank, one in ranked if one.code in self.after.accepted), None)

    def is_plain(self, outcome: Outcome) -> bool:
        """Whether the author's change is told without a figure alone."""
        return self.cure(outcome) is None and not set(self.after.accepted).isdisjoint(outcome.plain)

    def expected(self, outcome: Outcome) -> float:
        """Of the author's change; 1.0 where it is not offered."""
        cure = self.cure(outcome)
        return 1.0 if cure is None else cure[1].expected


def steps(chains: Iterable[Chain] = CHAINS) -> list[Step]:
    """Every step of every chain."""
    return [
        Step(chain=chain, before=before, after=after)
        for chain in chains
        for before, after in pairwise(chain.versions)
    ]


def text_of(chain: Chain, version: Version, mirrors: Path) -> str:
    """One unit with the kernel of a version."""
    mirror = mirrors / chain.repository.replace("/", "+") / "repo"
    revision = version.revision or chain.revision
    parts = []
    for file in version.files:
        command = ["git", "--git-dir", str(mirror), "show", f"{revision}:{file}"]
        found = subprocess.run(command, capture_output=True, check=False)
        if found.returncode:
            raise FileNotFoundError(f"{chain.repository} has no {file} at {revision}")
        parts.append(found.stdout.decode("utf-8", "replace"))
    text = "\n".join(parts)
    for pattern, new in chain.port:  # not every version has what is left out of all
        text = re.sub(pattern, new, text)
    return f"{replaced(text, version.port)}\n{version.instance}"


def request_of(chain: Chain, version: Version, place: Path) -> Request:
    """What a user would ask for."""
    return Request(
        settings=Settings(arch=chain.arch, flags=chain.flags),
        kernel=re.compile(rf"\b{version.kernel}\b"),
        stated=StatedLaunch(
            grid=version.grid,
            block=version.block,
            dynamic_shared_bytes=version.shared or None,
            arguments=options.kernel_arguments(version.arguments),
            sms=chain.sms,
        ),
        model=True,
        root=place,
    )


def outcome_of(step: Step, mirrors: Path) -> Outcome:
    """Advise the first version, and simulate both."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        try:
            runs = []
            for version in (step.before, step.after):
                path = place / f"{version.name}.cu"
                path.write_text(text_of(step.chain, version, mirrors), encoding="utf-8")
                request = request_of(step.chain, version, place)
                if version is step.before:
                    advised = advise_file(path, request, lambda _: None, Cache(None))
                runs.append(simulated(path, request)[1].duration_seconds)
        except (GpadvisorError, OSError, ValueError) as error:
            return Outcome(failure=" ".join(str(error).split())[:300])
    (kernel,) = advised.advice.kernels
    before, after = runs
    return replace(_told(kernel), simulated=before / after if before and after else None)


def _told(kernel: KernelAdvice) -> Outcome:
    told = tuple(
        Told(
            code=one.code,
            title=one.title,
            low=one.speedup.low,
            expected=one.speedup.expected,
            high=one.speedup.high,
        )
        for one in kernel.suggestions
        if one.speedup is not None
    )
    plain = tuple(one.code for one in kernel.suggestions if one.speedup is None)
    return Outcome(told=told, plain=plain, samples=kernel.samples.total)


def outcomes(chosen: Iterable[Step], mirrors: Path) -> list[tuple[Step, Outcome]]:
    """Of every step whose repository is at hand."""
    store, found = Cache(ROOT / "build" / "validation"), []
    for step in chosen:
        if not (mirrors / step.chain.repository.replace("/", "+") / "repo").is_dir():
            sys.stdout.write(f"skipped: {step.name}, no {step.chain.repository} in {mirrors}\n")
            continue
        sys.stderr.write(f"{step.name}\n")
        kept = [one.name for one in fields(Outcome)]
        key = store.key("published steps", {"step": step.runs, "code": installation_digest(), "kept": kept})
        stored = store.get(key)
        if stored is None:
            outcome = outcome_of(step, mirrors)
            store.put(key, json.dumps(asdict(outcome)).encode())
        else:
            values = json.loads(stored)
            told, plain = tuple(Told(**one) for one in values["told"]), tuple(values["plain"])
            outcome = Outcome(**{**values, "told": told, "plain": plain})
        found.append((step, outcome))
    return found


def table(rows: Sequence[tuple[Step, Outcome]]) -> list[str]:
    """One line for each step, and under it what is told."""
    lines = []
    for step, outcome in rows:
        if outcome.failure:
            lines.append(f"{step.name}: not run: {outcome.failure}")
            continue
        cure = step.cure(outcome)
        rules = "/".join(sorted(step.after.accepted))
        unsaid = "told without a figure" if step.is_plain(outcome) else "not told"
        promised = unsaid if cure is None else f"{_place(*cure)}"
        ran = "cut off" if outcome.simulated is None else f"{outcome.simulated:.2f}x"
        lines += [
            f"{step.name}: {step.after.change} ({rules})",
            f"    achieved {step.achieved:.2f}x, simulated {ran}, {promised}; {outcome.samples:,} samples",
            *(f"      {rank}. {_words(one)}" for rank, one in enumerate(outcome.told[:TOP], 1)),
        ]
    return lines


def _place(rank: int, told: Told) -> str:
    return f"told {rank}. with {told.expected:.2f}x ({told.low:.2f} to {told.high:.2f})"


def _words(told: Told) -> str:
    return f"{told.code} {told.expected:.2f}x ({told.low:.2f} to {told.high:.2f}) {told.title}"


def figures(rows: Sequence[tuple[Step, Outcome]]) -> list[str]:
    """What the table comes to; a change that is not told counts as 1.0x."""
    ran = [(step, one) for step, one in rows if not one.failure]
    gains = [(step, one) for step, one in ran if step.achieved >= GAINS]
    others = [(step, one) for step, one in ran if step.achieved < GAINS]
    lines = [f"steps run                                  {len(ran)} of {len(rows)}"]
    if gains:
        lines += _figures(gains)
    if others:
        silent = sum(step.expected(one) < GAINS for step, one in others)
        lines.append(f"of {len(others)} that gain less than {GAINS}x, nothing promised  {silent}")
    ratios = [step.achieved / one.simulated for step, one in ran if one.simulated is not None]
    return [*lines, within_range(ratios)] if ratios else lines


def _figures(gains: Sequence[tuple[Step, Outcome]]) -> list[str]:
    ranks = [None if (cure := step.cure(one)) is None else cure[0] for step, one in gains]
    told = sum(rank is not None and rank <= TOP for rank in ranks)
    plain = sum(step.is_plain(one) for step, one in gains)
    inside = sum(
        (cure := step.cure(one)) is not None and cure[1].low <= step.achieved <= cure[1].high
        for step, one in gains
    )
    nothing = statistics.fmean(math.log(step.achieved) for step, _ in gains)
    off = [abs(math.log(step.expected(one) / step.achieved)) for step, one in gains]
    model = [abs(math.log(one.simulated / step.achieved)) for step, one in gains if one.simulated is not None]
    return [
        f"steps that gain {GAINS}x or more                {len(gains)}",
        f"  the change is among the first three      {told} ({told / len(gains):.0%})",
        f"  of the others it is told without a figure {plain}",
        f"  achieved is inside its range             {inside} ({inside / len(gains):.0%})",
        f"  mean |ln(expected / achieved)|           {statistics.fmean(off):.2f}",
        f"  of always 1.0x                           {nothing:.2f}",
        f"  of the two simulated versions            {statistics.fmean(model):.2f} ({len(model)})",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mirrors", nargs="?", type=Path, default=os.environ.get("GPADVISOR_MIRRORS"))
    parser.add_argument("--chain", default="", help="only steps whose name holds this")
    given = parser.parse_args()
    if given.mirrors is None:
        sys.stdout.write("published steps: skipped, GPADVISOR_MIRRORS names no folder of bare repositories\n")
        return
    for heading, chains in (("", CHAINS), ("held out when first run", HELD_OUT)):
        chosen = [step for step in steps(chains) if given.chain in step.name]
        rows = outcomes(chosen, Path(given.mirrors))
        sys.stdout.write("\n".join([heading, *table(rows), "", *figures(rows), ""]))


if __name__ == "__main__":
    main()
