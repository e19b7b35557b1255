# SPDX-License-Identifier: Apache-2.0
"""A workspace that means ill: nothing of it is run, and the server answers all the while."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from tests.kernels import KERNELS
from tests.lsp_client import editor
from tests.lsp_projects import make_project, report_of

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

KERNEL = "thermal_stencil"
NAME = "kernel.cu"


def plant(project: Path) -> Path:
    """A program that leaves a mark where it is run, under every name that something might run."""
    mark = project.parent / "ran"
    program = f"#!/bin/sh\ntouch {mark}\n"
    for name in ("evil", "nvcc", "nvdisasm", "cuobjdump", "g++", "gcc", "ncu", "python3"):
        (project / name).write_text(program, encoding="utf-8")
        (project / name).chmod(0o755)
    for module in ("numpy", "cattrs", "gpadvisor_plugin", "sitecustomize"):
        (project / f"{module}.py").write_text(f"open({str(mark)!r}, 'w').close()\n", encoding="utf-8")
    touch = f"touch {mark}"
    (project / "compile_commands.json").write_text(
        json.dumps(
            [
                {
                    "directory": f"{project}",
                    "file": NAME,
                    "command": f"{project}/evil -c {NAME}; {touch} && $({touch}) `{touch}` | sh "
                    f"-ccbin {project}/evil "
                    f"-Xcompiler '-wrapper {project}/evil' -D'X=$({touch})' --compiler-bindir={project}/g++ "
                    f"-arch=sm_80 -o 'x;{touch}' -I '$({touch})'",
                }
            ]
        ),
        encoding="utf-8",
    )
    (project / ".vscode").mkdir()
    settings = {
        "gpadvisor.nvcc.path": str(project / "evil"),
        "gpadvisor.profile.command": [str(project / "evil")],
    }
    (project / ".vscode" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return mark


async def test_nothing_of_the_project_is_run_though_it_is_trusted(tmp_path: Path) -> None:
    """Trust lets the compiler run, but no program that the project names."""
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    mark = plant(project)
    async with editor(project, command=None) as one:
        one.open(NAME)
        await one.shown(NAME, lambda found: any("[measured" in each.message for each in found))
        await one.status("idle", "error")
        assert not mark.exists()


async def test_without_trust_nothing_is_compiled_or_read(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    mark = plant(project)
    (project / "gpadvisor.toml").write_text("top = 1\n", encoding="utf-8")
    given = {
        "nvcc.path": str(project / "evil"),
        "profile.command": [str(project / "evil")],
        "profile.onSave": True,
    }
    async with editor(project, options={"trusted": False}, settings=given) as one:
        before = _accessed(project)
        one.open(NAME, (tmp_path / "project" / NAME).read_text(encoding="utf-8"))
        one.save(NAME, write=False)
        said = await one.status("untrusted")
        assert said["findings"] == 0
        for command, word in (
            ("analyzeFile", one.uri(NAME)),
            ("modelFile", one.uri(NAME)),
            ("importProfile", one.uri("run.ncu-rep")),
            ("profile", one.uri(NAME)),
        ):
            with pytest.raises(JsonRpcException, match="not trusted"):
                await one.execute(f"gpadvisor.server.{command}", word)
        assert "not trusted" in (await one.ask("gpadvisor/sass", {"uri": one.uri(NAME)}))["message"]
        assert not await one.lenses(NAME)
        assert one.published == []
        assert _accessed(project) == before
        assert not mark.exists()


async def test_a_client_that_says_nothing_about_trust_is_not_trusted(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    async with editor(project, options={"trusted": None}) as one:
        one.open(NAME)
        await one.status("untrusted")
        await one.until(lambda: any("trusted" in each.message for each in one.client.messages))
        assert one.published == []


async def test_a_profile_command_is_asked_about_before_it_runs_by_itself(tmp_path: Path) -> None:
    """Trust in a folder is given before the settings that come with it are seen."""
    project = make_project(tmp_path / "project", KERNEL)
    mark = tmp_path / "ran"
    given = {"profile.command": ["touch", str(mark)], "profile.onSave": True, "run": "manual"}
    async with editor(project, settings=given) as one:
        one.open(NAME)
        one.answer = lambda _params: None
        for _ in range(2):
            one.save(NAME, write=False)
            await one.until(lambda: one.asked)
        await one.hover(NAME, 0)
        assert [each.message for each in one.asked] == [
            f"Run this command after each save in project? touch {mark}"
        ]
        assert not mark.exists()
    async with editor(project, settings=given) as one:
        one.open(NAME)
        one.answer = lambda _params: "Run"
        one.save(NAME, write=False)
        await one.until(mark.exists)
        one.save(NAME, write=False)
        await one.hover(NAME, 0)
        assert len(one.asked) == 1


def _accessed(project: Path) -> dict[str, int]:
    """When each file was read last, where the file system keeps that."""
    return {path.name: path.stat().st_atime_ns for path in project.iterdir() if path.name != NAME}


async def test_a_settings_file_cannot_name_a_program(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    mark = plant(project)
    (project / "gpadvisor.toml").write_text(f'nvcc = "{project}/evil"\n', encoding="utf-8")
    async with editor(project) as one:
        one.open(NAME)
        said = await one.status("error")
        assert "unknown setting 'nvcc'" in said["detail"]
        assert not mark.exists()


async def test_a_report_of_200_megabytes_of_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    with (project / "huge.ncu-rep").open("wb") as stream:
        stream.write(b"NVR\0\x02\0\0\0\x08\x07")
        stream.truncate(200 << 20)
    async with editor(project) as one:
        one.open(NAME)
        await one.status("error", "busy")
        assert await one.hover(NAME, 0) is None
        await one.shown(NAME)
        said = await one.status("error")
        assert "huge.ncu-rep" in said["detail"]
        assert "Traceback" not in said["detail"]


@pytest.mark.slow
async def test_lines_of_100_kilobytes(tmp_path: Path) -> None:
    """Beside a small file in the same server: each key press there is followed by an answer here."""
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    long = "/* " + "x y " * 25_000 + "*/"
    text = (project / NAME).read_text(encoding="utf-8")
    (project / "long.cu").write_text(
        "\n".join(f"{line} {long}" for line in text.splitlines()), encoding="utf-8"
    )
    async with editor(project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        await one.shown(NAME, lambda found: any("[measured" in each.message for each in found))
        one.open("long.cu")
        for number in range(20):
            one.edit("long.cu", f"int n{number};", lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
            assert await one.hover(NAME, KERNELS[KERNEL].planted_line("def") - 1)
        await one.shown("long.cu")
        assert await one.lenses("long.cu") is not None


async def test_a_profile_in_flight_does_not_hold_up_its_neighbour(tmp_path: Path) -> None:
    """A named pipe as a report: reading it never ends, so nothing reads it."""
    project = make_project(tmp_path / "project", KERNEL)
    os.mkfifo(project / "pipe.ncu-rep")
    async with editor(project) as one:
        one.open(NAME)
        assert await one.shown(NAME)
        with pytest.raises(JsonRpcException, match="no file"):
            await one.execute("gpadvisor.server.importProfile", one.uri("pipe.ncu-rep"))
