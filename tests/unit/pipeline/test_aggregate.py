# SPDX-License-Identifier: Apache-2.0
"""Profiles of many ranks into one: whole or not at all, and which files are bad."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.ncu_writer import write_report
from tests.rank_values import SPEC, rank_profile, write_rank
from tests.trace_values import Work, write_export

from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError, UsageError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import PcSamples, Profile, SlowestRank
from gpadvisor.pipeline import aggregate as aggregating
from gpadvisor.pipeline.aggregate import Aggregation, aggregate_files
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.store.load import load_profile
from gpadvisor.store.ranks import direct, isolation, reading
from gpadvisor.store.ranks.child import RESULT, answer
from gpadvisor.store.ranks.isolation import RankSum
from gpadvisor.store.ranks.outliers import slow_kernels, slow_ranks
from gpadvisor.store.ranks.request import SumAnswer, SumRequest
from gpadvisor.store.snapshot import write_snapshot
from gpadvisor.store.timeline import read_timeline
from gpadvisor.store.timeline.stored import write_with_timeline


def aggregate(
    files: list[Path], target: Path, by: str | None = None, *, merge: bool = False, keep_going: bool = False
) -> RankSum:
    asked = Aggregation(by=by, partial=False, merge=merge, keep_going=keep_going)
    return aggregate_files(files, target, asked, Settings(), lambda _: None)


@pytest.fixture(autouse=True)
def _in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are made here, as a child would make them; that of the command is made in one."""
    if request.function is not test_the_command:
        monkeypatch.setattr(isolation, "call", lambda _, asked, **__: answer(asked))


@pytest.fixture
def ranks(tmp_path: Path) -> list[Path]:
    return [
        write_rank(tmp_path, rank, rank_profile({1: (5 + rank, 2)}, host=f"n{rank // 2}"))
        for rank in range(4)
    ]


