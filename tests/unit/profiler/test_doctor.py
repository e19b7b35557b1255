# SPDX-License-Identifier: Apache-2.0
"""The doctor on every machine under fixtures/doctor, and on this one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.errors import ToolFailedError
from gpadvisor.profiler.doctor import (
    CheckStatus,
    Diagnosis,
    FoundTool,
    diagnose,
    observe,
    render_json,
    render_text,
)
from gpadvisor.profiler.doctor.observation import World, this_machine
from gpadvisor.profiler.doctor.permission import counters_allowed

_SITUATIONS = sorted((Path(__file__).parents[3] / "fixtures/doctor").glob("*.toml"))


def world_of(path: Path, root: Path) -> tuple[World, dict[str, object]]:
    """A recorded machine laid out below a folder, and what is expected of it."""
    recorded = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, text in recorded["files"].items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    programs, answers = recorded["programs"], recorded["answers"]
    release = tuple(recorded["world"].get("cupti", ()))

    def ask(command: Sequence[str]) -> str:
        line = " ".join([Path(command[0]).name, *command[1:]])
        if line not in answers:
            raise ToolFailedError(f"{line} failed")
        return str(answers[line])

    world = World(
        root=root,
        environment=recorded["environment"],
        find=programs.get,
        ask=ask,
        packages=lambda _name: (),
        cupti=lambda: FoundTool(path="/usr/lib/libcupti.so", version=release) if release else None,
        system=recorded["world"]["system"],
        architecture=recorded["world"]["architecture"],
        user_id=recorded["world"]["user"],
    )
    return world, recorded["expect"]


@pytest.mark.parametrize("path", _SITUATIONS, ids=lambda path: path.stem)
def test_situation(path: Path, tmp_path: Path) -> None:
    world, expect = world_of(path, tmp_path)
    diagnosis = diagnose(observe(world))
    text = render_text(diagnosis)
    by_status = {status: [c.name for c in diagnosis.checks if c.status is status] for status in CheckStatus}
    assert diagnosis.step.name.lower() == expect["step"], text
    assert str(expect["next"]) in diagnosis.next_command, text
    assert by_status[CheckStatus.BLOCKED] == expect.get("blocked", []), text
    assert by_status[CheckStatus.WARNING] == expect.get("warning", []), text
    for status in (CheckStatus.OK, CheckStatus.NOTE):
        assert set(expect.get(status.value, [])) <= set(by_status[status]), text
    plain = " ".join(text.split())
    for words in expect.get("says", []):  # type: ignore[attr-defined] # a list of strings in the file
        assert words in plain, text


@pytest.mark.parametrize("path", _SITUATIONS, ids=lambda path: path.stem)
def test_every_block_says_what_it_means_who_can_change_it_and_what_to_do(path: Path, tmp_path: Path) -> None:
    diagnosis = diagnose(observe(world_of(path, tmp_path)[0]))
    for check in diagnosis.blocked:
        assert check.meaning
        assert check.layer is not None
        assert check.action
    for check in diagnosis.checks:
        if check.status is CheckStatus.WARNING:
            assert check.meaning
            assert check.action


def test_there_is_a_machine_for_every_check() -> None:
    """A check that no recorded machine raises would be untested."""
    raised: set[str] = set()
    for path in _SITUATIONS:
        expect = tomllib.loads(path.read_text(encoding="utf-8"))["expect"]
        for status in ("blocked", "warning", "note"):
            raised.update(expect.get(status, []))
    assert raised >= {
        "driver", "GPU", "counter permission", "MIG", "MPS", "DCGM", "confidential computing",
        "other profiler", "injection", "collectors", "CUDA tools", "versions", "architecture",
    }  # fmt: skip


def test_text_fits_its_width_but_for_commands(tmp_path: Path) -> None:
    for path in _SITUATIONS:
        root = tmp_path / path.stem
        root.mkdir()
        text = render_text(diagnose(observe(world_of(path, root)[0])), width=80)
        for line in text.splitlines():
            assert len(line) <= 80 or "$ " in line or line.startswith("Next: "), line


def test_json_says_the_same(tmp_path: Path) -> None:
    diagnosis = diagnose(observe(world_of(_SITUATIONS[0], tmp_path)[0]))
    document = json.loads(render_json(diagnosis))
    assert document["schema"] == "gpadvisor.doctor/1"
    assert [check["name"] for check in document["checks"]] == [check.name for check in diagnosis.checks]


def test_this_machine_is_examined_without_an_error() -> None:
    diagnosis = diagnose(observe(this_machine()))
    assert isinstance(diagnosis, Diagnosis)
    assert diagnosis.next_command


@given(
    version=st.text(max_size=200),
    params=st.text(max_size=200),
    status=st.text(max_size=200),
    smi=st.text(max_size=300),
)
def test_strange_files_are_no_error(
    version: str, params: str, status: str, smi: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("machine")
    for name, text in (
        ("proc/driver/nvidia/version", version),
        ("proc/driver/nvidia/params", params),
        ("proc/self/status", status),
    ):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace", newline="")
    world = World(
        root=root,
        environment={},
        find=lambda name: name,
        ask=lambda _command: smi,
        packages=lambda _name: (),
        cupti=lambda: None,
        system="Linux",
        architecture="x86_64",
        user_id=1000,
    )
    assert diagnose(observe(world)).next_command


def test_a_capability_in_a_user_namespace_is_none_on_the_host(tmp_path: Path) -> None:
    path = next(path for path in _SITUATIONS if path.stem == "rootless")
    situation = observe(world_of(path, tmp_path)[0])
    assert situation.user_namespace
    assert counters_allowed(situation) is False
