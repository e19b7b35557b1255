# SPDX-License-Identifier: Apache-2.0
"""Published steps: sources come out of bare mirrors, and what is not told counts as no gain."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.validation.published_steps import (
    Outcome,
    Step,
    Told,
    figures,
    outcome_of,
    outcomes,
    steps,
    table,
    text_of,
)
from tests.validation.published_steps_held_out import HELD_OUT
from tests.validation.published_steps_rows import CHAINS, Chain, Version

_SLOW = '#include "common.h"\n__global__ void k(float* x, int n) { x[threadIdx.x * n] += 1.0f; }\n'
_MIRRORS = os.environ.get("GPADVISOR_MIRRORS")


def _chain(mirrors: Path) -> Chain:
    """A bare mirror with one file, and two versions of its kernel."""
    tree = mirrors / "tree"
    tree.mkdir(parents=True)
    (tree / "k.cu").write_text(_SLOW)
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    bare = mirrors / "one+two" / "repo"
    subprocess.run(["git", "clone", "-q", "--bare", str(tree), str(bare)], check=True)
    version = Version(
        name="1", files=("k.cu",), kernel="k", grid=(1, 1, 1), block=(32, 1, 1),
        arguments="pointer,int=64", time=6.0,
    )  # fmt: skip
    after = replace(
        version, name="2", time=3.0, accepted=("GPA106",), port=((r"threadIdx\.x \* n", "threadIdx.x"),)
    )
    return Chain(
        name="toy", repository="one/two", revision="HEAD", device="", arch="sm_80", sms=1,
        port=((r'#include "[^"]*"\n', ""),), versions=(version, after),
    )  # fmt: skip


def _step(chain: Chain) -> Step:
    return Step(chain=chain, before=chain.versions[0], after=chain.versions[1])


def test_a_version_is_read_from_its_mirror_at_its_revision(tmp_path: Path) -> None:
    chain = _chain(tmp_path)
    assert text_of(chain, chain.versions[1], tmp_path).startswith("__global__ void k(float* x, int n) { x[th")
    assert "x[threadIdx.x] +=" in text_of(chain, chain.versions[1], tmp_path)


def test_a_file_that_is_not_there_is_told_and_no_step(tmp_path: Path) -> None:
    chain = _chain(tmp_path)
    gone = replace(chain, versions=(replace(chain.versions[0], files=("gone.cu",)), chain.versions[1]))
    outcome = outcome_of(_step(gone), tmp_path)
    assert "one/two has no gone.cu" in outcome.failure
    assert "not run" in table([(_step(gone), outcome)])[0]
    assert figures([(_step(gone), outcome)]) == ["steps run                                  0 of 1"]


def test_a_repository_that_is_not_at_hand_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = replace(_chain(tmp_path), repository="some/where")
    assert outcomes([_step(chain)], tmp_path) == []
    assert "skipped: toy: 1 to 2, no some/where" in capsys.readouterr().out


def test_what_is_not_told_counts_as_no_gain(tmp_path: Path) -> None:
    step = _step(_chain(tmp_path))  # achieved 2.0x
    told = Told(code="GPA106", title="scattered", low=1.5, expected=2.0, high=2.5)
    other = replace(told, code="GPA201")
    rows = [
        (step, Outcome(told=(other, told), simulated=2.0)),
        (step, Outcome(told=(other,), simulated=2.0)),
        (step, Outcome(told=(other, other, other, told), simulated=2.0)),
    ]
    text = "\n".join(figures(rows))
    assert "the change is among the first three      1 (33%)" in text
    assert "achieved is inside its range             2 (67%)" in text
    assert "mean |ln(expected / achieved)|           0.23" in text  # ln 2 / 3
    assert "told 2. with 2.00x (1.50 to 2.50)" in table(rows)[1]


def test_what_is_told_without_a_figure_counts_as_no_gain_and_is_named(tmp_path: Path) -> None:
    step = _step(_chain(tmp_path))
    rows = [(step, Outcome(plain=("GPA106",))), (step, Outcome(plain=("GPA301",)))]
    text = "\n".join(figures([*rows, (step, Outcome(told=(), simulated=2.0))]))
    assert "the change is among the first three      0 (0%)" in text
    assert "it is told without a figure 1" in text
    assert "mean |ln(expected / achieved)|           0.69" in text
    assert "told without a figure;" in table(rows)[1]
    assert "not told;" in table(rows)[3]


def test_what_gained_nothing_is_asked_for_what_it_was_promised(tmp_path: Path) -> None:
    step = _step(_chain(tmp_path))
    control = replace(step, after=replace(step.after, time=6.0))
    told = Told(code="GPA106", title="scattered", low=1.0, expected=1.2, high=1.5)
    assert figures([(control, Outcome(told=(told,)))])[-1].endswith("nothing promised  0")
    assert figures([(control, Outcome(told=(replace(told, code="GPA201"),)))])[-1].endswith("promised  1")


def test_each_step_names_rules_and_figures() -> None:
    every = [*steps(), *steps(HELD_OUT)]
    assert len({chain.repository for chain in CHAINS}) >= 4
    assert len(every) >= 70
    assert all(step.achieved > 0 and step.after.change and step.after.accepted for step in every)
    assert {one.repository for one in HELD_OUT}.isdisjoint(one.repository for one in CHAINS)


@pytest.mark.validate
@pytest.mark.slow
@pytest.mark.toolkit
@pytest.mark.skipif(not _MIRRORS, reason="GPADVISOR_MIRRORS is not set")
def test_scattered_columns_of_a_product_come_first_or_second() -> None:
    (step,) = (one for one in steps() if one.name == "sgemm, siboehm: 1 to 2")
    cure = step.cure(outcome_of(step, Path(str(_MIRRORS))))
    assert cure is not None
    assert cure[0] <= 2
    assert cure[1].low <= step.achieved <= cure[1].high
