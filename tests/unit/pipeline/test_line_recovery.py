# SPDX-License-Identifier: Apache-2.0
"""Reports without a line table: their lines from the source that is here, else where their kernel begins."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from tests.kernels import KERNELS
from tests.ncu_writer import write_report
from tests.sampled import sampled

from gpadvisor.editor.contents.analysis import advise_and_show, sass_for_editor
from gpadvisor.editor.place.placing import place
from gpadvisor.errors import GpadvisorError
from gpadvisor.model.advice import Advice
from gpadvisor.model.finding import BaselineKind, EditorAnalysis, Freshness
from gpadvisor.model.problem import ProblemCode
from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.formats import RenderOptions
from gpadvisor.pipeline.render import render_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.snapshots import import_profile
from gpadvisor.report.text import render_text
from gpadvisor.toolchain.compile import compile_source

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

KERNEL = KERNELS["thermal_stencil"]
TEXT = KERNEL.source().read_text(encoding="utf-8")


def without_table(cubin: bytes) -> bytes:
    """The cubin with its line table under a name that nobody looks for."""
    assert b".debug_line\0" in cubin
    return cubin.replace(b".debug_line\0", b".other_line\0")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The kernel as the compiler of this machine makes it."""
    source = tmp_path_factory.mktemp("built") / "stencil.cu"
    source.write_text(TEXT, encoding="utf-8")
    return compile_source(source, arch="sm_80").cubin


def report(cubin: bytes) -> bytes:
    return write_report([sampled(cubin, KERNEL.entry, seed="s", demangled=f"{KERNEL.entry}(float *)")])


@pytest.fixture
def project(tmp_path: Path, built: bytes) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "stencil.cu").write_text(TEXT, encoding="utf-8")
    (tmp_path / "run.ncu-rep").write_bytes(report(without_table(built)))
    (tmp_path / "lines.ncu-rep").write_bytes(report(built))
    return tmp_path


def request(root: Path, **changes: object) -> Request:
    return Request(settings=Settings(), root=root)._replace(**changes)  # type: ignore[arg-type] # by name


def advice(project: Path, name: str = "run.ncu-rep", **changes: object) -> Advice:
    return advise_file(project / name, request(project, **changes), lambda _: None, Cache(None)).advice


def editor(project: Path, cache: Cache, **changes: object) -> EditorAnalysis:
    return advise_and_show(project / "run.ncu-rep", request(project, **changes), lambda _: None, cache)[1]


def said(advised: Advice, code: ProblemCode) -> list[str]:
    return [one.message for kernel in advised.kernels for one in kernel.problems if one.code is code]


def scopes(advised: Advice) -> list[tuple[int | None, int, int]]:
    return [
        (None if one.scope.location is None else one.scope.location.line, one.samples, one.caused)
        for one in advised.kernels[0].scopes
    ]


def test_the_same_code_has_the_lines_of_its_table(project: Path) -> None:
    found, known = advice(project), advice(project, "lines.ncu-rep")
    assert scopes(found) == scopes(known)
    assert any(line is not None for line, _, _ in scopes(found))
    assert found.kernels[0].samples == known.kernels[0].samples
    (message,) = said(found, ProblemCode.LINES_RECOVERED)
    assert message.startswith("lines from stencil.cu, compiled here by ")
    assert message.endswith(": the same code as the report's")
    assert not said(found, ProblemCode.NO_LINE_INFO)
    assert "! Lines from stencil.cu" in render_text(found, width=200, color=False, sources={})


def test_nothing_is_compiled_where_that_is_not_wanted(project: Path) -> None:
    found = advice(project, may_compile=False)
    assert all(line is None for line, _, _ in scopes(found))
    (problem,) = (one for one in found.kernels[0].problems if one.code is ProblemCode.NO_LINE_INFO)
    assert problem.location is not None
    assert problem.location.file == str((project / "src" / "stencil.cu").resolve())
    assert "__global__" in TEXT.splitlines()[problem.location.line - 1]
    text = render_text(found, width=200, color=False, sources={})
    assert f"{KERNEL.entry} begins at stencil.cu:{problem.location.line}" in text


def test_a_source_that_does_not_compile_is_told_with_where_the_kernel_is(project: Path) -> None:
    source = project / "src" / "stencil.cu"
    source.write_text(TEXT.replace("float result", "undefined_type result"), encoding="utf-8")
    found = advice(project)
    (message,) = said(found, ProblemCode.NO_LINE_INFO)
    assert "stencil.cu does not compile" in message
    assert "undefined_type" in message
    assert "; stencil.cu does not compile here.\n" in render_text(found, width=200, color=False, sources={})


def test_a_source_with_another_kernel_of_that_name_gives_no_lines(project: Path) -> None:
    other = f'extern "C" __global__ void {KERNEL.entry}(int *out) {{ out[0] = 1; }}\n'
    (project / "src" / "stencil.cu").write_text(other, encoding="utf-8")
    (message,) = said(advice(project), ProblemCode.NO_LINE_INFO)
    assert "stencil.cu" in message


