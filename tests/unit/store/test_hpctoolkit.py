# SPDX-License-Identifier: Apache-2.0
"""Databases of HPCToolkit: what is read of small ones, what is said of damaged ones, laws of public ones."""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.hpctoolkit_writer import (
    INLINED,
    INSTRUCTION,
    LEXICAL,
    LINE,
    Node,
    write_database,
)
from tests.public_databases import needs_mirrors, of_vendor, public
from tests.tiny_cubin import tiny_cubin

from gpadvisor.cubin import read_cubin
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import LAUNCHES, Profile
from gpadvisor.store.hpctoolkit.database import Database, read_database
from gpadvisor.store.hpctoolkit.layout import DatabaseFile, fields
from gpadvisor.store.hpctoolkit.profile import read_profile

CUBIN = tiny_cubin({"_Z4work": (), "_Z4rest": ()}, sm=80)
GPUBIN = f"gpubins/{hashlib.md5(CUBIN, usedforsecurity=False).hexdigest()}.gpubin"
APP = "/bin/app"
PERIOD = 4096.0
WORK, REST = (64, 64 + 128)
"""Where the sections lie in the file."""


def instruction(number: int, offset: int, *, total: str = "GINS", **latency: int) -> Node:
    """An instruction with 10 samples, and latency samples by reason."""
    prefix = "GINS:STL_" if total == "GINS" else "GCYCLES:STL:"
    values = {(1, total): 10 * PERIOD, **{(1, prefix + name): n * PERIOD for name, n in latency.items()}}
    return Node(number, point=(GPUBIN, offset), relation=LEXICAL, lexical=INSTRUCTION, values=values)


def kernel(number: int, *children: Node, at: int = WORK, launches: int = 2) -> Node:
    """A kernel below its launch."""
    values = {
        (1, "GKER:COUNT"): float(launches),
        (1, "GKER (sec)"): 0.001,
        (1, "GKER:BLKS_ACUMU"): 40.0 * launches,
        (1, "GKER:BLK_THR_ACUMU"): 128.0 * launches,
        (1, "GSAMP:PER (cyc)"): PERIOD,
    }
    return Node(number, function=("work()", GPUBIN, at), children=children, values=values)


def run(*kernels: Node) -> list[Node]:
    """main, line 7 calls launch() inlined at line 9, which calls cudaLaunchKernel, which launches."""
    launch = Node(96, function=("<gpu kernel>", "", 0), children=kernels)
    call = Node(95, function=("cudaLaunchKernel", APP, 0x500), children=[launch])
    at = Node(94, line=("app.cu", 9), relation=LEXICAL, lexical=LINE, children=[call])
    inlined = Node(93, function=("launch", APP, 0), relation=INLINED, children=[at])
    line = Node(92, line=("main.cu", 7), relation=LEXICAL, lexical=LINE, children=[inlined])
    return [Node(90, children=[Node(91, function=("main", APP, 0x100), children=[line])])]


@pytest.fixture
def gpubins(tmp_path: Path) -> Path:
    """The measurements beside a database."""
    (tmp_path / "app-measurements" / "gpubins").mkdir(parents=True)
    (tmp_path / "app-measurements" / GPUBIN).write_bytes(CUBIN)
    return tmp_path / "app-measurements"


def samples(profile: Profile, launch: int = 0) -> dict[tuple[str, int, str], tuple[int, int]]:
    """All samples and latency samples by section, PC and reason."""
    of = profile.kernels[launch]
    rows = of.samples
    return {
        (of.sections[section], pc, of.reasons[reason].name): (total, latency)
        for section, pc, reason, total, latency in zip(
            rows.section.tolist(),
            rows.pc.tolist(),
            rows.reason.tolist(),
            rows.total.tolist(),
            rows.latency.tolist(),
            strict=True,
        )
    }


