# SPDX-License-Identifier: Apache-2.0
"""The benchmark of sums over ranks: it makes profiles of each shape, and what it measures adds them up."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import ranks
from gpadvisor.store.load import load_profile


@pytest.mark.parametrize("name", ranks.SHAPES)
def test_a_sum_of_made_profiles_has_all_of_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "FOLDER", tmp_path)
    monkeypatch.setattr(ranks, "DISTINCT", 2)  # the third is one of them under another rank
    shape = ranks.smaller(ranks.SHAPES[name], 40)
    paths = ranks.make(tmp_path / "made", 3, shape)
    profiles = [load_profile(path) for path in paths]
    assert "s of processor" in ranks.measured(paths, "--partial")
    whole = load_profile(tmp_path / "sum.gpadvisor")
    samples = [sum(kernel.total_samples for kernel in profile.kernels) for profile in profiles]
    assert sum(kernel.total_samples for kernel in whole.kernels) == sum(samples)
    assert samples[0] != samples[1]
    assert len(whole.kernels) == shape.kernels
    assert {len(profile.kernels) for profile in profiles} == {shape.kernels * shape.launches}
