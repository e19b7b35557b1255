# SPDX-License-Identifier: Apache-2.0
"""Of 36 sources of cuda-samples, Rodinia and llm.c at least 30 compile with what is installed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.validation.sources import THIRTY_SIX, attempt, chosen

pytestmark = [
    pytest.mark.validate,
    pytest.mark.toolkit,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not os.environ.get("GPADVISOR_MIRRORS"), reason="GPADVISOR_MIRRORS is not set"),
]


def test_thirty_of_thirty_six(tmp_path: Path) -> None:
    sources = list(chosen(THIRTY_SIX, Path(os.environ["GPADVISOR_MIRRORS"]), tmp_path))
    assert len(sources) == 36
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda one: attempt(one[0], (), "sm_80"), sources))
    assert sum(one.kernels >= 0 for one in outcomes) >= 30, [one for one in outcomes if one.kernels < 0]
