# SPDX-License-Identifier: Apache-2.0
"""What the capture kit brought home: advice beside what the cure gave, the collectors, their overhead.

``python -m tests.validation.captures FOLDER`` prints it; without a folder, of what is committed. With
``--model`` it is the advice of ``advise before.cu --model``, which sees no report, beside the same outcomes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from tests.validation import pairs

from gpadvisor.model.profile import KernelProfile, Launch, Profile
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import find_settings
from gpadvisor.store.load import load_profile

MAX_MEMBER_BYTES = 64 << 20
VERSIONS = ("before", "after")
GAIN = 1.03
KERNELS = Path(__file__).resolve().parents[2] / "fixtures/kernels"
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
        if gpu is None:
            continue
        for pair in captures.pairs():
            low, high = pair.spread
            found[pair.kernel, gpu.arch] = Measured(gpu=gpu.name, speedup=pair.speedup, low=low, high=high)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a capture was taken on."""

    name: str
    arch: str  # "sm_90"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """Both versions of a kernel under Nsight Compute."""

    kernel: str
    report: Path
    before: Launch
    after: Launch

    @property
    def pair(self) -> pairs.Pair:
        """As the pairs of other people's reports."""
        table = tomllib.loads((KERNELS / self.kernel / "kernel.toml").read_text(encoding="utf-8"))
        assert self.before.duration_ns
        assert self.after.duration_ns
        return pairs.Pair(
            name=self.kernel,
            repository="fixtures/kernels",
            report=self.report,
            launch=self.before.index,
            change=table["title"],
            achieved=self.before.duration_ns / self.after.duration_ns,
            accepted=frozenset({table["plants"]}),
            same_code=f"{self.report.name}:{self.before.index}",
        )


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

    def checks(self) -> Mapping[str, str]:
        """By kernel the lines of its comparison with its reference."""
        return {
            str(PurePosixPath(name).parent): data.decode()
            for name, data in self._files.items()
            if name.endswith("/check.jsonl")
        }

    def kernels(self) -> list[str]:
        """Every kernel that was to be measured."""
        return sorted(self._entries)

    def times(self, kernel: str, version: str) -> tuple[float, ...]:
        """Milliseconds of each timed launch; empty where there are none."""
        return self._times.get(f"{kernel}-{version}", ())

    def pairs(self) -> Iterator[Pair]:
        """Kernels of which both versions were timed."""
        for kernel in self.kernels():
            before, after = self.times(kernel, "before"), self.times(kernel, "after")
            if before and after:
                yield Pair(kernel=kernel, before=before, after=after)

    def report(self, kernel: str, version: str) -> Profile | None:
        """Nsight Compute's launch of it; None where there is none."""
        for profile in self._reports:
            launches = self._launches(profile, kernel)
            if launches:  # one of each version, in their order
                return replace(profile, kernels=(launches[VERSIONS.index(version)],))
        return None

    def cures(self, folder: Path) -> Iterator[Cure]:
        """Each kernel whose versions are in one report, which is written to the folder."""
        for name, data in sorted(self._files.items()):
            if not name.endswith("/report.ncu-rep"):
                continue
            path = folder / f"{PurePosixPath(name).parent}.ncu-rep"
            path.write_bytes(data)
            profile = load_profile(path)
            for kernel in self.kernels():
                launches = [one.launch for one in self._launches(profile, kernel)]
                if len(launches) == len(VERSIONS):
                    yield Cure(kernel=kernel, report=path, before=launches[0], after=launches[1])

    def collection(self, kernel: str, version: str, mode: str) -> tuple[Profile, Overhead] | None:
        """What the injection library saw of it, and its overhead; None where there is none."""
        for collected in self._collections.get(mode, ()):
            times = collected.times.get(f"{kernel}-{version}")
            if times:
                usual = statistics.median(self.times(kernel, version))
                found = replace(collected.profile, kernels=self._launches(collected.profile, kernel))
                return found, Overhead(kernels=statistics.median(times) / usual, process=collected.process)
        return None

    def _launches(self, profile: Profile, kernel: str) -> tuple[KernelProfile, ...]:
        return tuple(one for one in profile.kernels if one.launch.kernel == self._entries[kernel])

    @cached_property
    def _entries(self) -> Mapping[str, str]:
        found: dict[str, str] = json.loads(self._files.get("kernels.json", b"{}"))
        return found

    @cached_property
    def _times(self) -> Mapping[str, tuple[float, ...]]:
        files = [data for name, data in self._files.items() if name.endswith("/times.jsonl")]
        return {name: times for data in files for name, times in _milliseconds(data).items()}

    @cached_property
    def _reports(self) -> list[Profile]:
        found = []
        for name, data in sorted(self._files.items()):
            if name.endswith("/report.ncu-rep"):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "report.ncu-rep"
                    path.write_bytes(data)
                    found.append(load_profile(path))
        return found

    @cached_property
    def _collections(self) -> Mapping[str, list[_Collected]]:
        found: dict[str, list[_Collected]] = {}
        for name, data in sorted(self._files.items()):
            mode = PurePosixPath(name).stem
            if not name.endswith(".tar") or mode == "timeline":
                continue
            with _unpacked(data) as folder:
                lines = (folder / "times.jsonl").read_bytes()
                (folder / "times.jsonl").unlink()
                wall = next(row for row in map(json.loads, lines.splitlines()) if "wall_seconds" in row)
                found.setdefault(mode, []).append(
                    _Collected(
                        profile=load_profile(folder),
                        times=_milliseconds(lines),
                        process=wall["wall_seconds"] / wall["wall_seconds_without"],
                    )
                )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Collected:
    """One process under the injection library."""

    profile: Profile
    times: Mapping[str, tuple[float, ...]]
    process: float  # its wall time with the library to without it


