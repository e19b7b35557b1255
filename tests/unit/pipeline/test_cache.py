# SPDX-License-Identifier: Apache-2.0
"""The cache: same key same bytes, damage is a miss, a bad disk is no error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpadvisor.files import cache_folder
from gpadvisor.pipeline.cache import Cache, file_digest, installation_digest


def test_round_trip_and_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    key = cache.key("kind", {"a": 1})
    assert cache.get(key) is None
    cache.put(key, b"bytes")
    assert cache.get(key) == b"bytes"
    assert cache.get(cache.key("kind", {"a": 2})) is None
    assert cache.get(cache.key("other", {"a": 1})) is None


def test_a_damaged_entry_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    key = cache.key("kind", {})
    cache.put(key, b"bytes")
    entry = next(path for path in tmp_path.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert cache.get(key) is None
    entry.write_bytes(b"")
    assert cache.get(key) is None


def test_an_unusable_folder_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = Cache(blocked / "below")
    cache.put(cache.key("kind", {}), b"bytes")
    assert cache.get(cache.key("kind", {})) is None


def test_the_oldest_entries_go_first(tmp_path: Path, monkeypatch) -> None:
    import os

    monkeypatch.setattr("gpadvisor.pipeline.cache.MAX_BYTES", 4096)
    cache = Cache(tmp_path)
    keys = [cache.key("kind", {"n": number}) for number in range(6)]
    for number, key in enumerate(keys):
        cache.put(key, bytes(900))
        for path in tmp_path.rglob("*"):
            if path.is_file() and path.name == key[2:]:
                os.utime(path, (number, number))
    assert cache.get(keys[0]) is None
    assert cache.get(keys[-1]) == bytes(900)


def test_an_empty_variable_turns_it_off(monkeypatch) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", "")
    assert cache_folder() is None
    cache = Cache(None)
    cache.put("0" * 64, b"x")
    assert cache.get("0" * 64) is None


def test_installation_is_stable_within_a_run() -> None:
    assert installation_digest() == installation_digest()


def test_a_file_larger_than_anything_that_is_read_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.cu"
    huge.touch()
    os.truncate(huge, 1 << 42)  # takes no disk
    with pytest.raises(OSError, match="larger than 16 GiB"):
        file_digest(huge)
