# SPDX-License-Identifier: Apache-2.0
"""Machine code of the inner loop: loaded while it fits its sources, never from before a change to them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kernels import ROOT

from gpadvisor.simulator import compiled as module


class Numbers(NamedTuple):
    """What compiled code changes."""

    count: NDArray[np.int64]


@module.compiled
def _sum(a: int, b: int) -> int:
    return a + b


@module.seldom
def _set(numbers: Numbers, value: int) -> None:
    numbers.count[0] = value


def _add(numbers: Numbers, by: int) -> None:
    _set(numbers, _sum(numbers.count[0], by))


def _count_in_steps(numbers: Numbers, step: int) -> None:
    for _ in range(0, 10, step):
        numbers.count[0] += 1


def _added(function: Callable[[Numbers, int], None], by: int) -> int:
    numbers = Numbers(np.array([40], dtype=np.int64))
    module.entry(function)(numbers, by)
    return int(numbers.count[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where code is kept: nothing can be written beside the sources."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(module, "_HERE", Path(__file__) / "no folder")
    monkeypatch.setattr(module, "_sources_digest", lambda: "of these files")
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path))
    (name,) = {place.name for place in module._places()}
    return tmp_path / name


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of which machine code was made."""
    from gpadvisor.simulator import ahead_of_time

    names: list[str] = []
    original = ahead_of_time.machine_code

    def counted(function: Callable[..., None], *others: Any) -> bytes:
        names.append(function.__name__)
        return original(function, *others)

    monkeypatch.setattr(ahead_of_time, "machine_code", counted)
    return names


def test_code_is_kept_and_loaded(place: Path, made: list[str]) -> None:
    assert _added(_add, 2) == 42
    assert place.is_file()
    assert _added(_add, 3) == 43
    assert made == ["_add"]


def test_code_of_before_a_change_to_any_source_is_not_loaded(
    place: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _added(_add, 2) == 42
    monkeypatch.setattr(module, "_sources_digest", lambda: "of changed files")
    assert _added(_add, 2) == 42
    assert made == ["_add", "_add"]


def test_damaged_code_is_not_loaded(place: Path, made: list[str]) -> None:
    assert _added(_add, 2) == 42
    whole = place.read_bytes()
    for damaged in (b"", whole[:80], whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        place.write_bytes(damaged)
        assert _added(_add, 2) == 42
    assert made == ["_add"] * 5


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of POSIX")
def test_code_that_others_could_have_written_is_not_loaded(place: Path, made: list[str]) -> None:
    assert _added(_add, 2) == 42
    place.chmod(0o666)
    assert _added(_add, 2) == 42
    assert made == ["_add", "_add"]
    place.unlink()
    place.parent.chmod(0o777)
    assert _added(_add, 2) == 42
    assert not place.exists()


def test_without_a_folder_to_write_to_it_is_made_all_the_same(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", "")
    assert _added(_add, 2) == 42


def test_what_compiled_code_cannot_do_is_an_error_here(place: Path) -> None:
    assert _added(_count_in_steps, 5) == 42
    with pytest.raises(RuntimeError, match="_count_in_steps"):
        _added(_count_in_steps, 0)
    with pytest.raises(ValueError, match="Numbers"):
        module.entry(_add)(Numbers(np.zeros(4, dtype=np.int64)[::2]), 1)


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes_whatever_processor_and_folder(tmp_path: Path) -> None:
    from gpadvisor.simulator.__main__ import loop

    script = """if True:
        import sys
        from gpadvisor.simulator import __main__, compiled
        compiled._places = lambda: iter(())
        sys.stdout.buffer.write(__main__.loop())
    """
    again = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "7"}, cwd=tmp_path, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert again.stdout == loop()


def test_a_wheel_takes_the_code_with_it() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    artifacts = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["artifacts"]
    code = next(module._places()).relative_to(ROOT).as_posix()
    assert any(fnmatch(code, pattern) for pattern in artifacts)
