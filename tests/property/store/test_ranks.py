# SPDX-License-Identifier: Apache-2.0
"""Sums over ranks: any split into parts, in any order, gives what the whole gives."""

from __future__ import annotations

import io
import os
import random
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.rank_values import rank_profile, write_rank

from gpadvisor.model.profile import Profile
from gpadvisor.sandbox.codec import from_answer, to_bytes
from gpadvisor.store.load import load_bytes, load_profile
from gpadvisor.store.ranks.child import RESULT, answer
from gpadvisor.store.ranks.isolation import MEMORY_BYTES
from gpadvisor.store.ranks.members import By
from gpadvisor.store.ranks.request import SumAnswer, SumRequest

RANKS = st.lists(
    st.tuples(
        st.dictionaries(
            st.integers(0, 3),
            st.integers(1, 50).flatmap(lambda total: st.tuples(st.just(total), st.integers(0, total))),
            min_size=1,
        ),
        st.lists(st.integers(0, 10_000).map(float), min_size=1, max_size=3).map(tuple),
        st.sampled_from([None, "n1", "n2"]),
    ),
    min_size=2,
    max_size=6,
)


_SMALL_REPORT = 3_000_000


def summed(
    paths: list[Path], target: Path, *, merge: bool = False, memory_bytes: int = MEMORY_BYTES
) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        asked = SumRequest(
            files=tuple((str(path), path.name) for path in paths),
            folder=folder,
            by=By.RANK,
            merge=merge,
            keep_going=False,
            cells=False,
            memory_bytes=memory_bytes,
            number=True,
        )
        said = from_answer(answer(to_bytes(asked)), SumAnswer)
        assert isinstance(said, SumAnswer), said
        assert said.bad == {}
        data = (Path(folder) / RESULT).read_bytes()
    target.write_bytes(data)
    return data


def tables(data: bytes) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all tables."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if name.endswith(".parquet"):
                path = archive.extract(name, folder)
                found[name] = duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()
    return found


def same(left: Any, right: Any) -> bool:
    """Integers and words to the last, sums of real numbers but for the order of their addition."""
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-12, nan_ok=True)
    return bool(left == right)


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(RANKS, st.randoms(use_true_random=False))
def test_parts_merged_are_the_whole(ranks: list[Any], draw: random.Random) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profiles = [rank_profile(samples, times, host) for samples, times, host in ranks]
        files = [write_rank(folder, rank, profile) for rank, profile in enumerate(profiles)]
        whole = summed(files, folder / "whole")
        draw.shuffle(files)
        cuts = sorted(draw.sample(range(1, len(files)), draw.randrange(1, len(files))))
        parts = [files[a:b] for a, b in zip([0, *cuts], [*cuts, len(files)], strict=True)]
        merged_parts = [folder / f"part{at}" for at in range(len(parts))]
        for part, target in zip(parts, merged_parts, strict=True):
            summed(part, target)
        draw.shuffle(merged_parts)
        merged = summed(merged_parts, folder / "merged", merge=True)
    check_sums(load_bytes(whole), profiles)
    one, other = tables(whole), tables(merged)
    assert one.keys() == other.keys()
    for table in one:
        assert len(one[table]) == len(other[table]), table
        for left, right in zip(one[table], other[table], strict=True):
            assert all(map(same, left, right)), (table, left, right)


def check_sums(whole: Profile, profiles: list[Profile]) -> None:
    """No sample is lost, none is made; the same of time."""
    for name in ("k", "other"):
        own = [kernel for profile in profiles for kernel in profile.kernels if kernel.launch.kernel == name]
        there = [kernel for kernel in whole.kernels if kernel.launch.kernel == name]
        assert sum(k.total_samples for k in there) == sum(k.total_samples for k in own)
        assert sum(k.latency_samples for k in there) == sum(k.latency_samples for k in own)
        time = sum(k.launch.duration_ns or 0.0 for k in own)
        assert sum(k.launch.duration_ns or 0.0 for k in there) == pytest.approx(time)
        counts = [k.counts.warps.sum() for k in there if k.counts is not None]
        assert sum(counts) == sum(k.counts.warps.sum() for k in own if k.counts is not None)


