# SPDX-License-Identifier: Apache-2.0
"""Sums over ranks on a cluster of Dask are those of one machine, whoever of the workers is lost."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.property.store.test_ranks import same, tables
from tests.rank_values import rank_profile, write_rank

from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError, UsageError
from gpadvisor.pipeline import cluster
from gpadvisor.pipeline.aggregate import Aggregation, aggregate_files
from gpadvisor.pipeline.cluster import aggregate_on
from gpadvisor.pipeline.settings import Settings
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
distributed = pytest.importorskip("distributed")
ASKED = Aggregation(by=None, partial=False, merge=False, keep_going=False)
LENIENT = Aggregation(by=None, partial=False, merge=False, keep_going=True)


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """Two processes on the loopback."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", silence_logs=50
    ) as local:
        yield local


@pytest.fixture
def address(workers: Any) -> str:
    return str(workers.scheduler_address).replace("tcp://", "dask://")


@pytest.fixture
def ranks(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "in"
    folder.mkdir()
    profiles = (rank_profile({1: (5 + rank, 2), 2: (rank % 3, 0)}, host=f"n{rank // 2}") for rank in range(9))
    return [write_rank(folder, rank, profile) for rank, profile in enumerate(profiles)]


def is_whole(files: list[Path], target: Path, folder: Path, asked: Aggregation = ASKED) -> bool:
    whole = folder / "whole.gpadvisor"
    aggregate_files(files, whole, asked, Settings(), lambda _: None)
    one, other = tables(whole.read_bytes()), tables(target.read_bytes())
    assert one.keys() == other.keys()
    for table in one:
        assert len(one[table]) == len(other[table]), table
        assert all(all(map(same, *pair)) for pair in zip(one[table], other[table], strict=True)), table
    said, told = ([one.message for one in load_profile(path).problems] for path in (whole, target))
    return said == told


def test_the_sums_are_those_of_one_machine(
    address: str, ranks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_ARITY", 2)  # merges of merges; others merge all parts at once
    said: list[str] = []
    rank_sum = aggregate_on(address, ranks, tmp_path / "all", ASKED, said.append)
    assert (rank_sum.profiles, rank_sum.kernels, rank_sum.bad) == (9, 2, {})
    assert "summed up 3 of 3 parts" in said
    assert is_whole(ranks, tmp_path / "all", tmp_path)


def test_a_worker_that_is_killed_in_the_middle_is_no_matter(
    workers: Any, address: str, ranks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_MOST_FILES", 1)
    with distributed.Client(workers.scheduler_address, set_as_default=False) as client:
        processes = list(client.run(os.getpid).values())
    killed: list[int] = []

    def progress(words: str) -> None:
        if not killed and re.match("summed up [2-7] of 9", words):
            killed.append(processes[0])
            os.kill(processes[0], signal.SIGKILL)

    rank_sum = aggregate_on(address, ranks, tmp_path / "all", ASKED, progress)
    assert killed
    assert rank_sum.profiles == 9
    assert is_whole(ranks, tmp_path / "all", tmp_path)


def test_a_bad_file_is_named_and_left_out_when_asked(address: str, ranks: list[Path], tmp_path: Path) -> None:
    ranks[4].write_bytes(ranks[4].read_bytes()[:-100])
    with pytest.raises(ProfileFormatError, match=r"app\.rank4\.gpadvisor.*--keep-going"):
        aggregate_on(address, ranks, tmp_path / "all", ASKED, lambda _: None)
    assert not (tmp_path / "all").exists()
    rank_sum = aggregate_on(address, ranks, tmp_path / "all", LENIENT, lambda _: None)
    assert list(rank_sum.bad) == [str(ranks[4])]
    assert is_whole(ranks, tmp_path / "all", tmp_path, LENIENT)


def test_ends_of_names_count_for_all_or_for_none(address: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.gpadvisor" for name in ("report0", "report1", "report2", "plain", "other")]
    for at, path in enumerate(files):
        write_snapshot(rank_profile({1: (5 + at, 2)}), path)
    aggregate_on(address, files, tmp_path / "all", ASKED, lambda _: None)
    assert is_whole(files, tmp_path / "all", tmp_path)
    assert "5 profiles: files by their names" in load_profile(tmp_path / "all").problems[0].message


def test_what_stops_it_is_told(
    address: str, ranks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [*ranks, write_rank(tmp_path, 1, rank_profile({1: (5, 2)}))]
    with pytest.raises(UsageError, match="both of rank 1"):
        aggregate_on(address, twice, tmp_path / "all", ASKED, lambda _: None)
    with pytest.raises(UsageError, match="dask://HOST:PORT"):
        aggregate_on("tcp://127.0.0.1:1", ranks, tmp_path / "all", ASKED, lambda _: None)
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match="no scheduler of Dask answers"):
        aggregate_on(f"dask://127.0.0.1:{port}", ranks, tmp_path / "all", ASKED, lambda _: None)


def test_the_command(
    address: str, ranks: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["aggregate", *map(str, ranks), "-o", str(tmp_path / "all"), "--scheduler", address]
    assert main(words) == 0
    assert "sum over 9 profiles, 2 kernels" in capsys.readouterr().out
    assert main([*words, "--partial"]) == 2