def changed(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    change(content)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    path.write_bytes(out.getvalue())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def without_a_table(path: Path) -> None:
    changed(path, lambda content: content.pop("samples.parquet") and None)


def with_a_damaged_table(path: Path) -> None:
    changed(path, lambda content: content.update({"samples.parquet": content["samples.parquet"][:40]}))


def with_another_table(path: Path) -> None:
    changed(path, lambda content: content.update({"samples.parquet": content["counts.parquet"]}))


def with_another_manifest(path: Path) -> None:
    changed(path, lambda content: content.update({"manifest.json": b'{"schema": 1, "profile": []}'}))


def with_an_unlisted_reason(path: Path) -> None:
    def change(content: dict[str, bytes]) -> None:
        table = path.with_suffix(".parquet")
        table.write_bytes(content["samples.parquet"])
        changed_rows = f"SELECT * REPLACE ('strange' AS reason) FROM read_parquet('{table}')"
        duckdb.sql(f"COPY ({changed_rows}) TO '{table}.new' (FORMAT parquet)")
        content["samples.parquet"] = Path(f"{table}.new").read_bytes()
        table.unlink()
        Path(f"{table}.new").unlink()

    changed(path, change)


def with_a_changed_byte(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("samples.parquet")
    data = bytearray(path.read_bytes())
    data[entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2] ^= 1
    path.write_bytes(data)


def packed_with_a_changed_byte(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    with_a_changed_byte(path)


def as_text(path: Path) -> None:
    path.write_bytes(b"no snapshot at all, but text\n")


DAMAGES = [
    cut,
    without_a_table,
    with_a_damaged_table,
    with_another_table,
    with_another_manifest,
    with_an_unlisted_reason,
    with_a_changed_byte,
    packed_with_a_changed_byte,
    as_text,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_file_is_named_and_nothing_written(
    ranks: list[Path], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(ranks[2])
    before = set(tmp_path.iterdir())
    with pytest.raises(ProfileFormatError, match=r"app\.rank2\.gpadvisor.*--keep-going"):
        aggregate(ranks, tmp_path / "all.gpadvisor")
    assert set(tmp_path.iterdir()) == before
    found = aggregate(ranks, tmp_path / "all.gpadvisor", keep_going=True)
    assert list(found.bad) == [str(ranks[2])]
    assert found.profiles == 3
    assert load_profile(tmp_path / "all.gpadvisor").kernels[0].total_samples == 5 + 6 + 8


def test_only_bad_files_are_an_error(ranks: list[Path], tmp_path: Path) -> None:
    for path in ranks:
        cut(path)
    with pytest.raises(ProfileFormatError, match="3 more of 4 are bad, too"):
        aggregate(ranks, tmp_path / "all.gpadvisor", keep_going=True)


def test_the_sum_is_a_snapshot_that_says_what_it_is(ranks: list[Path], tmp_path: Path) -> None:
    aggregate(ranks, tmp_path / "all.gpadvisor")
    profile = load_profile(tmp_path / "all.gpadvisor")
    said = {problem.code: problem.message for problem in profile.problems}
    assert "sum over 4 ranks (0 to 3): ranks by file names, 2 nodes" in said[ProblemCode.SUM_OVER_RANKS]
    first = profile.kernels[0]
    assert first.launch.duration_ns == 4 * 1000.0
    assert first.metrics["bytes.sum"] == 4 * 7
    assert first.metrics["rate.pct"] == pytest.approx(40.0)
    assert first.metrics["text"] == "words"
    assert first.metrics["gpadvisor__launches"] == 4
    assert profile.binaries == load_profile(ranks[0]).binaries
    assert profile.sources == load_profile(ranks[0]).sources


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Their files are written over each other, those of one rank as long as those of the next."""
    files = [write_rank(tmp_path, rank, rank_profile({1: (5 + rank, 2)})) for rank in range(8)]

    def summed(folder: Path) -> bytes:
        folder.mkdir()
        request = SumRequest(
            files=tuple((str(path), path.name) for path in files),
            folder=str(folder),
            by=None,
            merge=False,
            keep_going=False,
            cells=False,
            memory_bytes=64 << 20,
            number=True,
        )
        assert from_bytes(answer(to_bytes(request)), SumAnswer).bad == {}
        return (folder / RESULT).read_bytes()

    whole = summed(tmp_path / "whole")
    monkeypatch.setattr(reading, "_BATCH", size)
    assert summed(tmp_path / "parts") == whole


@pytest.mark.parametrize("named", ["ranks", "numbers", "some numbers", "a number twice"])
def test_many_files_are_added_up_in_parts_with_the_same_result(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the numbers at the ends of names are ranks is settled by the names of all."""
    names = {
        "ranks": [f"app.rank{rank}" for rank in range(5)],
        "numbers": [f"report{number}" for number in range(5)],
        "some numbers": ["report0", "report1", "first", "second", "third"],
        "a number twice": [f"{folder}/report{number}" for folder in "ab" for number in (0, 1)],
    }[named]
    files = [tmp_path / f"{name}.gpadvisor" for name in names]
    for rank, path in enumerate(files):
        path.parent.mkdir(exist_ok=True)
        write_snapshot(rank_profile({1: (5 + rank, 2)}), path)
    aggregate(files, tmp_path / "whole.gpadvisor")
    monkeypatch.setattr(aggregating, "_MOST_FILES", 2)
    assert aggregate(files, tmp_path / "parts.gpadvisor").profiles == len(files)
    assert (tmp_path / "parts.gpadvisor").read_bytes() == (tmp_path / "whole.gpadvisor").read_bytes()


@pytest.mark.parametrize("place", [0, 2])
def test_a_bad_file_of_a_part_is_named(
    ranks: list[Path], place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregating, "_MOST_FILES", 2)
    as_text(ranks[place])
    with pytest.raises(ProfileFormatError, match=f"rank{place}"):
        aggregate(ranks, tmp_path / "all.gpadvisor")
    assert not (tmp_path / "all.gpadvisor").exists()
    rank_sum = aggregate(ranks, tmp_path / "all.gpadvisor", keep_going=True)
    assert (rank_sum.profiles, list(rank_sum.bad)) == (3, [str(ranks[place])])
    for rank in ranks:
        as_text(rank)
    with pytest.raises(ProfileFormatError, match="3 more of 4 are bad"):
        aggregate(ranks, tmp_path / "none.gpadvisor", keep_going=True)


def in_two_rows(profile: Profile) -> Profile:
    """The samples of each place as two rows."""
    kernels = []
    for kernel in profile.kernels:
        columns = {
            field.name: getattr(kernel.samples, field.name) for field in dataclasses.fields(kernel.samples)
        }
        rows = [{**columns, "total": columns["latency"]}, {**columns, "latency": 0 * columns["latency"]}]
        rows[1]["total"] = columns["total"] - columns["latency"]
        samples = PcSamples(**{name: np.concatenate([half[name] for half in rows]) for name in columns})
        kernels.append(dataclasses.replace(kernel, samples=samples))
    return dataclasses.replace(profile, kernels=tuple(kernels))


def between_instructions(profile: Profile) -> Profile:
    """The samples at addresses that no instruction has."""
    kernels = [
        dataclasses.replace(kernel, samples=dataclasses.replace(kernel.samples, pc=kernel.samples.pc + 4))
        for kernel in profile.kernels
    ]
    return dataclasses.replace(profile, kernels=tuple(kernels))


@pytest.mark.parametrize(
    "amiss",
    ["nothing", "a launch more", "a place twice", "very many samples", "an address", "many kernels"],
)
def test_places_that_are_added_up_at_once_are_what_sums_by_profile_give(
    tmp_path: Path, amiss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One profile of a batch is enough to have all of them added up by profile first."""
    files = []
    for rank in range(6):
        rows = {at: (3 + rank * at % 7, 2) for at in range(rank % 3, 9)}
        times = (10.0, 20.0)
        if rank == 3 and amiss == "a launch more":
            times = (10.0, 20.0, 30.0)
        if rank == 3 and amiss == "very many samples":
            rows[1] = (1 << 40, 1 << 39)
        profile = rank_profile(rows, times)
        if rank == 3 and amiss == "a place twice":
            profile = in_two_rows(profile)
        if rank == 3 and amiss == "an address":
            profile = between_instructions(profile)
        files.append(write_rank(tmp_path, rank, profile))
    if amiss == "many kernels":
        monkeypatch.setattr(direct, "_PAIRS", 1)
    tables = {}
    for cells in (False, True):  # with them there are always sums by profile
        target = tmp_path / f"{cells}.gpadvisor"
        asked = Aggregation(by=None, partial=False, merge=False, keep_going=False, cells=cells)
        aggregate_files(files, target, asked, Settings(), lambda _: None)
        with zipfile.ZipFile(target) as archive:
            tables[cells] = {
                name: archive.read(name)
                for name in archive.namelist()
                if name.endswith(".parquet") and name != "across_cells.parquet"
            }
    assert tables[False] == tables[True]


def test_timelines_are_no_part_of_a_sum_which_says_so(ranks: list[Path], tmp_path: Path) -> None:
    run = read_timeline(write_export(tmp_path / "run.sqlite", [Work(10, 20, "k"), Work(40, 50, "k")]))
    for path in ranks[:2]:
        write_with_timeline(load_profile(path), run, path)
    parts = [tmp_path / "part0.gpadvisor", tmp_path / "part1.gpadvisor"]
    for part, files in zip(parts, (ranks[:1], ranks[1:]), strict=True):
        aggregate(files, part)
    aggregate(ranks, tmp_path / "whole.gpadvisor")
    aggregate(parts, tmp_path / "merged.gpadvisor", merge=True)
    for name in ("whole", "merged"):
        said = {each.code: each.message for each in load_profile(tmp_path / f"{name}.gpadvisor").problems}
        assert "idle time is not in it: 2 of them have a timeline" in said[ProblemCode.SUM_OVER_RANKS]


def test_two_of_one_rank_are_refused(ranks: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    twice = write_rank(other, 1, rank_profile({1: (9, 2)}))
    with pytest.raises(UsageError, match=r"app\.rank1.*app\.rank1.*both of rank 1"):
        aggregate([*ranks, twice], tmp_path / "all.gpadvisor")
    assert aggregate([*ranks, twice], tmp_path / "all.gpadvisor", "name").profiles == 5


def test_a_file_without_a_rank_or_a_node(ranks: list[Path], tmp_path: Path) -> None:
    plain = tmp_path / "plain.gpadvisor"
    write_snapshot(rank_profile({1: (9, 2)}), plain)
    for by, words in (("rank", "no rank in its name"), ("node", "names no node")):
        with pytest.raises(UsageError, match=words):
            aggregate([*ranks, plain], tmp_path / "all.gpadvisor", by)
    aggregate([*ranks, plain], tmp_path / "all.gpadvisor")
    said = load_profile(tmp_path / "all.gpadvisor").problems[0].message
    assert "sum over 5 profiles: files by their names" in said


def test_merge_takes_parts_alone(ranks: list[Path], tmp_path: Path) -> None:
    aggregate(ranks[:2], tmp_path / "part")
    with pytest.raises(UsageError, match="no partial sum"):
        aggregate([tmp_path / "part", ranks[2]], tmp_path / "all.gpadvisor", merge=True)
    with pytest.raises(UsageError, match="both of rank 1"):
        aggregate([tmp_path / "part", ranks[1]], tmp_path / "all.gpadvisor")
    assert aggregate([tmp_path / "part", *ranks[2:]], tmp_path / "all.gpadvisor").profiles == 4


def test_reports_of_nsight_compute_are_taken_as_they_are(tmp_path: Path) -> None:
    files = [tmp_path / f"report{rank}.ncu-rep" for rank in range(2)]
    for path in files:
        path.write_bytes(write_report([SPEC, dataclasses.replace(SPEC, failed=True)]))
    assert aggregate(files, tmp_path / "all.gpadvisor").profiles == 2
    profile = load_profile(tmp_path / "all.gpadvisor")
    assert profile.kernels[0].total_samples == 2 * 6
    assert "2 ranks (0 to 1)" in profile.problems[0].message
    assert "2 failed launches are left out" in profile.problems[0].message


def test_other_devices_and_programs_stay_apart(ranks: list[Path], tmp_path: Path) -> None:
    other = rank_profile({1: (50, 2)}, (1000.0,))
    device = dataclasses.replace(other.kernels[0].device, name="Other GPU", arch="sm_90")
    kernels = tuple(dataclasses.replace(kernel, device=device) for kernel in other.kernels)
    more = write_rank(tmp_path, 4, dataclasses.replace(other, kernels=kernels, command="./other"))
    first = dataclasses.replace(rank_profile({1: (5, 2)}), command="./app --now")
    aggregate([write_rank(tmp_path, 0, first), *ranks[1:], more], tmp_path / "all.gpadvisor")
    profile = load_profile(tmp_path / "all.gpadvisor")
    assert [
        (k.launch.kernel, k.device.arch, k.total_samples) for k in profile.kernels if k.launch.kernel == "k"
    ] == [
        (
            "k",
            kernels[0].device.arch if at else ranks and load_profile(ranks[1]).kernels[0].device.arch,
            total,
        )
        for at, total in enumerate((5 + 6 + 7 + 8, 50))
    ]
    said = " ".join(problem.message for problem in profile.problems)
    assert "3 commands were profiled: ./app" in said
    assert "./other" in said
    assert "2 kinds of device" in said


def test_programs_in_one_folder_are_told_and_none_is_a_slow_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of another program with other kernels, and of another build of the same."""
    first = rank_profile({1: (50, 2)}, (1000.0,))
    (kernel,) = first.kernels
    foreign = dataclasses.replace(
        kernel, launch=dataclasses.replace(kernel.launch, kernel="f", demangled="f")
    )
    built = dataclasses.replace(kernel, binary=hashlib.sha256(b"other").hexdigest())
    for profiles, told in (
        (
            [first, dataclasses.replace(first, kernels=(foreign,))],
            "2 programs, which have no kernel in common",
        ),
        (
            [first, dataclasses.replace(first, kernels=(built,), binaries={str(built.binary): b"other"})],
            "code are in",
        ),
    ):
        folder = tmp_path / told[:4].strip()
        folder.mkdir()
        files = [write_rank(folder, rank, profile) for rank, profile in enumerate(profiles)]
        aggregate(files, folder / "all.gpadvisor")
        profile = load_profile(folder / "all.gpadvisor")
        assert told in " ".join(
            one.message for one in profile.problems if one.code is ProblemCode.MIXED_PROFILES
        )
        assert all(one.slowest is None for one in profile.kernels)
        assert main(["advise", str(folder / "all.gpadvisor")]) == 0
        assert told[:10] in " ".join(capsys.readouterr().out.split())


def test_a_slow_node_and_slow_data_are_told_apart(tmp_path: Path) -> None:
    files = []
    for rank in range(8):
        slow = 1.3 if rank == 6 else 1.0 + 0.002 * rank
        times = tuple(
            slow * time * (2.5 if rank == 2 and at == 1 else 1.0)
            for at, time in enumerate((1000.0, 500.0, 700.0))
        )
        files.append(write_rank(tmp_path, rank, rank_profile({1: (5, 2)}, times)))
    aggregate(files, tmp_path / "all.gpadvisor")
    said = [
        p.message
        for p in load_profile(tmp_path / "all.gpadvisor").problems
        if p.code is ProblemCode.SLOW_RANKS
    ]
    assert len(said) == 2
    assert said[0].startswith("rank 6 takes 2")
    assert "% longer in everything" in said[0]
    assert said[1].startswith("other takes 2.5x its median on rank 2")


def test_the_slowest_rank_is_the_one_with_the_most_kernel_time(tmp_path: Path) -> None:
    times = {0: (1000.0, 500.0), 1: (1000.0, 3000.0), 2: (2000.0, 500.0)}
    files = [
        write_rank(tmp_path, rank, rank_profile({1: (5, 2)}, own, host=f"n{min(rank, 1)}"))
        for rank, own in times.items()
    ]
    parts = [tmp_path / "first.gpadvisor", tmp_path / "second.gpadvisor"]
    aggregate(files[:1], parts[0])
    aggregate(files[1:], parts[1])
    for target, sources, merge in (("whole", files, False), ("merged", parts, True)):
        aggregate(sources, tmp_path / target, merge=merge)
        slowest = {one.launch.kernel: one.slowest for one in load_profile(tmp_path / target).kernels}
        assert slowest == {
            "k": SlowestRank(name="rank 1", time_share=0.25),
            "other": SlowestRank(name="rank 1", time_share=0.75),
        }
    aggregate(files, tmp_path / "nodes", "node")
    assert {one.slowest.time_share for one in load_profile(tmp_path / "nodes").kernels if one.slowest} == {
        3000 / 6500,
        3500 / 6500,
    }
    assert [one.slowest for one in load_profile(parts[0]).kernels] == [None, None]


def test_a_missing_time_says_nothing_of_the_slowest_rank(ranks: list[Path], tmp_path: Path) -> None:
    profile = load_profile(ranks[1])
    first = profile.kernels[0]
    untimed = dataclasses.replace(first, launch=dataclasses.replace(first.launch, duration_ns=None))
    write_snapshot(dataclasses.replace(profile, kernels=(untimed, *profile.kernels[1:])), ranks[1])
    aggregate(ranks, tmp_path / "all.gpadvisor")
    assert [one.slowest for one in load_profile(tmp_path / "all.gpadvisor").kernels] == [None, None]


def test_planted_ranks_are_found_and_no_others() -> None:
    draw = np.random.default_rng(1)
    times = (
        draw.uniform(1, 9, (20, 1))
        * (1 + 0.05 * draw.standard_normal(1000))
        * (1 + 0.01 * draw.standard_normal((20, 1000)))
    )
    planted = (3, 18, 77, 400, 795)
    times[4, list(planted)] *= 2.5
    factors, _ = slow_ranks(times)
    (found,) = slow_kernels(times, factors)
    assert found.kernel == 4
    assert set(found.ranks) == set(planted)


def test_the_command(ranks: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "all.gpadvisor"
    for at in (0, 2):
        part = str(tmp_path / f"part{at}")
        assert main(["aggregate", *map(str, ranks[at : at + 2]), "--partial", "-o", part]) == 0
    words = ["aggregate", "--merge", *(str(tmp_path / f"part{at}") for at in (0, 2)), "-o", str(target)]
    assert main(words) == 0
    assert "sum over 4 profiles, 2 kernels" in capsys.readouterr().out
    assert main(["advise", str(target)]) == 0
    assert "Sum over 4 ranks (0 to 3)" in capsys.readouterr().out
    as_text(ranks[3])
    assert main(["aggregate", *map(str, ranks), "--keep-going", "-o", str(target)]) == 0
    told = capsys.readouterr()
    assert "left out:" in told.err
    assert "app.rank3.gpadvisor" in told.err
    assert main(["aggregate", *map(str, ranks), "-o", str(ranks[0])]) == 2


def test_archives_that_were_packed_again_are_added_as_they_are(ranks: list[Path], tmp_path: Path) -> None:
    aggregate(ranks, tmp_path / "all.gpadvisor")
    with zipfile.ZipFile(ranks[1]) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(ranks[1], "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    aggregate(ranks, tmp_path / "again.gpadvisor")
    assert (tmp_path / "again.gpadvisor").read_bytes() == (tmp_path / "all.gpadvisor").read_bytes()


def test_failed_launches_among_others_have_no_part(ranks: list[Path], tmp_path: Path) -> None:
    profile = load_profile(ranks[1])
    first, second = profile.kernels
    failed = dataclasses.replace(first, launch=dataclasses.replace(first.launch, failed=True))
    write_snapshot(dataclasses.replace(profile, kernels=(failed, second)), ranks[1])
    aggregate(ranks, tmp_path / "all.gpadvisor")
    summed = load_profile(tmp_path / "all.gpadvisor")
    assert {one.launch.kernel: one.metrics["gpadvisor__launches"] for one in summed.kernels} == {
        "k": 3,
        "other": 4,
    }
    assert next(one for one in summed.kernels if one.launch.kernel == "k").total_samples == 5 + 7 + 8


def cells_of(path: Path) -> list[tuple[object, ...]]:
    with zipfile.ZipFile(path) as archive:
        table = path.with_suffix(".cells")
        table.write_bytes(archive.read("across_cells.parquet"))
    return duckdb.sql(f"SELECT * FROM read_parquet('{table}')").fetchall()


def test_what_each_rank_has_at_each_place_is_kept_by_place(ranks: list[Path], tmp_path: Path) -> None:
    """Sorted by kernel, section, address, reason and rank, the same by parts."""

    def made(files: list[Path], name: str, *, merge: bool = False) -> Path:
        asked = Aggregation(by=None, partial=False, merge=merge, keep_going=False, cells=True)
        aggregate_files(files, tmp_path / name, asked, Settings(), lambda _: None)
        return tmp_path / name

    whole = cells_of(made(ranks, "whole"))
    at_line = [(rank, samples, latency) for k, section, pc, _, rank, samples, latency in whole
               if (k, section, pc) == (0, "k", 16)]  # fmt: skip
    assert at_line == [(rank, 5 + rank, 2) for rank in range(4)]
    assert whole == sorted(whole)
    summed = load_profile(tmp_path / "whole")
    assert sum(row[5] for row in whole) == sum(one.total_samples for one in summed.kernels)  # type: ignore[misc] # rows of a table
    parts = [made(ranks[2:], "later"), made(ranks[:2], "earlier")]
    assert cells_of(made(parts, "merged", merge=True)) == whole
    aggregate(ranks[:2], tmp_path / "without")
    with pytest.raises(ProfileFormatError, match="make it with --cells"):
        made([tmp_path / "without"], "none", merge=True)
