# SPDX-License-Identifier: Apache-2.0
"""Settings files: found upwards, checked key by key, documented."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from gpadvisor.errors import SettingsError
from gpadvisor.pipeline.settings import Settings, find_settings, parse_settings

ROOT = Path(__file__).resolve().parents[3]


def test_nearest_file_wins_and_paths_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "gpadvisor.toml").write_text('top = 3\nmachine = "my.toml"\n[source-map]\n"/build" = "."\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    loaded = find_settings(inner)
    assert loaded.path == tmp_path / "gpadvisor.toml"
    assert loaded.settings.top == 3
    assert loaded.settings.machine == str(tmp_path / "my.toml")
    assert dict(loaded.settings.source_map) == {"/build": "."}
    assert loaded.digest


def test_pyproject_table_is_read_and_a_foreign_pyproject_is_not_ours_to_judge(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gpadvisor]\nmin-speedup = 1.5\n")
    assert find_settings(tmp_path).settings.min_speedup == 1.5
    (tmp_path / "pyproject.toml").write_text("this is = not [ toml")
    assert find_settings(tmp_path).path is None
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_settings(tmp_path).path is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nvcc = 'evil'", "unknown setting 'nvcc'"),
        ("top = 0", "'top' must be a positive integer"),
        ("top = true", "'top' must be a positive integer"),
        (f"top = {'9' * 30}", "'top' must be a positive integer up to"),
        (f"min-speedup = {'9' * 400}", "'min-speedup' must be a number"),
        ("tool-timeout-seconds = inf", "'tool-timeout-seconds' must be a number from 0"),
        ("memory-mib = 9223372036854775807", "'memory-mib' must be a positive integer up to"),
        ('machine = "a\\u0000b"', "'machine' has a character that no path"),
        ('flags = ["-Ia\\u0000b"]', "'flags' has a character that no path"),
        ('[source-map]\n"a\\u0000" = "b"', "'source-map' has a character that no path"),
        (f"[launches.k]\ngrid = [{'9' * 30}]", "launches.k.grid must be one to three positive integers"),
        ('[launches.k]\nloops = {"²" = 3}', "launches.k.loops must be a table of source lines"),
        (f'[launches.k]\nloops = {{"3" = {"9" * 30}}}', "launches.k.loops.3 must be an integer from 0"),
        ("min-speedup = 'x'", "'min-speedup' must be a number"),
        ("flags = 'x'", "'flags' must be a list"),
        ("arch = 3", "'arch' must be a string"),
        ("source-map = 3", "'source-map' must be a table"),
        ("top = ", "is not valid TOML"),
        ("top = " + "[" * 100_000, "nested too deeply"),
        ("a." * 400_000 + "b = 1", "nested too deeply"),  # the parser would take a day
    ],
)
def test_a_wrong_file_is_named_with_its_fault(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "gpadvisor.toml").write_text(text)
    with pytest.raises(SettingsError, match=says) as caught:
        find_settings(tmp_path)
    assert str(tmp_path / "gpadvisor.toml") in str(caught.value)
    assert caught.value.exit_code == 2


def test_no_key_names_a_program() -> None:
    for tool in ("nvcc", "nvdisasm", "cuobjdump", "ncu", "compiler"):
        with pytest.raises(SettingsError):
            parse_settings({tool: "anything"}, "test")


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        assert f"| `{name.replace('_', '-')}` |" in page
        assert hint.__metadata__[0] in page
