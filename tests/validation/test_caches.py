# SPDX-License-Identifier: Apache-2.0
"""The simulator's caches: what is said of measured and simulated runs is of both, and of nothing else."""

from __future__ import annotations

import pytest
from tests.validation.caches import Row, Run, figures, rows, table
from tests.validation.captures import FOLDER, Captures


def _run(milliseconds: float | None, hits: float | None, read: float) -> Run:
    cycles = None if milliseconds is None else milliseconds**2 * 1e6
    return Run(milliseconds=milliseconds, cycles=cycles, l1_hits=hits, read=read, written=0.0)


def test_figures_are_of_what_both_sides_have() -> None:
    found = [
        Row(kernel="k", version="before", measured=_run(4.0, 50.0, 8.0), simulated=_run(2.0, 40.0, 8.0)),
        Row(kernel="k", version="after", measured=_run(1.0, 90.0, 0.1), simulated=_run(1.0, None, 0.0)),
    ]
    text = "\n".join(figures(found))
    lines = {line[:45].strip(): line[46:] for line in text.splitlines()}
    assert lines["hits in L1 of loads, points apart"] == "mean 10.00, median 10.00 (1)"
    assert lines["|ln(simulated / measured)| of DRAM reads"] == "mean 0.00, median 0.00 (2)"
    assert lines["of times"] == "mean 0.35, median 0.35 (2)"
    assert lines["of cycles, without launching"] == "mean 0.69, median 0.69 (2)"
    assert lines["of speedups"] == "mean 0.69, median 0.69 (1)"
    assert lines["of always 1.0x"] == "mean 1.39, median 1.39 (1)"
    assert text.splitlines()[-1] == "gained 0.8 to 1.25 times what is simulated: 0 of 1 (0%)"
    assert table(found)[2].split()[2:5] == ["1.000", "1.000", "90.0"]


@pytest.mark.validate
@pytest.mark.slow
@pytest.mark.nvdisasm
def test_caches_by_address_are_nearer_to_an_h100_than_a_half_of_hits() -> None:
    captures = Captures(FOLDER / "h100")
    kernels = ("gemm_strided", "transpose_naive", "row_softmax")

    def apart(hit_rate: float | None) -> float:
        found = [row for row in rows(captures, "sm_90", hit_rate) if row.kernel in kernels]
        return sum(abs(row.simulated.read - row.measured.read) for row in found)

    assert apart(None) < apart(0.5) / 10
