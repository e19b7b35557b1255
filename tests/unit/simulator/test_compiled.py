# SPDX-License-Identifier: Apache-2.0
"""Compiled code on disk: loaded while the simulator is what it was, never from before a change to it."""

from __future__ import annotations

import pickle  # numba's own form of its index
from pathlib import Path

import pytest

from gpadvisor.simulator import compiled as module


def _one_more(x: int) -> int:
    return x + 1


def test_code_is_stored_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    first = module.entry(_one_more)
    assert first(1) == 2
    again = module.entry(_one_more)
    assert again(1) == 2
    assert again.stats.cache_hits  # type: ignore[attr-defined] # numba's dispatcher has it


def test_code_from_before_a_change_to_another_file_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert module.entry(_one_more)(1) == 2
    monkeypatch.setattr(module, "_sources_digest", lambda: "of changed files")
    again = module.entry(_one_more)
    assert again(1) == 2
    assert not again.stats.cache_hits  # type: ignore[attr-defined] # as above


def test_an_index_that_names_classes_of_before_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert module.entry(_one_more)(1) == 2
    (index,) = tmp_path.rglob("*.nbi")
    with index.open("rb") as file:
        pickle.load(file)  # the version
        end = file.tell()
    gone = pickle.dumps(_one_more).replace(b"_one_more", b"_moved_away")
    index.write_bytes(index.read_bytes()[:end] + gone)
    monkeypatch.setattr(module, "_sources_digest", lambda: "of changed files")
    assert module.entry(_one_more)(1) == 2


def test_without_a_folder_to_write_to_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoFolder:
        def __init__(self, _: object) -> None:
            raise RuntimeError("no locator available")

    monkeypatch.setattr(module, "_Cache", NoFolder)
    assert module.entry(_one_more)(1) == 2
