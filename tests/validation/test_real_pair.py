# SPDX-License-Identifier: Apache-2.0
"""The real pair on the simulator executes what was counted on the GPU, instruction by instruction."""

from __future__ import annotations

import pytest
from tests.validation.real_pair import executed, ratio, report_path, versions

pytestmark = [pytest.mark.nvdisasm, pytest.mark.reports, pytest.mark.slow]


def test_the_simulated_launch_executes_what_the_gpu_counted() -> None:
    path = report_path()
    if path is None:
        pytest.skip("reports: the folder has no real before/after pair")
    found = versions(path, hit_rates=True)
    for one in found:
        assert executed(one.simulated) == one.measured.metric("smsp__inst_executed.sum")
    measured, simulated = ratio(found)
    # A model, not the GPU: the same direction, and the size of it to a factor of two.
    assert measured / 2 < simulated < measured * 2