@pytest.mark.parametrize("grown", [0, 8])
def test_samples_launches_and_the_hosts_way_are_read(tmp_path: Path, gpubins: Path, grown: int) -> None:
    tree = run(kernel(1, instruction(2, WORK + 16, GMEM=6, IDEP=1), instruction(3, WORK + 32)))
    profile = read_profile(write_database(tmp_path / "db", tree, grown=grown), gpubins)
    assert samples(profile) == {
        ("_Z4work", 16, "memory_dependency"): (6, 6),
        ("_Z4work", 16, "execution_dependency"): (1, 1),
        ("_Z4work", 16, "not_recorded"): (3, 0),
        ("_Z4work", 32, "not_recorded"): (10, 0),
    }
    (of,) = profile.kernels
    assert (of.launch.kernel, of.device.arch, of.sampling.interval_cycles) == ("_Z4work", "sm_80", 4096)
    assert (of.launch.grid, of.launch.block) == ((40, 1, 1), (128, 1, 1))
    assert (of.metrics[LAUNCHES], of.launch.duration_ns, of.counts) == (2, 1e6, None)
    assert [(f.function, f.file, f.line) for f in of.call_stack] == [
        ("cudaLaunchKernel", None, None),
        ("launch", "app.cu", 9),
        ("main", "main.cu", 7),
    ]
    assert profile.binaries == {hashlib.sha256(CUBIN).hexdigest(): CUBIN}


def test_newer_names_have_all_samples_in_those_that_issued(tmp_path: Path, gpubins: Path) -> None:
    at = instruction(2, WORK, total="GCYCLES:ISU", GMEM=4)
    both = replace(at, values={**at.values, (1, "GCYCLES"): 14 * PERIOD, (1, "GCYCLES:STL"): 4 * PERIOD})
    profile = read_profile(write_database(tmp_path / "db", run(kernel(1, both))), gpubins)
    assert samples(profile) == {
        ("_Z4work", 0, "memory_dependency"): (4, 4),
        ("_Z4work", 0, "not_recorded"): (6, 0),
    }


def test_without_a_recorded_period_all_values_are_multiples_of_a_sample(
    tmp_path: Path, gpubins: Path
) -> None:
    of = kernel(1, instruction(2, WORK, GMEM=3))
    bare = replace(of, values={key: v for key, v in of.values.items() if "PER" not in key[1]})
    profile = read_profile(write_database(tmp_path / "db", run(bare)), gpubins)
    assert profile.kernels[0].sampling.interval_cycles == 4096
    assert sum(total for total, _ in samples(profile).values()) == 10


def test_what_was_divided_among_callers_is_whole_again(tmp_path: Path, gpubins: Path) -> None:
    half = {(1, "GINS"): 5.5 * PERIOD, (1, "GINS:STL_GMEM"): 0.5 * PERIOD}
    other = {(1, "GINS"): 4.5 * PERIOD, (1, "GINS:STL_GMEM"): 1.5 * PERIOD}
    nodes = [
        Node(n, function=("f", GPUBIN, WORK), children=[replace(instruction(n + 1, WORK), values=values)])
        for n, values in ((2, half), (4, other))
    ]
    profile = read_profile(write_database(tmp_path / "db", run(kernel(1, *nodes))), gpubins)
    assert samples(profile) == {
        ("_Z4work", 0, "memory_dependency"): (2, 2),
        ("_Z4work", 0, "not_recorded"): (8, 0),
    }


def test_instructions_in_no_function_belong_to_the_kernel_of_their_section(
    tmp_path: Path, gpubins: Path
) -> None:
    work, rest = kernel(1), replace(kernel(2, at=REST), function=("rest()", GPUBIN, REST))
    loose = Node(3, children=[instruction(4, WORK + 16, GMEM=1), instruction(5, REST + 48, IDEP=2)])
    profile = read_profile(write_database(tmp_path / "db", run(work, rest, loose)), gpubins)
    assert [{(s, pc) for s, pc, _ in samples(profile, n)} for n in (0, 1)] == [
        {("_Z4work", 16)},
        {("_Z4rest", 48)},
    ]


