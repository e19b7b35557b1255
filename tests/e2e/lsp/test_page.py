# SPDX-License-Identifier: Apache-2.0
"""The page as our own client is given it: of a profile or the source it names, in the lines of today."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from tests.kernels import KERNELS
from tests.lsp_client import editor
from tests.lsp_projects import make_project, report_of

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

KERNEL = "thermal_stencil"
NAME = "kernel.cu"
PAGE = "gpadvisor/page"


def measured(found: list[lsp.Diagnostic]) -> bool:
    return any("[measured" in one.message for one in found)


def now_of(file: Any, line: int) -> int:
    """Today's line (from 0) of a line of the page's text (from 0)."""
    (run,) = (one for one in file["lines"] if 0 <= line - one["then"] < one["count"])
    return int(run["now"] + line - run["then"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))


async def test_a_source_has_the_page_of_the_profile_that_names_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        result = await one.ask(PAGE, {"uri": one.uri(NAME)})
        assert result["uri"] == one.uri("run.ncu-rep")
        document = json.loads(result["document"])
        assert len(result["files"]) == len(document["files"])
        monkeypatch.chdir(project)
        printed = tmp_path / "advice.json"
        assert main(["advise", "run.ncu-rep", "--format", "json", "-o", str(printed)]) == 0
        wanted, shown = json.loads(printed.read_text(encoding="utf-8")), document["advice"]
        assert [kernel["suggestions"] for kernel in shown["kernels"]] == [
            kernel["suggestions"] for kernel in wanted["kernels"]
        ]
        at = next(number for number, file in enumerate(result["files"]) if file["uri"] == one.uri(NAME))
        assert document["files"][at]["text"] == one.texts[NAME]
        planted = KERNELS[KERNEL].planted_line("use") - 1
        assert now_of(result["files"][at], planted) == planted

        again = await one.ask(PAGE, {"uri": one.uri("run.ncu-rep"), "known": result["digest"]})
        assert (again["document"], again["digest"], again["files"]) == (
            None,
            result["digest"],
            result["files"],
        )
        one.edit(NAME, f"// one\n// two\n{one.texts[NAME]}")
        moved = await one.ask(PAGE, {"known": result["digest"]})
        assert moved["document"] is None
        assert now_of(moved["files"][at], planted) == planted + 2


async def test_a_new_profile_is_another_page(project: Path) -> None:
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        asked = {"uri": one.uri("run.ncu-rep")}
        first = await one.ask(PAGE, asked)
        (project / "run.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=5e5))
        await one.execute("gpadvisor.server.importProfile", asked["uri"])
        answer = await one.ask(PAGE, {**asked, "known": first["digest"]})
        assert json.loads(answer["document"])["advice"]["kernels"][0]["duration_ns"] == 5e5


async def test_the_newest_profile_comes_first_though_an_older_one_is_known(project: Path) -> None:
    """What an earlier server said of the older one is there at once; the newer one has to be read."""
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
    os.utime(project / "run.ncu-rep", (1e9, 1e9))
    (project / "newer.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=5e5))
    for asked in ({"uri": NAME}, {}):
        async with editor(project) as one:
            one.open(NAME)
            await one.shown(NAME, measured)
            answer = await one.ask(PAGE, {key: one.uri(value) for key, value in asked.items()})
            assert answer["uri"] == one.uri("newer.ncu-rep")
        (project / "newer.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=6e5))


async def test_two_profiles_stand_beside_each_other(project: Path) -> None:
    (project / "after.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=5e5))
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        asked = {"uri": one.uri("after.ncu-rep"), "before": one.uri("run.ncu-rep")}
        compared = json.loads((await one.ask(PAGE, asked))["document"])["compared"]
        (kernel,) = compared["kernels"]
        assert (compared["before"], kernel["achieved"]) == ("run.ncu-rep", 2.0)
        assert sum(line["change_ns"] for line in kernel["lines"]) == pytest.approx(-5e5, rel=0.1)


async def test_what_cannot_be_shown_is_told(project: Path) -> None:
    (project / "broken.ncu-rep").write_bytes(b"nothing")
    (project / "notes.txt").write_text("nothing\n", encoding="utf-8")
    async with editor(project) as one:
        for asked, said in (
            ({"uri": "untitled:a"}, "no file"),
            ({"uri": one.uri("broken.ncu-rep")}, "broken.ncu-rep"),
            ({"uri": one.uri("notes.txt")}, "nothing is known"),
            ({"uri": one.uri("run.ncu-rep"), "before": "untitled:a"}, "no file"),
            ({"uri": 7}, "wrong type"),
        ):
            with pytest.raises(JsonRpcException, match=said):
                await one.ask(PAGE, asked)


async def test_nothing_is_read_without_trust(project: Path) -> None:
    async with editor(project, options={"trusted": False}) as one:
        with pytest.raises(JsonRpcException, match="not trusted"):
            await one.ask(PAGE, {"uri": one.uri("run.ncu-rep")})
        with pytest.raises(JsonRpcException, match="no profile is known"):
            await one.ask(PAGE, {})