@contextmanager
def _unpacked(data: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "c.tar").write_bytes(data)
        with tarfile.open(Path(name) / "c.tar") as archive:
            archive.extractall(Path(name) / "collection", filter="data")
        yield Path(name) / "collection"


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


def _milliseconds(lines: bytes) -> Mapping[str, tuple[float, ...]]:
    """By kernel and version, as their libraries are named."""
    found: dict[str, tuple[float, ...]] = {}
    library = ""
    for row in map(json.loads, lines.splitlines()):
        library = row.get("library", library).removesuffix(".so")
        if "milliseconds" in row:
            found[library] = tuple(map(float, row["milliseconds"]))
    return found


def _print(captures: Captures) -> None:
    for name, text in captures.environment.items():
        print(f"{name}: {' | '.join(text.splitlines())}")
    print("\nmeasured speedups (median of before / median of after, quartiles)")
    for pair in captures.pairs():
        low, high = pair.spread
        print(f"  {pair.kernel:22} {pair.speedup:6.3f}x  {low:6.3f} to {high:6.3f}")
    _print_advice(outcomes(captures))
    print("\ncollectors: overlap of the stall reasons with Nsight Compute's, and overhead of each mode")
    for kernel in captures.kernels():
        for version in VERSIONS:
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


def outcomes(captures: Captures) -> list[pairs.Outcome]:
    """What is said of each first version beside what the cure gave, by Nsight Compute's durations."""
    with tempfile.TemporaryDirectory() as folder:
        measured = sorted((cure.pair for cure in captures.cures(Path(folder))), key=lambda pair: pair.name)
        return pairs.outcomes(measured)


def modelled_outcomes(captures: Captures) -> list[pairs.Outcome]:
    """The same of what ``--model`` says of the sources, for this GPU's architecture."""
    gpu, found = captures.gpu, []
    assert gpu is not None
    with tempfile.TemporaryDirectory() as folder:
        for cure in sorted(captures.cures(Path(folder)), key=lambda cure: cure.kernel):
            sys.stderr.write(f"{cure.kernel}\n")
            source = KERNELS / cure.kernel / "before.cu"
            settings = find_settings(source.parent).settings._replace(arch=gpu.arch, top=100)
            request = Request(
                settings=settings,
                kernel=re.compile(rf"\b{cure.before.kernel}\b"),
                model=True,
                root=KERNELS.parent,
            )
            (kernel,) = advise_file(source, request, lambda _: None, Cache(None)).advice.kernels
            found.append(pairs.outcome(cure.pair, kernel.suggestions))
    return found


def _print_advice(found: Sequence[pairs.Outcome]) -> None:
    gained = [one for one in found if one.pair.achieved >= GAIN]
    print(f"\nadvice beside what the cure gave\n{pairs.HEAD}")
    print(pairs.summary(f"gained {GAIN}x or more", gained))
    print(pairs.summary("gained less", [one for one in found if one.pair.achieved < GAIN]))
    print(pairs.least_removed(found))
    for one in found:
        low, high = one.ends
        said = f"{one.expected:.2f}x ({low:.2f}-{high:.2f}), place {one.rank}"
        (code,) = one.pair.accepted
        print(
            f"  {one.pair.name:20} {code} gave {one.pair.achieved:7.2f}x  "
            f"{'not offered' if one.cure is None else said}; most told {one.best:.2f}x"
        )


def main() -> None:
    """Print what each folder holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--model", action="store_true", help="the advice without a report")
    arguments = parser.parse_args()
    for place in [arguments.folder] if arguments.folder else sorted(filter(Path.is_dir, FOLDER.iterdir())):
        captures = Captures(place)
        if not captures:
            sys.exit(f"no captures in {place}; fixtures/capture/README.md says how to take them")
        if arguments.model:
            _print_advice(modelled_outcomes(captures))
        else:
            _print(captures)


if __name__ == "__main__":
    main()