def test_ranks_are_added_up_and_it_is_said(tmp_path: Path, gpubins: Path) -> None:
    at = instruction(2, WORK, GMEM=3)
    of = kernel(1, replace(at, values={**at.values, (2, "GINS"): 5 * PERIOD}))
    profile = read_profile(write_database(tmp_path / "db", run(of), ranks={1: 0, 2: 1}), gpubins)
    assert sum(total for total, _ in samples(profile).values()) == 15
    assert [p.message for p in profile.problems if p.code is ProblemCode.SUM_OVER_RANKS] == [
        "times and samples are the sum over 2 ranks"
    ]


def test_mixed_binaries_keep_what_is_nvidias_and_name_the_others(tmp_path: Path, gpubins: Path) -> None:
    amd = bytearray(CUBIN)
    struct.pack_into("<H", amd, 18, 224)
    (gpubins / "gpubins" / "amd.gpubin").write_bytes(amd)
    other = Node(5, function=("other()", "amd.gpubin", 64), values={(1, "GKER (sec)"): 0.5})
    tree = run(kernel(1, instruction(2, WORK, GMEM=1)), other)
    profile = read_profile(write_database(tmp_path / "db", tree), gpubins)
    assert [one.launch.kernel for one in profile.kernels] == ["_Z4work"]
    (problem,) = profile.problems
    assert "other() left out: amd.gpubin cannot be used: it is for an AMD GPU" in problem.message


def test_a_database_by_lines_only_says_so(tmp_path: Path, gpubins: Path) -> None:
    line = Node(2, line=("app.cu", 3), relation=LEXICAL, lexical=LINE, values={(1, "GINS"): 8 * PERIOD})
    reason = replace(line, values={**line.values, (1, "GINS:STL_GMEM"): PERIOD})
    profile = read_profile(write_database(tmp_path / "db", run(kernel(1, reason))), gpubins)
    (problem,) = (p for p in profile.kernels[0].problems if p.code is ProblemCode.NO_SAMPLES)
    assert "it has 8 of them by line and not by instruction" in problem.message


def test_a_database_of_the_host_has_no_kernel(tmp_path: Path, gpubins: Path) -> None:
    tree = [Node(1, children=[Node(2, function=("main", APP, 0), values={(1, "CPUTIME (sec)"): 1.0})])]
    profile = read_profile(write_database(tmp_path / "db", tree), gpubins)
    assert profile.kernels == ()
    assert "no kernel of a GPU" in profile.problems[0].message


def test_binaries_of_another_run_are_refused(tmp_path: Path, gpubins: Path) -> None:
    database = write_database(tmp_path / "db", run(kernel(1, instruction(2, WORK, GMEM=1))))
    (gpubins / GPUBIN).rename(gpubins / "gpubins" / "other.gpubin")
    with pytest.raises(ProfileFormatError, match="has none of the 1 GPU binaries"):
        read_profile(database, gpubins)
    (gpubins / GPUBIN).write_bytes(CUBIN + b"x")
    profile = read_profile(database, gpubins)
    assert profile.kernels == ()
    assert "not that of its name" in profile.problems[0].message


def damaged(folder: Path, name: str, change: Callable[[bytearray], object]) -> None:
    """Change the bytes of a file."""
    data = bytearray((folder / name).read_bytes())
    change(data)
    (folder / name).write_bytes(data)


def _pointer(data: bytearray, section: int, offset: int = 0) -> int:
    """Where the pointer in a section's header is."""
    return int(struct.unpack_from("<Q", data, 24 + 16 * section)[0]) + offset


def _circle(data: bytearray) -> None:
    """Make the children of main those of the entry."""
    (entries,) = struct.unpack_from("<Q", data, _pointer(data, 3))
    size, children = struct.unpack_from("<QQ", data, entries)
    struct.pack_into("<QQ", data, children, size, children)


