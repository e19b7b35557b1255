# SPDX-License-Identifier: Apache-2.0
"""What the capture kit brought home: measured times, the collectors beside each other, their overhead.

``python -m tests.validation.captures FOLDER`` prints it.
"""

from __future__ import annotations

import json
import statistics
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpadvisor.model.profile import Profile
from gpadvisor.store import load_profile

MAX_MEMBER_BYTES = 64 << 20
FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "captures"
"""Where committed archives lie, once there are some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Measured times of one kernel's versions, in milliseconds."""

    kernel: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def speedup(self) -> float:
        """By the medians."""
        return statistics.median(self.before) / statistics.median(self.after)

    @property
    def spread(self) -> tuple[float, float]:
        """The speedup by the quartiles that make it smallest and largest."""
        before, after = statistics.quantiles(self.before), statistics.quantiles(self.after)
        return before[0] / after[2], before[2] / after[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The speedup of one pair on a GPU, and by its quartiles."""

    gpu: str
    speedup: float
    low: float
    high: float


def measured_speedups(folder: Path = FOLDER) -> Mapping[tuple[str, str], Measured]:
    """Of every pair that was timed, by kernel and architecture; those of a further GPU in a folder each."""
    found: dict[tuple[str, str], Measured] = {}
    for place in (folder, *sorted(entry for entry in folder.glob("*") if entry.is_dir())):
        captures = Captures(place)
        gpu = captures.gpu
        for pair in captures.pairs() if gpu is not None else ():
            low, high = pair.spread
            found[pair.kernel, gpu.arch] = Measured(gpu=gpu.name, speedup=pair.speedup, low=low, high=high)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a capture was taken on."""

    name: str
    arch: str  # "sm_90"


class Captures:
    """The members of all archives of a folder, by their path."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: dict[str, bytes] = {}
        for path in sorted(folder.glob("capture-*.tar.xz")):
            with tarfile.open(path) as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.size <= MAX_MEMBER_BYTES else None
                    if stream is not None:
                        self._files[str(PurePosixPath(member.name))] = stream.read()

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the numbers were taken with."""
        found: dict[str, str] = json.loads(self._files.get("environment.json", b"{}"))
        return found

    @property
    def gpu(self) -> Gpu | None:
        """What the timed programs say that they ran on; None where none was timed."""
        for name, data in self._files.items():
            for line in data.splitlines() if name.endswith("/times.jsonl") else ():
                row = json.loads(line)
                if "capability" in row:
                    return Gpu(name=row["device"], arch=f"sm_{row['capability'].replace('.', '')}")
        return None

    def failures(self) -> Mapping[str, str]:
        """Steps that came to nothing, with the reason."""
        return {
            name.removesuffix(".failed"): data.decode("utf-8", "replace").splitlines()[0]
            for name, data in self._files.items()
            if name.endswith(".failed")
        }

    def times(self, kernel: str, version: str) -> tuple[float, ...]:
        """Milliseconds of each timed launch; empty where there are none."""
        return _milliseconds(self._files.get(f"{kernel}/{version}/times.jsonl", b""))

    def kernels(self) -> list[str]:
        """Every kernel that left something."""
        return sorted({name.partition("/")[0] for name in self._files if "/" in name})

    def pairs(self) -> Iterator[Pair]:
        """Kernels of which both versions were timed."""
        for kernel in self.kernels():
            before, after = self.times(kernel, "before"), self.times(kernel, "after")
            if before and after:
                yield Pair(kernel=kernel, before=before, after=after)

    def report(self, kernel: str, version: str) -> Profile | None:
        """Nsight Compute's report; None where there is none."""
        data = self._files.get(f"{kernel}/{version}/report.ncu-rep")
        if data is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.ncu-rep"
            path.write_bytes(data)
            return load_profile(path)

    def collection(self, kernel: str, version: str, mode: str) -> tuple[Profile, Overhead] | None:
        """The injection library's collection with its overhead; None where there is none."""
        data = self._files.get(f"{kernel}/{version}/{mode}.tar")
        if data is None:
            return None
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "c.tar").write_bytes(data)
            with tarfile.open(folder / "c.tar") as archive:
                archive.extractall(folder / "collection", filter="data")
            lines = (folder / "collection/times.jsonl").read_bytes()
            (folder / "collection/times.jsonl").unlink()
            wall = next(row for row in map(json.loads, lines.splitlines()) if "wall_seconds" in row)
            overhead = Overhead(
                kernels=statistics.median(_milliseconds(lines))
                / statistics.median(self.times(kernel, version)),
                process=wall["wall_seconds"] / wall["wall_seconds_without"],
            )
            return load_profile(folder / "collection"), overhead


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Ratios with the library to without it."""

    kernels: float  # of the median launch
    process: float  # of the whole process's wall time


def reasons(profile: Profile) -> Mapping[str, float]:
    """Share of each stall reason in all samples."""
    counted: Counter[str] = Counter()
    for kernel in profile.kernels:
        for index, reason in enumerate(kernel.reasons):
            counted[reason.name] += int(kernel.samples.total[kernel.samples.reason == index].sum())
    total = sum(counted.values())
    return {name: value / total for name, value in counted.items()} if total else {}


def overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Of two distributions over reasons: 1 where they are the same."""
    return sum(min(share, other.get(name, 0.0)) for name, share in one.items())


def _milliseconds(lines: bytes) -> tuple[float, ...]:
    for line in lines.splitlines():
        row = json.loads(line)
        if "milliseconds" in row:
            return tuple(float(value) for value in row["milliseconds"])
    return ()


def _print(captures: Captures) -> None:
    for name, text in captures.environment.items():
        print(f"{name}: {' | '.join(text.splitlines())}")
    print("\nmeasured speedups (median of before / median of after, quartiles)")
    for pair in captures.pairs():
        low, high = pair.spread
        print(f"  {pair.kernel:22} {pair.speedup:6.3f}x  {low:6.3f} to {high:6.3f}")
    print("\ncollectors: overlap of the stall reasons with Nsight Compute's, and overhead of each mode")
    for kernel in captures.kernels():
        for version in ("before", "after"):
            report = captures.report(kernel, version)
            for mode in ("continuous", "serialized"):
                found = captures.collection(kernel, version, mode)
                if found is None:
                    continue
                profile, overhead = found
                same = "" if report is None else f"{overlap(reasons(report), reasons(profile)):6.1%}"
                print(
                    f"  {kernel:22} {version:6} {mode:10} {same:>7}  kernels {overhead.kernels:.2f}x, "
                    f"process {overhead.process:.2f}x"
                )
    for step, why in captures.failures().items():
        print(f"failed: {step}: {why}")


if __name__ == "__main__":
    found = Captures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    if not found:
        sys.exit("no captures there; fixtures/capture/README.md says how to take them")
    _print(found)
