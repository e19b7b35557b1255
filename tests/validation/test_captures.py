# SPDX-License-Identifier: Apache-2.0
"""What an H100 made of our kernels: all of them, right, and nearer to the advice than to the paper."""

from __future__ import annotations

import json
import statistics

import pytest
from tests.validation.captures import FOLDER, GAIN, KERNELS, VERSIONS, Captures, measured_speedups, outcomes
from tests.validation.pairs import log_error


@pytest.fixture(scope="module")
def captures() -> Captures:
    return Captures(FOLDER / "h100")


def test_every_kernel_was_measured_in_both_versions(captures: Captures) -> None:
    """But for those that were added since."""
    assert captures.gpu is not None
    assert captures.gpu.arch == "sm_90"
    assert len(captures.kernels()) == 49
    assert set(captures.kernels()) <= {path.parent.name for path in KERNELS.glob("*/kernel.toml")}
    assert captures.failures() == {}
    assert all(len(captures.times(kernel, one)) == 21 for kernel in captures.kernels() for one in VERSIONS)
    assert {kernel for kernel, _ in measured_speedups()} == set(captures.kernels())


def test_every_version_computed_what_its_reference_does(captures: Captures) -> None:
    rows = [json.loads(line) for text in captures.checks().values() for line in text.splitlines()]
    compared = [row for row in rows if "worst" in row]
    assert len(captures.checks()) == 49
    assert len(compared) >= 2 * 49
    assert max(row["worst"] for row in compared) <= 1.0


@pytest.mark.validate
def test_advice_is_nearer_than_the_paper_s_value(captures: Captures) -> None:
    gained = [one for one in outcomes(captures) if one.pair.achieved >= GAIN]
    assert len(gained) == 30
    expected, paper, nothing = (
        statistics.fmean(log_error(value, one.pair.achieved) for value, one in values)
        for values in (
            [(one.expected, one) for one in gained],
            [(one.paper, one) for one in gained],
            [(1.0, one) for one in gained],
        )
    )
    assert expected < 0.5 * paper < 0.5 * nothing
    assert statistics.fmean(one.inside for one in gained) > 0.5
    assert statistics.fmean(one.rank is not None and one.rank <= 3 for one in gained) > 0.7