@pytest.mark.parametrize("name", ["meta.db", "profile.db", "cct.db"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.__delitem__(slice(-9, None)), "cut short"),
        (lambda data: data.__delitem__(slice(None)), "is no"),
        (lambda data: data.__setitem__(14, 5), "is of version 5.0"),
        (lambda data: struct.pack_into("<Q", data, 24, 1 << 40), "outside of it"),
        (lambda data: struct.pack_into("<Q", data, 24, (1 << 64) - 1), "outside of it"),
    ],
)
def test_damaged_files_are_named(
    tmp_path: Path, name: str, change: Callable[[bytearray], object], said: str
) -> None:
    database = write_database(tmp_path / "db", run(kernel(1, instruction(2, WORK, GMEM=1))))
    damaged(database, name, change)
    with pytest.raises(ProfileFormatError, match=said) as caught:
        read_database(database)
    assert name in str(caught.value)


def test_a_circle_in_the_context_tree_ends(tmp_path: Path) -> None:
    database = write_database(tmp_path / "db", run(kernel(1)))
    damaged(database, "meta.db", _circle)
    with pytest.raises(ProfileFormatError, match=r"has a circle|stands twice"):
        read_database(database)


def _overlap(data: bytearray) -> None:
    """Make all profiles have the values of the first, which are not theirs."""
    (rows,) = struct.unpack_from("<Q", data, _pointer(data, 0))
    count, size = struct.unpack_from("<IB", data, _pointer(data, 0, 8))
    first = data[rows : rows + size]
    assert count > 1
    for index in range(1, count):
        data[rows + index * size : rows + index * size + 40] = first[:40]


def test_values_that_overlap_are_refused(tmp_path: Path) -> None:
    tree = run(kernel(1, *(instruction(n, WORK) for n in range(2, 60))))
    database = write_database(tmp_path / "db", tree, ranks=dict.fromkeys(range(1, 9), 0))
    damaged(database, "profile.db", _overlap)
    with pytest.raises(ProfileFormatError, match=r"overlap|different values"):
        read_database(database)


@pytest.mark.parametrize("name", ["meta.db", "profile.db", "cct.db"])
def test_two_programs_in_one_folder_are_noticed(tmp_path: Path, name: str) -> None:
    one = write_database(tmp_path / "one", run(kernel(1, instruction(2, WORK, GMEM=1))))
    other = write_database(
        tmp_path / "other", run(kernel(97, instruction(1, WORK), instruction(91, WORK + 16, IDEP=2)))
    )
    shutil.copy(other / name, one / name)
    with pytest.raises(ProfileFormatError, match=r"no whole database|damaged"):
        read_database(one)


def test_no_damage_leads_to_anything_but_its_error(tmp_path: Path) -> None:
    tree = run(kernel(1, *(instruction(n, WORK + 16 * (n % 8), GMEM=n % 3) for n in range(2, 12))))
    database = write_database(tmp_path / "db", tree)
    draw = np.random.default_rng(7)
    read = 0
    for name in ("meta.db", "profile.db", "cct.db"):
        whole = (database / name).read_bytes()
        for _ in range(100):
            data = bytearray(whole)
            for place in draw.integers(16, len(data) - 8, 3).tolist():
                data[place] = int(draw.choice([0, 1, 0x7F, 0xFF, int(draw.integers(256))]))
            (database / name).write_bytes(data)
            try:
                read_database(database)
                read += 1
            except ProfileFormatError:
                pass
        (database / name).write_bytes(whole)
    assert 0 < read < 300
    assert isinstance(read_database(database), Database)


_SUMMARY = fields(("scope", "<u8", 0), ("formula", "<u8", 8), ("combine", "u1", 16), ("value", "<u2", 18))
_METRIC = fields(("summaries", "<u8", 16), ("instances", "<u2", 24), ("number", "<u2", 26))
_COMBINED = (np.add, np.minimum, np.maximum)


