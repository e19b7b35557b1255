# SPDX-License-Identifier: Apache-2.0
"""Which copy of a tool is chosen, and what is said where none fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools import program, tool

from gpadvisor.errors import ToolNotFoundError
from gpadvisor.toolchain import discovery
from gpadvisor.toolchain.discovery import disassemblers, find_tools

Places = Callable[..., None]


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    """Replace the folders where tools are looked for."""
    for name in ("NVDISASM", "CUOBJDUMP", "NVCC"):
        monkeypatch.delenv(f"GPADVISOR_{name}", raising=False)

    def set_places(toolkit: tuple[Path, ...] = (), packages: tuple[tuple[Path, str], ...] = ()) -> None:
        monkeypatch.setattr(discovery, "toolkit_folders", lambda: iter(toolkit))
        monkeypatch.setattr(discovery, "_package_folders", lambda: iter(packages))

    set_places()
    return set_places


def test_setting_then_toolkit_then_wheel_then_triton(
    tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"mine": "12.9.1", "kit": "13.0.88", "wheel": "13.5.37", "triton": "12.8.55"}
    for name, version in versions.items():
        tool(tmp_path / name / "nvdisasm", version=version)
    places((tmp_path / "kit",), ((tmp_path / "wheel", "wheel"), (tmp_path / "triton", "triton")))
    monkeypatch.setenv("GPADVISOR_NVDISASM", str(tmp_path / "mine" / "nvdisasm"))
    found = find_tools("nvdisasm")
    assert [t.origin for t in found] == ["setting", "toolkit", "wheel", "triton"]
    assert [str(t) for t in found][:2] == ["nvdisasm 12.9.1", "nvdisasm 13.0.88"]
    assert found[0].architectures == {"75", "80", "86"}


def test_one_copy_by_two_ways_counts_once(tmp_path: Path, places: Places) -> None:
    tool(tmp_path / "a" / "nvdisasm")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "nvdisasm").symlink_to(tmp_path / "a" / "nvdisasm")
    places((tmp_path / "a", tmp_path / "b"))
    assert len(find_tools("nvdisasm")) == 1


@pytest.mark.parametrize("body", ["sys.exit(1)", "print('hello')", "os.kill(os.getpid(), 11)"])
def test_what_does_not_answer_is_passed_over(tmp_path: Path, places: Places, body: str) -> None:
    program(tmp_path / "bad" / "nvdisasm", body)
    tool(tmp_path / "good" / "nvdisasm")
    places((tmp_path / "bad", tmp_path / "good"))
    assert [t.path.parent.name for t in find_tools("nvdisasm")] == ["good"]


def test_a_setting_that_does_not_work_is_an_error(
    tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPADVISOR_NVDISASM", str(tmp_path / "nothing"))
    with pytest.raises(ToolNotFoundError, match="settings name as nvdisasm"):
        find_tools("nvdisasm")
    with pytest.raises(ToolNotFoundError, match="explicit"):
        find_tools("nvdisasm", explicit=tmp_path / "explicit")


def test_the_copy_that_knows_architecture_and_layout(tmp_path: Path, places: Places) -> None:
    tool(tmp_path / "old" / "nvdisasm", version="11.8.86", known="'SM70','SM75','SM80','SM90'")
    tool(tmp_path / "mid" / "nvdisasm", version="12.8.55", known="'SM70','SM75','SM80','SM90a','SM120'")
    tool(
        tmp_path / "new" / "nvdisasm", version="13.5.37", known="'SM75','SM80','SM90','SM90a','SM120','SM121'"
    )
    places((tmp_path / "old", tmp_path / "mid", tmp_path / "new"))

    def chosen(arch: str, abi: int) -> list[str]:
        return [t.path.parent.name for t in disassemblers(arch, abi)]

    assert chosen("sm_70", 7) == ["old", "mid", "new"]  # the last one takes it for sm_75
    assert chosen("sm_80", 7) == ["old", "mid", "new"]
    assert chosen("sm_80", 8) == ["new", "mid"]
    assert chosen("sm_90a", 7) == ["old", "mid", "new"]
    assert chosen("sm_121", 8) == ["new"]
    assert chosen("sm_120f", 8) == ["new", "mid"]
    with pytest.raises(ToolNotFoundError, match=r"nvdisasm 13\.5\.37 \(toolkit\) cannot"):
        disassemblers("sm_130", 8)


def test_volta_is_read_as_turing_where_no_copy_knows_it(
    tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path / "old" / "nvdisasm", version="12.8.55", known="'SM70','SM75'")
    tool(tmp_path / "new" / "nvdisasm", version="13.5.37", known="'SM75','SM80'")
    places((tmp_path / "new",))
    assert [t.path.parent.name for t in disassemblers("sm_70", 7)] == ["new"]
    places((tmp_path / "old", tmp_path / "new"))
    assert [t.path.parent.name for t in disassemblers("sm_70", 7)] == ["old", "new"]
    monkeypatch.setenv("GPADVISOR_NVDISASM", str(tmp_path / "new" / "nvdisasm"))
    assert [t.path.parent.name for t in disassemblers("sm_70", 7)] == ["new", "old"]


def test_what_to_install_where_there_is_nothing(places: Places) -> None:
    with pytest.raises(ToolNotFoundError, match="no copy of nvdisasm is here; install the package"):
        disassemblers("sm_86", 7)


def test_toolkits_are_looked_for_where_users_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "bin" / "nvdisasm", version="1.2.3")
    monkeypatch.delenv("GPADVISOR_NVDISASM", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert str(find_tools("nvdisasm")[0]) == "nvdisasm 1.2.3"
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert "nvdisasm 1.2.3" in [str(t) for t in find_tools("nvdisasm")]


@pytest.mark.nvdisasm
def test_the_real_one() -> None:
    found = find_tools("nvdisasm")
    assert found
    assert all(t.architectures for t in found)
    assert disassemblers("sm_86", 7)