def test_of_two_files_that_define_the_kernel_and_give_no_lines_both_are_told(project: Path) -> None:
    """As of a kernel that a program and its tests both define, in other versions than the one profiled."""
    other = f'extern "C" __global__ void {KERNEL.entry}(int *out) {{ out[0] = 1; }}\n'
    for name in ("stencil.cu", "tests.cu"):
        (project / "src" / name).write_text(other, encoding="utf-8")
    found = advice(project)
    (message,) = said(found, ProblemCode.NO_LINE_INFO)
    cure = "2 files here define it (stencil.cu, tests.cu); --lines-from FILE names the one"
    assert message.endswith(f"; {cure}")
    text = render_text(found, width=200, color=False, sources={})
    assert f"{KERNEL.entry}: {cure}." in " ".join(text.split())


def test_of_two_sources_the_one_with_the_same_code_counts(project: Path) -> None:
    (project / "a.cu").write_text(TEXT.replace("__syncthreads();", ""), encoding="utf-8")
    (message,) = said(advice(project), ProblemCode.LINES_RECOVERED)
    assert "stencil.cu" in message
    assert "the same code" in message


def test_a_source_of_two_kernels_is_compiled_once(project: Path) -> None:
    source = project / "src" / "stencil.cu"
    second = 'extern "C" __global__ void second(float *out) { out[threadIdx.x] *= 2.0f; }'
    source.write_text(f"{TEXT}\n{second}\n", encoding="utf-8")
    cubin = without_table(compile_source(source, arch="sm_80").cubin)
    profiles = [
        sampled(cubin, name, seed="s", demangled=f"{name}(float *)") for name in (KERNEL.entry, "second")
    ]
    (project / "run.ncu-rep").write_bytes(write_report(profiles))
    steps: list[str] = []
    found = advise_file(project / "run.ncu-rep", request(project), steps.append, Cache(None)).advice
    assert sum("compiling stencil.cu" in step for step in steps) == 1
    assert len(said(found, ProblemCode.LINES_RECOVERED)) == 2


def test_when_the_time_for_compiling_is_spent_no_further_source_is_begun(project: Path) -> None:
    hurried = Settings()._replace(lines_timeout_seconds=0.0)
    (message,) = said(advice(project, settings=hurried), ProblemCode.NO_LINE_INFO)
    assert message.endswith("--lines-from stencil.cu does")
    named = (project / "src" / "stencil.cu",)
    assert said(advice(project, settings=hurried, lines_from=named), ProblemCode.LINES_RECOVERED)


def test_a_compile_under_way_is_ended_with_the_time_and_tried_again_later(project: Path) -> None:
    cache = Cache(project / "cache")
    hurried = Settings()._replace(lines_timeout_seconds=0.001)
    found = advise_file(project / "run.ncu-rep", request(project, settings=hurried), lambda _: None, cache)
    (message,) = said(found.advice, ProblemCode.NO_LINE_INFO)
    assert "stencil.cu did not compile for its lines within 0.001 s; --lines-from stencil.cu" in message
    assert not found.lasting
    text = " ".join(render_text(found.advice, width=200, color=False, sources={}).split())
    assert "; stencil.cu did not compile for its lines within 0.001 s; --lines-from stencil.cu waits" in text
    again = advise_file(project / "run.ncu-rep", request(project), lambda _: None, cache)
    assert said(again.advice, ProblemCode.LINES_RECOVERED)


def test_a_source_that_does_not_compile_is_not_compiled_again_before_something_changes(project: Path) -> None:
    cache = Cache(project / "cache")
    (project / ".git").mkdir()  # no header of another project is taken
    source = project / "src" / "stencil.cu"
    source.write_text(f'#include "sizes.h"\n__device__ int sizes[SIZES];\n{TEXT}', encoding="utf-8")

    def run() -> tuple[Advice, bool]:
        steps: list[str] = []
        found = advise_file(project / "run.ncu-rep", request(project), steps.append, cache).advice
        return found, any("compiling stencil.cu" in step for step in steps)

    first, compiled = run()
    assert compiled
    assert "sizes.h" in said(first, ProblemCode.NO_LINE_INFO)[0]
    second, compiled = run()
    assert not compiled
    assert said(second, ProblemCode.NO_LINE_INFO) == said(first, ProblemCode.NO_LINE_INFO)
    (project / "src" / "sizes.h").write_text("#define SIZES 1\n", encoding="utf-8")
    third, compiled = run()
    assert compiled
    assert said(third, ProblemCode.LINES_RECOVERED)


