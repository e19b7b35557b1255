# SPDX-License-Identifier: Apache-2.0
"""Of mutated reports every sample that NVIDIA's ncu_report reads is read here, too, or its loss is said."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz.mutators import report as mutated
from tests.fuzz.targets import seeds

from gpadvisor.errors import ProfileError
from gpadvisor.model.profile import Profile
from gpadvisor.store.load import load_bytes
from gpadvisor.store.ncu import container

DUMP = Path(__file__).parent / "dump_samples.py"
FOLDER = os.environ.get("GPADVISOR_REPORTS")
REPORTS = sorted(Path(FOLDER).glob("*.ncu-rep")) if FOLDER else []

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None, reason="ncu_report is not installed"
)
Samples = list[tuple[str, int]] | None
"""Name and samples of each kernel; None where a reader gives up."""


def nvidia_reads(paths: list[Path]) -> list[Samples]:
    """What their library reads from each, in processes of its own: it may crash or hang on one of them."""
    found: list[Samples] = []
    while len(found) < len(paths):
        try:
            done = subprocess.run(
                [sys.executable, str(DUMP), *map(str, paths[len(found) :])],
                capture_output=True,
                timeout=100,
                check=False,
            )
            lines, gave_up = done.stdout, done.returncode != 0
        except subprocess.TimeoutExpired as late:
            lines, gave_up = late.stdout or b"", True
        found += [
            None if row is None else [tuple(one) for one in row]
            for row in map(json.loads, lines.splitlines())
        ]
        found += [None] * gave_up
    return found


def said(profile: Profile) -> Counter[str]:
    problems = [*profile.problems, *(problem for kernel in profile.kernels for problem in kernel.problems)]
    return Counter(problem.code.value for problem in problems)


def lost(data: bytes, theirs: Samples, before: Counter[str]) -> str | None:
    """What of theirs we have not, and say nothing of."""
    try:
        profile = load_bytes(data)
    except ProfileError:
        return None
    ours = Counter[str]()
    for kernel in profile.kernels:
        ours[kernel.launch.kernel] += kernel.total_samples
    expected = Counter[str]()
    for name, samples in theirs or ():
        expected[name] += samples
    missing = expected - ours
    return f"{dict(missing)} of {dict(expected)}" if missing and not said(profile) - before else None


def differences(
    originals: list[bytes], count: int, seed: int, folder: Path
) -> tuple[list[str], Counter[str]]:
    """What was lost silently on mutated reports, and how the readers took them."""
    rng = random.Random(seed)
    known = [said(load_bytes(data)) for data in originals]
    wrong: list[str] = []
    took = Counter[str]()
    chosen = [rng.randrange(len(originals)) for _ in range(count)]
    inputs = []
    for index in chosen:
        data = mutated(originals[index], rng)
        for _ in range(rng.choice((0, 0, 1, 3))):
            data = mutated(data, rng)
        inputs.append(data)
    paths = [folder / f"{number}.ncu-rep" for number in range(count)]
    for path, data in zip(paths, inputs, strict=True):
        path.write_bytes(data)
    for index, data, path, theirs in zip(chosen, inputs, paths, nvidia_reads(paths), strict=True):
        took["read by NVIDIA" if theirs is not None else "refused by NVIDIA"] += 1
        what = lost(data, theirs, known[index])
        if what is not None:
            wrong.append(f"{path.name}: {what}")
        else:
            path.unlink()
    return wrong, took


def test_no_sample_is_lost_silently_on_mutated_reports(tmp_path: Path) -> None:
    wrong, took = differences(seeds()["report"], 60, 7, tmp_path)
    assert wrong == []
    assert took["read by NVIDIA"] > 10


@pytest.mark.reports
@pytest.mark.validate
@pytest.mark.timeout(7200)
def test_no_sample_is_lost_silently_on_mutated_real_reports(tmp_path: Path) -> None:
    small = sorted(REPORTS, key=lambda path: path.stat().st_size)[:30]
    plain = [
        data if not container.is_compressed(data) else container.decompress(data)
        for data in map(Path.read_bytes, small)
    ]
    wrong, took = differences(plain, 500, random.randrange(1 << 30), tmp_path)
    assert wrong == []
    assert took["read by NVIDIA"] > 100


def test_a_lost_sample_is_noticed(tmp_path: Path) -> None:
    """The comparison can fail."""
    data = seeds()["report"][0]
    path = tmp_path / "whole.ncu-rep"
    path.write_bytes(data)
    (theirs,) = nvidia_reads([path])
    assert theirs is not None
    assert [samples for _, samples in theirs] == [12, 5]
    assert lost(data, theirs, Counter()) is None
    more = [(name, samples + 1) for name, samples in theirs]
    assert lost(data, more, said(load_bytes(data))) is not None
