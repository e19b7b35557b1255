# SPDX-License-Identifier: Apache-2.0
"""The snapshot: deterministic, whole or not at all, and careful with archives from elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from tests.ncu_writer import FrameSpec, LaunchSpec, RuleSpec, write_report
from tests.profile_values import assert_same_profile
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileError, ProfileFormatError
from gpadvisor.model.profile import Profile
from gpadvisor.store import snapshot
from gpadvisor.store.load import load_bytes, load_profile
from gpadvisor.store.snapshot import export_snapshot, write_snapshot

CUBIN = tiny_cubin({"k": [], "other": []})
SPEC = LaunchSpec(
    kernel="k",
    cubin=CUBIN,
    samples={("k", 16, "wait"): (5, 4), ("k", 32, "strange"): (7, 0), ("other", 0, "wait"): (1, 1)},
    external={(0x7FFF_0000_0000, "wait"): (2, 2)},
    counts={("k", 0): (3, 96)},
    pc_metrics={"memory_type": {("k", 0): 1.0, ("k", 16): 4.0}},
    metrics={"big": (1 << 62) + 1, "text": "words", "nan": float("nan"), "exact": 0.1},
    sources={"/home/someone/a.cu": "text ü\n"},
    rules=[RuleSpec(identifier="A", message="say", speedup_percent=20.0)],
    call_stack=[
        FrameSpec(module="/home/someone/app", address=(1 << 64) - 1, function="main", file="/home/x.cc")
    ],
)


@pytest.fixture(scope="module")
def profile() -> Profile:
    read = load_bytes(write_report([SPEC, dataclasses.replace(SPEC, kernel="other", rules=[], failed=True)]))
    listing = json.dumps({"k": []}).encode()
    return dataclasses.replace(read, disassemblies=dict.fromkeys(read.binaries, listing))


@pytest.fixture(scope="module")
def packed(profile: Profile) -> bytes:
    return snapshot.snapshot_bytes(profile)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repacked(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    content = members(data)
    change(content)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    return out.getvalue()


def test_round_trip(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "run.gpadvisor"
    write_snapshot(profile, path)
    assert_same_profile(load_profile(path), profile)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.gpadvisor"]


def test_the_same_profile_gives_the_same_bytes(profile: Profile, packed: bytes) -> None:
    assert snapshot.snapshot_bytes(profile) == packed
    assert snapshot.snapshot_bytes(load_bytes(packed)) == packed


def test_a_profile_without_launches(profile: Profile) -> None:
    empty = dataclasses.replace(profile, kernels=())
    assert_same_profile(load_bytes(snapshot.snapshot_bytes(empty)), empty)


def test_members_open_in_other_tools(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.gpadvisor"
    path.write_bytes(packed)
    written = export_snapshot(path, tmp_path / "out")
    assert {file.name for file in written} >= {"manifest.json", "samples.parquet", "launches.parquet"}
    samples = tmp_path / "out" / "samples.parquet"
    rows = duckdb.sql(f"SELECT section, pc, reason, samples FROM '{samples}' ORDER BY samples").fetchall()
    assert rows == [
        ("other", 0, "wait", 1),
        (None, 0x7FFF_0000_0000, "wait", 2),
        ("k", 16, "wait", 5),
        ("k", 32, "strange", 7),
    ]
    assert duckdb.sql(f"SELECT sum(samples) FROM '{samples}'").fetchall() == [(15,)]


def test_export_keeps_what_is_there(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.gpadvisor"
    path.write_bytes(packed)
    with pytest.raises(ProfileError, match="is not empty"):
        export_snapshot(path, tmp_path)


def test_a_newer_schema_is_named(packed: bytes) -> None:
    def newer(content: dict[str, bytes]) -> None:
        manifest = json.loads(content["manifest.json"]) | {"schema": 7, "tool": "gpadvisor 9.0"}
        content["manifest.json"] = json.dumps(manifest).encode()
        content["flames.parquet"] = b"new"

    with pytest.raises(ProfileFormatError, match=r"schema 7, written by gpadvisor 9\.0.*upgrade"):
        load_bytes(repacked(packed, newer))


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "binaries/../x.cubin", "binaries/AB.cubin", "notes.txt", "sources/"],
)
def test_members_of_other_names_are_refused(packed: bytes, name: str, tmp_path: Path) -> None:
    data = repacked(packed, lambda content: content.update({name: b"x"}))
    with pytest.raises(ProfileFormatError, match="that none should have"):
        load_bytes(data)
    path = tmp_path / "evil.gpadvisor"
    path.write_bytes(data)
    with pytest.raises(ProfileFormatError):
        export_snapshot(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_refused(packed: bytes) -> None:
    out = io.BytesIO(packed)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("manifest.json", members(packed)["manifest.json"])
    with pytest.raises(ProfileFormatError, match="one name twice"):
        load_bytes(out.getvalue())


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("manifest.json", bytes(30 << 20))
    with pytest.raises(ProfileFormatError, match="far more than any profile"):
        load_bytes(out.getvalue())


def test_binaries_must_be_what_their_names_say(packed: bytes) -> None:
    def swap(content: dict[str, bytes]) -> None:
        name = next(name for name in content if name.startswith("binaries/"))
        content[name] = content[name][:-1] + b"!"

    with pytest.raises(ProfileFormatError, match="not what its name says"):
        load_bytes(repacked(packed, swap))


def test_rows_must_have_the_stated_digest(packed: bytes) -> None:
    def change(content: dict[str, bytes]) -> None:
        content["manifest.json"] = content["manifest.json"].replace(b"testhost", b"elsewhere")

    with pytest.raises(ProfileFormatError, match="digest"):
        load_bytes(repacked(packed, change))


@pytest.mark.parametrize("name", ["samples", "launches", "metrics"])
def test_missing_and_damaged_tables(packed: bytes, name: str) -> None:
    with pytest.raises(ProfileFormatError, match=f"lacks {name}"):
        load_bytes(repacked(packed, lambda content: content.pop(f"{name}.parquet") and None))
    with pytest.raises(ProfileFormatError, match="damaged"):
        load_bytes(repacked(packed, lambda content: content.update({f"{name}.parquet": b"PAR1junk"})))


def test_a_full_disk_leaves_nothing_behind(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "run.gpadvisor"
    path.write_bytes(b"older")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProfileError, match="cannot be written: No space left on device"):
        write_snapshot(profile, path)
    assert path.read_bytes() == b"older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.gpadvisor"]


def test_a_folder_that_is_not_there(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be written"):
        write_snapshot(profile, tmp_path / "absent" / "run.gpadvisor")


def test_a_link_stays_a_link_and_a_pipe_a_pipe(profile: Profile, packed: bytes, tmp_path: Path) -> None:
    link, target, pipe = tmp_path / "link", tmp_path / "target", tmp_path / "pipe"
    target.write_bytes(b"older")
    link.symlink_to(target)
    write_snapshot(profile, link)
    assert link.is_symlink()
    assert target.read_bytes() == packed
    os.mkfifo(pipe)
    with contextlib.closing(_Reader(pipe)) as reader:
        write_snapshot(profile, pipe)
    assert reader.content == packed
    assert pipe.is_fifo()


def test_a_failed_export_takes_its_folders_back(
    packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.gpadvisor"
    path.write_bytes(packed)
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.suffix == ".cubin":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ProfileError, match="cannot be unpacked"):
        export_snapshot(path, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.gpadvisor"]


class _Reader:
    """Reads a pipe to its end in a thread of its own."""

    def __init__(self, pipe: Path) -> None:
        self.content = b""
        self._thread = threading.Thread(target=self._read, args=(pipe,))
        self._thread.start()

    def _read(self, pipe: Path) -> None:
        self.content = pipe.read_bytes()

    def close(self) -> None:
        self._thread.join(10)


def test_the_digest_does_not_depend_on_the_archive(profile: Profile, packed: bytes) -> None:
    again = repacked(packed, lambda _: None)
    assert again != packed
    assert_same_profile(load_bytes(again), profile)
