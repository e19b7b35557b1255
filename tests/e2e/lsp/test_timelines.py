# SPDX-License-Identifier: Apache-2.0
"""A traced run in an editor: findings on host lines, and what changes of kernels are worth there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from tests.host_traces import Host, write_host_trace, write_waiting_database
from tests.kernels import KERNELS
from tests.lsp_client import Editor, editor
from tests.lsp_projects import launch_of, make_project, report_of

from gpadvisor.store.load import load_profile
from gpadvisor.store.timeline import read_timeline
from gpadvisor.store.timeline.stored import write_with_timeline

pytestmark = [pytest.mark.asyncio]

SOURCE = """\
#include <cuda_runtime.h>
void launch(float *data);

// step() waits for each kernel.
void step(float *data) {
    launch(data);
    cudaDeviceSynchronize();
}

int main() {
    for (int i = 0; i < 20; i++) step(nullptr);
}
"""
PYTHON = "import torch\n" * 9 + "def step(data):\n    data.sin_()\n    torch.cuda.synchronize()\n"
KERNEL = "thermal_stencil"


def waiting(name: str = "k", kernel_ns: int = 60_000) -> Host:
    host = Host(name=name)
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=kernel_ns)
        host.wait("cudaDeviceSynchronize", "step", 13)
        host.run(30_000)
    return host


def coded(found: list[lsp.Diagnostic], code: str) -> list[lsp.Diagnostic]:
    return [one for one in found if one.code == code]


def has(code: str) -> Callable[[list[lsp.Diagnostic]], bool]:
    return lambda found: bool(coded(found, code))


def folder(tmp_path: Path, **texts: str) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    for name, text in texts.items():
        (place / name.replace("_", ".")).write_text(text)
    return place


async def quiet(one: Editor) -> None:
    """Until everything that was asked for is there."""
    await one.until(lambda: bool(one.own.get("gpadvisor/status")))
    await asyncio.sleep(1.0)
    await one.status("idle", "noKernel", "noProfile", "stale", "error", "untrusted")


@pytest.mark.parametrize("name", ["host.cpp", "host.cu"])
async def test_an_export_stands_on_the_function_it_names(tmp_path: Path, name: str) -> None:
    project = folder(tmp_path)
    (project / name).write_text(SOURCE)
    write_host_trace(project / "run.sqlite", waiting())
    async with editor(project, settings={"run": "manual"}) as one:
        one.open(name, language="cpp")
        (found,) = coded(await one.shown(name, has("GPA501")), "GPA501")
        assert found.range.start.line == SOURCE.splitlines().index("void step(float *data) {")
        assert re.match(r"\S+x \(\S+\) of the whole run: Needless Wait: 20 calls of cuda", found.message)
        assert found.message.endswith("[measured, unverified, run.sqlite]")
        assert found.severity is lsp.DiagnosticSeverity.Information, "the low end may be needed"
        assert found.code_description is not None
        assert found.code_description.href.endswith("GPA501-needless-wait.md")
        said = await one.hover(name, found.range.start.line)
        assert said is not None
        assert "of the whole run `run.sqlite`" in said
        assert "somewhere in step" in said
        assert "unverified: a trace does not carry its source" in said
        # It follows its line.
        one.edit(name, "// new\n", lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
        await one.shown(name, lambda now: [each.range.start.line for each in coded(now, "GPA501")] == [5])
        # The trace goes, and so do its findings.
        (project / "run.sqlite").unlink()
        changes = [lsp.FileEvent(uri=one.uri("run.sqlite"), type=lsp.FileChangeType.Deleted)]
        one.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))
        await one.shown(name, lambda now: not coded(now, "GPA501"))


async def test_a_chrome_trace_stands_in_python(tmp_path: Path) -> None:
    project = folder(tmp_path)
    (project / "app").mkdir()
    (project / "app" / "step.py").write_text(PYTHON)
    write_host_trace(project / "run.pt.trace.json", waiting())
    async with editor(project) as one:
        one.open("app/step.py", language="python")
        (found,) = coded(await one.shown("app/step.py", has("GPA501")), "GPA501")
        assert found.range.start.line == 9
        assert "of the whole run" in found.message


async def test_a_database_of_hpctoolkit_has_the_line_of_the_call_and_related_places(tmp_path: Path) -> None:
    project = folder(tmp_path, app_cu="\n\n  kernel();\n  cudaDeviceSynchronize();\n")
    write_waiting_database(project / "measured")
    async with editor(project, settings={"run": "manual", "timeline": {"file": "measured"}}) as one:
        one.open("app.cu")
        (found,) = coded(await one.shown("app.cu", has("GPA501")), "GPA501")
        assert found.range.start == lsp.Position(3, 2)
        (related,) = found.related_information or ()
        assert (related.location.uri, related.location.range.start.line) == (one.uri("app.cu"), 2)
        assert "ends gaps of 0.008 ms behind" in related.message


async def test_a_comment_sets_a_finding_aside(tmp_path: Path) -> None:
    text = SOURCE.replace("data) {", "data) {  // gpadvisor: ignore[GPA501] read by another process", 1)
    project = folder(tmp_path, host_cpp=text)
    write_host_trace(project / "run.sqlite", waiting())
    async with editor(project) as one:
        one.open("host.cpp", language="cpp")
        await one.until(lambda: "gpadvisor/status" in one.own)
        await one.status("idle")
        said = await one.hover("host.cpp", SOURCE.splitlines().index("void step(float *data) {"))
        assert said is not None
        assert "Suppressed in the source: read by another process" in said
        assert not coded(one.diagnostics("host.cpp"), "GPA501")


@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_what_a_change_of_a_kernel_is_worth_for_the_run_stands_beside(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    launch = launch_of(KERNEL)
    async with editor(project, settings={"run": "manual"}) as one:
        one.open("kernel.cu")
        leading = KERNELS[KERNEL].plants
        alone = await one.shown("kernel.cu", has(leading))
        assert not any("of the whole run" in each.message for each in alone)
        write_host_trace(project / "run.sqlite", waiting(name=launch.kernel, kernel_ns=20_000))
        changes = [lsp.FileEvent(uri=one.uri("run.sqlite"), type=lsp.FileChangeType.Created)]
        one.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))
        told = await one.shown(
            "kernel.cu", lambda now: any("x of the whole run: " in each.message for each in now)
        )
        first = next(each for each in coded(told, leading) if not each.message.startswith("Part of "))
        match = re.match(r"(\S+)x \(\S+\), (\S+)x of the whole run: Strength Reduction, ", first.message)
        assert match
        assert 1.0 < float(match[2]) < float(match[1]), "the GPU idles for part of the run"
        said = await one.hover("kernel.cu", first.range.start.line)
        assert said is not None
        assert re.search(r"a GPU works in \d+ % of `run.sqlite`: \S+x \(\S+\) of the whole run", said)
        lens, *_ = await one.lenses("kernel.cu")
        assert "of the whole run: " in lens.command.title


@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_a_run_of_another_program_takes_nothing_from_a_profile(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    (project / "host.cpp").write_text(SOURCE)
    write_host_trace(project / "run.sqlite", waiting(name="another_kernel"))
    async with editor(project, settings={"run": "manual"}) as one:
        one.open("host.cpp", language="cpp")
        one.open("kernel.cu")
        await one.shown("host.cpp", has("GPA501"))
        found = await one.shown("kernel.cu", has(KERNELS[KERNEL].plants))
        await one.status("idle")
        assert not any("of the whole run" in each.message for each in found)


async def test_of_a_workspace_that_is_not_trusted_nothing_is_read(tmp_path: Path) -> None:
    project = folder(tmp_path, host_cpp=SOURCE)
    write_host_trace(project / "run.sqlite", waiting())
    settings = {"timeline": {"file": str(project / "run.sqlite")}}
    async with editor(project, options={"trusted": False}, settings=settings) as one:
        one.open("host.cpp", language="cpp")
        await one.status("untrusted")
        await quiet(one)
        assert not one.diagnostics("host.cpp")


async def test_bad_traces_give_one_sentence(tmp_path: Path) -> None:
    project = folder(tmp_path, host_cpp=SOURCE)
    write_host_trace(project / "run.sqlite", waiting())
    with (project / "run.sqlite").open("r+b") as stream:
        stream.truncate(6_000)
    async with editor(project) as one:
        one.open("host.cpp", language="cpp")
        await one.until(lambda: bool(one.client.messages))
        (message,) = {each.message for each in one.client.messages}
        assert "run.sqlite cannot be read as an export of Nsight Systems" in message
        assert message.count("\n") == 0
        await quiet(one)
        assert len(one.client.messages) == 1


async def test_a_timeline_that_is_named_and_is_none_is_told(tmp_path: Path) -> None:
    project = folder(tmp_path, host_cpp=SOURCE)
    async with editor(project, settings={"timeline": {"file": "gone.sqlite"}}) as one:
        one.open("host.cpp", language="cpp")
        await one.until(lambda: bool(one.client.messages))
        assert "gone.sqlite is no file, or is empty" in one.client.messages[0].message


async def test_a_database_of_something_else_is_passed_over(tmp_path: Path) -> None:
    project = folder(tmp_path, host_cpp=SOURCE)
    write_host_trace(project / "run.sqlite", waiting())
    with closing(sqlite3.connect(project / "users.sqlite")) as database:
        database.execute("CREATE TABLE users (name)")
        database.commit()
    async with editor(project) as one:
        one.open("host.cpp", language="cpp")
        await one.shown("host.cpp", has("GPA501"))
        assert not one.client.messages


async def test_without_places_it_says_so(tmp_path: Path) -> None:
    project = folder(tmp_path, other_cpp="int main() {}\n")
    write_host_trace(project / "run.sqlite", waiting())
    async with editor(project) as one:
        one.open("other.cpp", language="cpp")
        await one.until(lambda: bool(one.client.messages))
        said = one.client.messages[0].message
        assert re.search(
            r"1 finding on host code, best \S+x \(\S+\) of the whole run: Needless Wait, on no", said
        )
        assert "step" in said


@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_a_snapshot_with_a_timeline_needs_nothing_else(tmp_path: Path) -> None:
    """As ``gpadvisor profile --timeline`` leaves it."""
    project = make_project(tmp_path / "project", KERNEL)
    (project / "host.cpp").write_text(SOURCE)
    (tmp_path / "run.ncu-rep").write_bytes(report_of(KERNEL))
    trace = write_host_trace(tmp_path / "run.sqlite", waiting(name=launch_of(KERNEL).kernel))
    profile = load_profile(tmp_path / "run.ncu-rep")
    write_with_timeline(profile, read_timeline(trace), project / "profile.gpadvisor")
    async with editor(project, settings={"run": "manual"}) as one:
        one.open("host.cpp", language="cpp")
        one.open("kernel.cu")
        (found,) = coded(await one.shown("host.cpp", has("GPA501")), "GPA501")
        assert found.message.endswith("[measured, unverified, profile.gpadvisor]")
        await one.shown("kernel.cu", lambda now: any("x of the whole run: " in each.message for each in now))
