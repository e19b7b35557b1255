# SPDX-License-Identifier: Apache-2.0
"""Host code of a traced run on this machine: files by path, functions by the one definition of their name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.host_traces import Host, write_host_trace
from tests.lsp_projects import launch_of, make_project, report_of

from gpadvisor.cli import main
from gpadvisor.model.estimate import Estimate
from gpadvisor.model.timeline import HostPlace, RunFinding
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.sources.hosts import host_sources

GAIN = Estimate(low=1.1, expected=1.2, high=1.3, paper=None, equation="", reasons=())


def placed(root: Path, place: HostPlace, **settings: object) -> HostPlace:
    finding = RunFinding(
        code="GPA501", slug="", name="", title="", advice="", place=place, calls=1, speedup=GAIN
    )
    request = Request(settings=Settings(**settings), root=root)  # type: ignore[arg-type] # of a test
    (one,) = host_sources([finding], request).findings
    assert one.place is not None
    return one.place


@pytest.mark.parametrize(
    ("function", "text", "line"),
    [
        ("solve(float*, int)", "void other();\nvoid solve(float *x, int n)\n{\n}\n", 2),
        ("solve", "// void solve() {}\nvoid solve();\nint main() { solve(); }\nvoid solve() {}\n", 4),
        ("Grid::step(int)", "void Grid::step(int) {}\nvoid Mesh::step(int) {}\n", 1),
        ("ns::Grid<float>::step(int)", "struct Grid {\n  void step(int a = f(1)) const noexcept {}\n};\n", 2),
        ("main", "auto main(int, char **) -> int {\n}\n", 1),
    ],
)
def test_a_function_stands_where_it_is_defined(tmp_path: Path, function: str, text: str, line: int) -> None:
    (tmp_path / "app.cpp").write_text(text)
    place = placed(tmp_path, HostPlace(function=function, module="/opt/app", address=13))
    assert (place.file, place.line, place.is_definition) == (str(tmp_path / "app.cpp"), line, True)


@pytest.mark.parametrize(
    "text", ["void solve();\n", "if (solve(x)) {\n}\n", "x = y.solve() {\n", "solve(" * 9999]
)
def test_what_is_no_definition_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.cpp").write_text(text)
    assert placed(tmp_path, HostPlace(function="solve")).line == 0


def test_of_several_definitions_none_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("void solve() {}\n")
    (tmp_path / "b.cpp").write_text("void solve() {}\n")
    assert placed(tmp_path, HostPlace(function="solve")).line == 0


def test_a_file_is_found_by_its_path_or_by_the_users_mapping(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "step.py").write_text("x\n")
    place = HostPlace(function="step", file="/build/app/step.py", line=1)
    finding = RunFinding(
        code="GPA501", slug="", name="", title="", advice="", place=place, calls=1, speedup=GAIN
    )
    for mapping in ({}, {"/build": str(tmp_path)}):
        found = host_sources([finding], Request(settings=Settings(source_map=mapping), root=tmp_path))
        (match,) = found.sources.matches
        assert (match.report_path, match.local_path) == ("/build/app/step.py", str(tmp_path / "app/step.py"))


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_sarif_has_the_local_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    project = make_project(tmp_path / "project", "thermal_stencil", report=report_of("thermal_stencil"))
    (project / "src" / "app").mkdir(parents=True)
    (project / "src" / "app" / "step.py").write_text("\n" * 20)
    (project / "src" / "host.cpp").write_text("\nvoid step() {\n}\n")
    host = Host(name=launch_of("thermal_stencil").kernel)
    for _ in range(20):
        host.call("cudaLaunchKernel", 5_000, "step", 12, kernel=60_000)
        host.wait("cudaDeviceSynchronize", "step", 13)
        host.run(30_000)
    trace = write_host_trace(tmp_path / f"run.{kind}", host)
    monkeypatch.chdir(project)
    assert main(["advise", "run.ncu-rep", "--timeline", str(trace), "--format", "sarif"]) == 0
    (log,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = [one for one in log["results"] if one["ruleId"] == "GPA501"]
    place = result["locations"][0]["physicalLocation"]
    wanted = ("src/app/step.py", 10) if kind == "json" else ("src/host.cpp", 2)
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == wanted