@needs_mirrors
def test_three_laws_hold_in_every_public_database() -> None:
    """Both tensors are the same and parents hold their children (``read_database``); summaries add up."""
    folders = sorted(path.parent for path in public().rglob("meta.db"))
    assert len(folders) >= 18
    for folder in folders:
        database = read_database(folder)
        checked = _check_summaries(database)
        assert checked > 0, folder


def _check_summaries(database: Database) -> int:
    """Compare sums, least and most over the profiles with the summary; how many were compared."""
    file = DatabaseFile(database.path, "meta.db")
    place, count, size, _, stride = file.numbers("<QI3B", file.section(2))
    kept, values = database.profiles.summary, database.values
    of_summary = {
        (c, m): v
        for c, m, v in zip(kept.context.tolist(), kept.metric.tolist(), kept.value.tolist(), strict=True)
    }
    numbers = {named: number for number, named in database.meta.metrics.items()}
    checked = 0
    metrics = file.rows(place, count, _METRIC, size).tolist()
    names = [file.text(file.numbers("<Q", place + index * size)[0]) for index in range(count)]
    for name, (summaries, _, many) in zip(names, metrics, strict=True):
        for scope, formula, combine, value in file.rows(summaries, many, _SUMMARY, stride).tolist():
            scope_name = file.text(file.numbers("<Q", scope)[0])
            if file.text(formula) != "$$" or scope_name == "lex_aware":
                continue
            by_context: dict[int, float] = {}
            rows = values.metric == numbers[name, scope_name]
            for context, amount in zip(
                values.context[rows].tolist(), values.value[rows].tolist(), strict=True
            ):
                before = by_context.get(context)
                by_context[context] = amount if before is None else float(_COMBINED[combine](before, amount))
            for context, amount in by_context.items():
                assert of_summary[context, value] == pytest.approx(amount, rel=1e-9)
                checked += 1
    return checked


@needs_mirrors
def test_flat_table_of_the_recursion_example() -> None:
    folder = public() / "tests/data/dbase/recursion-cuda-nvidiapc-t.nostruct.d"
    measured = public() / "tests/data/meas/recursion-cuda-nvidiapc-t.m"
    profile = read_profile(folder, measured)
    (of,) = profile.kernels
    assert of.total_samples == 39_065
    assert of.sampling.interval_cycles == 4096
    (section,) = (s for s in read_cubin(next(iter(profile.binaries.values()))).sections)
    starts = sorted((symbol.offset, symbol.name) for symbol in section.symbols)
    flat: dict[str, int] = defaultdict(int)
    for pc, total in zip(of.samples.pc.tolist(), of.samples.total.tolist(), strict=True):
        name = max(start for start in starts if start[0] <= pc)[1]
        flat[name] += total * 4096
    assert sorted(flat.values()) == sorted(
        [2_625_536, 3_186_688, 23_998_464, 38_854_656, 50_151_424, 37_285_888, 3_907_584]
    )
    assert sum(flat.values()) == 160_010_240


@needs_mirrors
@pytest.mark.parametrize(("vendor", "said"), [("amd", "an AMD GPU"), ("intel", "an Intel GPU")])
def test_databases_of_other_vendors_open_and_say_what_they_lack(vendor: str, said: str) -> None:
    folder, measured = of_vendor(vendor)
    profile = read_profile(folder, measured)
    assert profile.kernels == ()
    assert said in profile.problems[0].message


@needs_mirrors
def test_the_a100_example_has_the_samples_that_it_says() -> None:
    folder, measured = of_vendor("nvidia")
    (of,) = read_profile(folder, measured).kernels
    stated = sum(read_database(folder).by_context("GSAMP:TOT", "point").values())
    assert of.total_samples == stated == 116_936
    assert of.latency_samples == 68_417