Cells = Counter[tuple[str, str, int, str]]


def cells(profile: Profile) -> Cells:
    """Samples, latency samples and executions by kernel, section, address and reason."""
    found: Cells = Counter()
    for kernel in profile.kernels:
        if kernel.launch.failed:
            continue
        name, rows = kernel.launch.kernel, kernel.samples
        for at, total in enumerate(rows.total.tolist()):
            reason = kernel.reasons[int(rows.reason[at])].name
            key = name, kernel.sections[int(rows.section[at])], int(rows.pc[at])
            found[*key, reason] += total
            found[*key, f"{reason}, latency"] += int(rows.latency[at])
        if kernel.counts is not None:
            for at, warps in enumerate(kernel.counts.warps.tolist()):
                section = kernel.sections[int(kernel.counts.section[at])]
                found[name, section, int(kernel.counts.pc[at]), "warps"] += warps
    return found


def check_cells(profiles: list[Profile], folder: Path, draw: random.Random) -> None:
    """What the inputs have in each cell is in the sum, and in the merge of parts, in any order."""
    files = [write_rank(folder, rank, profile) for rank, profile in enumerate(profiles)]
    wanted: Cells = Counter()
    for profile in profiles:
        wanted.update(cells(profile))
    wanted = +wanted
    draw.shuffle(files)
    assert +cells(load_bytes(summed(files, folder / "whole"))) == wanted
    cuts = sorted(draw.sample(range(1, len(files)), draw.randrange(1, len(files))))
    parts = []
    for at, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(files)], strict=True)):
        summed(files[start:end], folder / f"part{at}", memory_bytes=draw.choice([24, 64]) << 20)
        parts.append(folder / f"part{at}")
    draw.shuffle(parts)
    assert +cells(load_bytes(summed(parts, folder / "merged", merge=True))) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_is_conserved(seed: int, tmp_path: Path) -> None:
    """Many launches of two kernels, and ranks that are the same to the last sample."""
    draw = random.Random(seed)
    profiles = []
    for _ in range(draw.randrange(3, 9)):
        rows = {
            at: (total := draw.choice([1, 7, 1 << 40]), draw.randrange(total + 1))
            for at in draw.sample(range(200), draw.randrange(1, 150))
        }
        times = tuple(float(draw.choice([0, 5, 5, 900])) for _ in range(draw.randrange(1, 9)))
        profiles.append(rank_profile(rows, times, draw.choice([None, "n1"])))
    profiles += [draw.choice(profiles) for _ in range(3)]
    check_cells(profiles, tmp_path, draw)


@pytest.mark.reports
@pytest.mark.parametrize("seed", range(4))
def test_every_cell_of_real_reports_is_conserved(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    paths = sorted(Path(os.environ["GPADVISOR_REPORTS"]).glob("*.ncu-rep"))
    small = [path for path in paths if path.stat().st_size < _SMALL_REPORT]
    chosen = [load_profile(draw.choice(small)) for _ in range(draw.randrange(2, 6))]
    chosen += [draw.choice(chosen) for _ in range(2)]
    check_cells(chosen, tmp_path, draw)


def test_extremes_and_whose_they_are(tmp_path: Path) -> None:
    totals = [7, 30, 30, 2]
    files = [
        write_rank(tmp_path, rank, rank_profile({1: (total, 1)}, (10.0,)))
        for rank, total in enumerate(totals)
    ]
    rows = tables(summed(files, tmp_path / "sum"))["across_samples.parquet"]
    ((k, section, pc, _, ranks, samples, latency, least, most, worst, squares),) = rows
    assert (k, section, pc, ranks, samples, latency) == (0, "k", 16, 4, sum(totals), 4)
    assert (least, most, worst) == (2, 30, 1), "the lowest rank of equals"
    assert int(squares) == sum(total * total for total in totals)
    assert load_profile(tmp_path / "sum").kernels[0].total_samples == sum(totals)
    assert np.array_equal(load_profile(tmp_path / "sum").kernels[0].samples.pc, [16])