@pytest.mark.parametrize("redact", [False, True])
def test_a_snapshot_keeps_the_lines(project: Path, *, redact: bool) -> None:
    source, target = project / "src" / "stencil.cu", project / "run.gpadvisor"
    done = import_profile(
        project / "run.ncu-rep", target, request(project), redact=redact, progress=lambda _: None
    )
    assert [one.code for one in done.problems] == [ProblemCode.LINES_RECOVERED]
    known = scopes(advice(project))
    source.unlink()
    found = advise_file(target, request(project, may_compile=False), lambda _: None, Cache(None))
    assert scopes(found.advice) == known
    (message,) = said(found.advice, ProblemCode.LINES_RECOVERED)
    assert message.startswith("lines from stencil.cu, compiled here by ")
    assert found.texts == ({} if redact else {str(source.resolve()): TEXT})
    with zipfile.ZipFile(target) as members:
        assert all(str(project).encode() not in members.read(name) for name in members.namelist()) is redact


def test_lines_come_from_a_source_or_cubin_that_is_named(project: Path, built: bytes) -> None:
    elsewhere = project.parent / f"{project.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "renamed.cu").write_text(TEXT, encoding="utf-8")
    (elsewhere / "with_lines.cubin").write_bytes(built)
    (project / "src" / "stencil.cu").unlink()
    for name in ("renamed.cu", "with_lines.cubin"):
        (message,) = said(advice(project, lines_from=(elsewhere / name,)), ProblemCode.LINES_RECOVERED)
        assert name in message
        assert "the same code" in message
    with pytest.raises(GpadvisorError, match="missing"):
        advice(project, lines_from=(elsewhere / "missing.cu",))


def test_code_that_differs_in_part_says_for_how_much_it_has_lines(project: Path) -> None:
    changed = TEXT.replace("__global__", "__global__ __launch_bounds__(64, 16)", 1)
    (project / "src" / "stencil.cu").write_text(changed + "\n__device__ int more;\n", encoding="utf-8")
    found = advice(project, settings=Settings()._replace(extra_flags=("-maxrregcount=16",)))
    (message,) = said(found, ProblemCode.LINES_RECOVERED)
    assert re.search(r"other code than the report's, .*; \d+ % of the samples have a line", message)
    kernel = found.kernels[0]
    assert kernel.samples.total == advice(project, "lines.ncu-rep").kernels[0].samples.total
    assert kernel.samples.blamed + kernel.samples.self + kernel.samples.unattributed == kernel.samples.total


def test_the_editor_keeps_the_lines_of_a_source_that_is_edited_later(project: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    source = project / "src" / "stencil.cu"
    (first,) = editor(project, cache).files
    assert first.local == str(source.resolve())
    assert first.baseline == TEXT
    assert first.baseline_kind is BaselineKind.EMBEDDED
    edited = "// one line more\n" + TEXT.replace("max(tx - 1, 0)", "max(tx - 2, 0)")
    source.write_text(edited, encoding="utf-8")
    (second,) = editor(project, cache).files
    assert (second.baseline, second.lines) == (first.baseline, first.lines)
    fresh = [one for one in place(second, edited).lines if one.freshness is Freshness.FRESH]
    assert fresh
    assert all(one.line == one.data.line + 1 for one in fresh)


def test_the_editor_has_findings_on_the_definition_where_no_line_is_known(project: Path) -> None:
    shown = editor(project, Cache(None), may_compile=False)
    (kernel,) = shown.kernels
    assert kernel.place is not None
    assert "__global__" in TEXT.splitlines()[kernel.place.line - 1]
    (file,) = shown.files
    assert file.local == str((project / "src" / "stencil.cu").resolve())
    assert file.findings
    assert {one.line for one in file.findings} == {kernel.place.line}
    assert kernel.unplaced == kernel.samples > 0
    path = project / "run.ncu-rep"
    view = sass_for_editor(
        path, request(project, may_compile=False), lambda _: None, Cache(None), kernel=kernel.kernel
    )
    assert sum(row.samples for row in view.rows) == kernel.samples


def test_a_kernel_in_a_header_is_compiled_through_what_includes_it(project: Path) -> None:
    source = project / "src" / "stencil.cu"
    source.rename(project / "src" / "stencil.cuh")
    source.write_text('#include "stencil.cuh"\n', encoding="utf-8")
    (message,) = said(advice(project), ProblemCode.LINES_RECOVERED)
    assert "the same code" in message
    assert {Path(one.report_path).name for one in advice(project).sources} == {"stencil.cuh"}


def test_an_answer_is_made_anew_when_a_source_comes_or_changes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(project / "cache"))
    source = project / "src" / "stencil.cu"
    source.rename(project / "away")
    shown = RenderOptions(format="json", width=80, color=False, use_cache=True)

    def codes() -> set[str]:
        text = render_file(project / "run.ncu-rep", request(project), shown, lambda _: None).text
        return {one["code"] for kernel in json.loads(text)["kernels"] for one in kernel["problems"]}

    assert "no_line_info" in codes()
    (project / "away").rename(source)
    assert "lines_recovered" in codes()
