# SPDX-License-Identifier: Apache-2.0
"""Which of many instructions that fill a queue a wait is shared out among."""

from __future__ import annotations

import numpy as np
import pytest

from gpadvisor.blamer.queues import _MAX_FILLERS, _Fillers


def test_the_nearest_stand_for_all_that_are_light() -> None:
    found = _Fillers(range(200), np.ones(200)).near(100)
    assert [at for at, _ in found] == [*range(100 - _MAX_FILLERS // 2, 100 + _MAX_FILLERS // 2)]
    assert sum(weight for _, weight in found) == pytest.approx(200)


@pytest.mark.parametrize(("use", "first"), [(0, 0), (199, 200 - _MAX_FILLERS)])
def test_at_an_end_they_are_all_on_one_side(use: int, first: int) -> None:
    found = _Fillers(range(200), np.ones(200)).near(use)
    assert [at for at, _ in found] == [*range(first, first + _MAX_FILLERS)]


def test_what_fills_it_most_is_always_among_them() -> None:
    occupied = np.ones(200)
    occupied[0] = 50.0
    found = dict(_Fillers(range(200), occupied).near(199))
    assert found[0] == 50.0
    assert sum(found.values()) == pytest.approx(249)
    assert len(found) == _MAX_FILLERS
