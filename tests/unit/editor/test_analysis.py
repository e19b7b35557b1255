# SPDX-License-Identifier: Apache-2.0
"""From a report or a source to what an editor shows: all samples on lines, findings where causes are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kernels import KERNELS, compile_text
from tests.ncu_writer import LaunchSpec, without_samples, write_report
from tests.sampled import sampled, sampled_launch

from gpadvisor.editor.contents import analysis as editor
from gpadvisor.editor.place.placing import place
from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.heat import heat
from gpadvisor.editor.show.hints import hints
from gpadvisor.editor.show.ledger import ledger
from gpadvisor.editor.show.lenses import lenses
from gpadvisor.editor.show.options import Options
from gpadvisor.errors import GpadvisorError, ProfileMismatchError
from gpadvisor.model.figures import gain
from gpadvisor.model.finding import BaselineKind, EditorAnalysis, FileAnalysis, Finding, Freshness, SassView
from gpadvisor.model.profile import Evidence
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sandbox.codec import from_json, to_json

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]

HEADER = """\
__device__ __forceinline__ float scaled(float v) {
  return v * 2.0f + v / 3.7;
}
"""
GATHER = """\
#include "/src/lib.cuh"
template <int N>
__global__ void gather(const float* in, const int* idx, float* out, int n) {
  float acc = 0;
#pragma unroll 1
  for (int k = threadIdx.x; k < n; k += 256 * N) {
#pragma unroll
    for (int u = 0; u < N; ++u) {
      int j = idx[k + 256 * u];
      acc += scaled(in[j]);
    }
  }
  out[threadIdx.x] = acc * 0.5 + 1.0;
}
template __global__ void gather<1>(const float*, const int*, float*, int);
template __global__ void gather<4>(const float*, const int*, float*, int);
"""
SOURCE_PATH, HEADER_PATH = "/src/gather.cu", "/src/lib.cuh"
NAMES = {"_Z6gatherILi1EEvPKfPKiPfi": "gather<1>", "_Z6gatherILi4EEvPKfPKiPfi": "gather<4>"}


def _request(root: Path, **changes: object) -> Request:
    return Request(settings=Settings(arch="sm_80"), root=root)._replace(**changes)


def _analyse(path: Path, cache: Path | None = None, **changes: object) -> EditorAnalysis:
    stages: list[str] = []
    value = editor.advise_and_show(path, _request(path.parent, **changes), stages.append, Cache(cache))[1]
    assert stages
    assert from_json(json.loads(json.dumps(to_json(value))), EditorAnalysis) == value
    return value


def _templates(**changes: object) -> list[LaunchSpec]:
    cubin = compile_text(GATHER, SOURCE_PATH, headers=((HEADER_PATH, HEADER),))
    sources = {SOURCE_PATH: GATHER, HEADER_PATH: HEADER}
    launches = [
        sampled(cubin, kernel, seed=kernel, demangled=f"void {name}(const float *)", sources=sources)
        for kernel, name in NAMES.items()
    ]
    return [replace(launches[0], duration_ns=9e6), replace(launches[1], duration_ns=1e6, **changes)]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> EditorAnalysis:
    path = tmp_path_factory.mktemp("templates") / "run.ncu-rep"
    path.write_bytes(write_report(_templates()))
    return _analyse(path)


def _file(value: EditorAnalysis, name: str) -> FileAnalysis:
    return next(file for file in value.files if file.path.endswith(name))


def _findings(value: EditorAnalysis) -> list[Finding]:
    return [finding for file in value.files for finding in file.findings]


def test_every_sample_is_on_a_line_or_counted_as_unplaced(templates: EditorAnalysis) -> None:
    for kernel in templates.kernels:
        own = [line for file in templates.files for line in file.lines if line.kernel == kernel.kernel]
        assert sum(line.samples for line in own) + kernel.unplaced == kernel.samples
        assert sum(line.latency for line in own) <= kernel.latency
        for line in own:
            assert sum(stall.samples for stall in line.stalls) == line.samples
            assert line.share == pytest.approx(line.samples / kernel.samples)
        assert sum(stall.samples for stall in kernel.stalls) == kernel.samples


def test_lines_of_a_counted_kernel_have_shares_of_what_was_executed(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([without_samples(sampled_launch("thermal_stencil"))]))
    value = _analyse(path)
    (file,) = value.files
    assert sum(line.share for line in file.lines) == pytest.approx(1.0, abs=0.02)
    assert all(line.samples == line.caused == 0 for line in file.lines)
    hot = heat(value, place(file, file.baseline or ""), Options())
    assert max(hot, key=lambda one: one.share).text.endswith(
        "of the executed instructions of `thermal_stencil`"
    )
    assert not hints(value, place(file, file.baseline or ""), {}, Options())


def test_texts_in_the_profile_are_the_baseline(templates: EditorAnalysis) -> None:
    source, header = _file(templates, "gather.cu"), _file(templates, "lib.cuh")
    assert (source.baseline, source.baseline_kind) == (GATHER, BaselineKind.EMBEDDED)
    assert (header.baseline, header.baseline_kind) == (HEADER, BaselineKind.EMBEDDED)


def test_instantiations_fold_into_one_finding_for_each_line_and_rule(templates: EditorAnalysis) -> None:
    for file in templates.files:
        keys = [(finding.line, finding.code) for finding in file.findings]
        assert len(keys) == len(set(keys))
    folded = [finding for finding in _findings(templates) if len(finding.parts) == 2]
    assert folded
    for finding in folded:
        assert finding.kernel_name == "gather<1>"  # has 90 % of the time, if not of the samples
        assert finding.kernel == finding.parts[0].kernel
        assert finding.samples == sum(part.samples for part in finding.parts)
        assert f"Also in {finding.parts[1].kernel_name}" in finding.message
    assert len({finding.id for finding in _findings(templates)}) == len(_findings(templates))


def test_findings_stand_in_headers_with_the_place_they_were_inlined_at(templates: EditorAnalysis) -> None:
    inlined = [finding for finding in _file(templates, "lib.cuh").findings if finding.line == 2]
    assert {"GPA102"} <= {finding.code for finding in inlined}
    strength = next(finding for finding in inlined if finding.code == "GPA102")
    assert strength.token == "3.7"
    assert any(entry.place.line == 10 and "inlined" in entry.message for entry in strength.related)


def test_routines_of_the_compiler_stand_where_they_are_called(templates: EditorAnalysis) -> None:
    # The line table goes on with the kernel's last line behind the kernel: nothing is on the closing brace.
    lines = {line.line for line in _file(templates, "gather.cu").lines if line.samples > 100}
    assert GATHER.splitlines().index("}") + 1 not in lines
    header = next(line for line in _file(templates, "lib.cuh").lines if line.line == 2)
    assert header.instructions > 100


def test_a_load_is_blamed_with_the_line_that_waits_for_it(templates: EditorAnalysis) -> None:
    source = _file(templates, "gather.cu")
    pairs = [
        (finding, entry)
        for file in templates.files
        for finding in file.findings
        for entry in finding.related
        if "waits here for" in entry.message
    ]
    assert any("scoreboard B" in entry.message for _, entry in pairs)
    for finding, entry in pairs:
        assert entry.message.count("% of the samples") == 1
        assert f"of the samples of {finding.kernel_name}" in finding.message
        assert len(finding.related) <= 5
    waiting = next(line for line in source.lines if line.line == 10 and line.kernel in NAMES)
    assert any(stall.cause is not None and stall.cause.place.line == 9 for stall in waiting.stalls)


def test_kernels_know_their_line_their_family_and_their_best_finding(templates: EditorAnalysis) -> None:
    assert [kernel.name for kernel in templates.kernels] == ["gather<1>", "gather<4>"]
    assert {kernel.base_name for kernel in templates.kernels} == {"gather"}
    for kernel in templates.kernels:
        assert kernel.place is not None
        assert kernel.place.line == 3
        assert kernel.evidence is Evidence.MEASURED
        assert kernel.launch == "launch 1 of 1: 100 x 256 threads"
        best = next(finding for finding in _findings(templates) if finding.id == kernel.best)
        assert best.code == kernel.best_code
        assert any(part.kernel == kernel.kernel for part in best.parts)
    assert templates.kernels[0].time_share == pytest.approx(0.9)
    assert templates.collected_at is not None


def test_what_is_shown_of_it(templates: EditorAnalysis) -> None:
    files = {file.path: place(file, file.baseline or "") for file in templates.files}
    source = files[SOURCE_PATH]
    titles = [lens.title for lens in lenses(templates, source, Options())]
    best = templates.kernels[0].best_speedup
    assert best is not None
    assert titles[0].startswith(f"{gain(best)}: Fast Math | ")
    assert " | gather<1> 90 % of GPU time" in titles[0]
    assert titles[-1] == "showing gather<1>; also gather<4> 10 %"
    assert len(titles) <= 3
    assert hints(templates, source, files, Options())
    assert heat(templates, source, Options())
    shown = diagnostics(templates, source, files, Options(), GATHER)
    assert {one.line for one in shown} <= set(range(1, GATHER.count("\n") + 1))
    assert all("[measured, fresh, Test GPU, gather<" in one.message for one in shown if one.id)


def test_findings_follow_the_text(templates: EditorAnalysis) -> None:
    source = _file(templates, "gather.cu")
    now = place(source, "// new\n" + GATHER.replace("acc += scaled(in[j]);", "acc += scaled(in[j + 1]);"))
    for one in now.findings:
        edited = one.finding.line == 10
        assert one.line == one.finding.line + 1
        assert one.freshness is (Freshness.EDITED if edited else Freshness.FRESH)


def test_the_same_findings_have_the_same_ids_after_an_edit_elsewhere(
    templates: EditorAnalysis, tmp_path: Path
) -> None:
    cubin = compile_text("// one line more\n" + GATHER, SOURCE_PATH, headers=((HEADER_PATH, HEADER),))
    sources = {SOURCE_PATH: "// one line more\n" + GATHER, HEADER_PATH: HEADER}
    path = tmp_path / "again.ncu-rep"
    path.write_bytes(
        write_report(
            [replace(launch, cubin=cubin, sources=sources) for launch in _templates()], created=1_700_000_100
        )
    )
    again = _analyse(path)
    before = {finding.id: finding.line for finding in _file(templates, "gather.cu").findings}
    after = {finding.id: finding.line for finding in _file(again, "gather.cu").findings}
    assert {identity: line + 1 for identity, line in before.items()} == after


def test_a_launch_is_chosen_without_losing_other_kernels(tmp_path: Path) -> None:
    one, four = _templates()
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([one, replace(one, duration_ns=1e6, grid=(7, 1, 1)), four]))
    longest = _analyse(path)
    assert longest.kernels[0].launch == "launch 1 of 2: 100 x 256 threads"
    chosen = _analyse(path, launch=1)
    assert [kernel.launch for kernel in chosen.kernels] == [
        "launch 2 of 2: 7 x 256 threads",
        "launch 1 of 1: 100 x 256 threads",
    ]
    assert [launch.analysed for launch in chosen.launches] == [False, True, True]
    assert [launch.label for launch in chosen.launches][1] == "7 x 256 threads, 1 ms"


def test_comments_set_findings_of_their_line_aside(tmp_path: Path) -> None:
    launch = sampled_launch("thermal_stencil")
    ((path, text),) = launch.sources.items()
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if "2.0 *" in line and "//" not in line)
    lines[at] += "  // gpadvisor: ignore[GPA102] needed"
    lines.insert(0, "// gpadvisor: ignore-next-line[GPA203] nothing here")
    now = "\n".join(lines) + "\n"
    (tmp_path / "before.cu").write_text(now)
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([launch]))
    value = _analyse(report)
    file = _file(value, "before.cu")
    assert file.path == path
    reasons = {finding.line: finding.suppressed for finding in file.findings if finding.code == "GPA102"}
    assert reasons.get(at + 1, "needed") == "needed"
    assert any(reason is None for reason in reasons.values())
    unused = [note for note in value.problems if note.code == "GPA905"]
    assert all("GPA203" in note.message for note in unused)
    fresh = place(file, now)
    assert all(one.freshness is Freshness.FRESH for one in fresh.findings)


def test_a_comment_that_sets_nothing_aside_is_noted_on_its_line(tmp_path: Path) -> None:
    launch = sampled_launch("thermal_stencil")
    ((_, text),) = launch.sources.items()
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if "2.0 *" in line and "//" not in line)
    lines[at] += "  // gpadvisor: ignore[GPA203] no call here"
    (tmp_path / "before.cu").write_text("// new\n" + "\n".join(lines) + "\n")
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([launch]))
    (note,) = [note for note in _analyse(report).problems if note.code == "GPA905"]
    assert note.place is not None
    assert note.place.line == at + 1  # of the text that was profiled


def test_kernels_of_python_stand_on_their_definition(tmp_path: Path) -> None:
    python = """\
import triton

@triton.jit
def add_kernel(
    x_ptr, out_ptr, n,
):
    x = load(x_ptr)
    store(out_ptr, x * 2.0)
"""
    cuda = """\
__global__ void add_kernel_0d1d(float* x, float* out) {
#line 7 "/src/kernels.py"
    float v = x[threadIdx.x];
#line 8 "/src/kernels.py"
    out[threadIdx.x] = v * 2.0f;
}
"""
    cubin = compile_text(cuda, "/src/generated.cu")
    launch = sampled(
        cubin,
        "_Z15add_kernel_0d1dPfS_",
        seed="python",
        demangled="add_kernel_0d1d(float *, float *)",
        sources={"/src/kernels.py": python},
    )
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([launch]))
    value = _analyse(path)
    (kernel,) = value.kernels
    assert kernel.place is not None
    assert (kernel.place.file, kernel.place.line) == ("/src/kernels.py", 4)
    file = _file(value, "kernels.py")
    assert {line.line for line in file.lines} <= {7, 8, 9}
    assert any(line.line == 8 and line.samples for line in file.lines)


def test_a_file_that_the_profile_does_not_carry_is_remembered_as_it_was(tmp_path: Path) -> None:
    launch = replace(sampled_launch("thermal_stencil"), sources={})
    text = "".join(sampled_launch("thermal_stencil").sources.values())
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    source, report = project / "before.cu", project / "run.ncu-rep"
    source.write_text(text)
    report.write_bytes(write_report([launch]))
    first = _file(_analyse(report, cache), "before.cu")
    assert (first.baseline, first.baseline_kind) == (text, BaselineKind.HASHED)
    assert first.local == str(source)
    source.write_text("// edited\n" + text)
    again = _file(_analyse(report, cache), "before.cu")
    assert again.baseline == text
    placed = place(again, source.read_text())
    assert {one.freshness for one in placed.findings} == {Freshness.UNVERIFIED}
    assert {one.line - one.finding.line for one in placed.findings} == {1}
    source.unlink()
    gone = _file(_analyse(report, cache), "before.cu")
    assert (gone.baseline, gone.baseline_kind) == (None, BaselineKind.UNKNOWN)


@pytest.mark.parametrize("carried", [True, False])
def test_a_source_that_was_renamed_and_edited_keeps_its_findings(tmp_path: Path, carried: bool) -> None:
    launch = sampled_launch("thermal_stencil")
    text = "".join(launch.sources.values())
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    source, report = project / "before.cu", project / "run.ncu-rep"
    source.write_text(text)
    (project / "sibling.cu").write_text(text.replace("centre", "middle"))
    report.write_bytes(write_report([launch if carried else replace(launch, sources={})]))
    first = _file(_analyse(report, cache), "before.cu")
    source.unlink()
    assert _file(_analyse(report, cache), "before.cu").local is None  # the sibling was there before
    edited = "// edited\n" + text.replace("north = max", "north = 1 + max")
    (project / "unlike.cu").write_text("__global__ void other() {}\n")
    (project / "renamed.cu").write_text(edited)
    again = _file(_analyse(report, cache), "before.cu")
    assert again.local == str(project / "renamed.cu")
    assert (again.baseline, again.lines) == (text, first.lines)
    placed = place(again, edited)
    assert {one.line - one.data.line for one in placed.lines} == {1}
    assert sum(one.freshness is Freshness.EDITED for one in placed.lines) == 1
    (project / "renamed.cu").rename(project / "again.cu")
    assert _file(_analyse(report, cache), "before.cu").local == str(project / "again.cu")


def test_a_source_is_compiled_and_its_findings_are_static(tmp_path: Path) -> None:
    path = tmp_path / "gather.cu"
    text = GATHER.replace(HEADER_PATH, "lib.cuh")
    path.write_text(text)
    (tmp_path / "lib.cuh").write_text(HEADER)
    value = _analyse(path)
    source, header = _file(value, "gather.cu"), _file(value, "lib.cuh")
    assert (source.baseline, source.baseline_kind, source.local) == (text, BaselineKind.COMPILED, str(path))
    assert header.baseline_kind is BaselineKind.COMPILED
    findings = _findings(value)
    assert {finding.evidence for finding in findings} == {Evidence.STATIC}
    assert all(finding.speedup is None and finding.importance is None for finding in findings)
    strength = [finding for finding in findings if finding.code == "GPA102"]
    assert {finding.line for finding in strength} >= {2}
    assert all("No gain is known" in finding.message for finding in strength)
    assert all(kernel.samples == 0 and not kernel.stalls for kernel in value.kernels)


DIVIDES = """\
__global__ void k(float* out, int n, int width) {
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 256) {
    int row = i / width;
    out[row] = out[row] * 1.1;
  }
}
"""


@pytest.mark.parametrize("is_sampled", [False, True])
def test_each_line_says_which_kind_of_pattern_stands_there(tmp_path: Path, *, is_sampled: bool) -> None:
    if is_sampled:
        cubin = compile_text(DIVIDES, "/src/k.cu")
        launch = sampled(cubin, "_Z1kPfii", seed="divides", sources={"/src/k.cu": DIVIDES})
        (tmp_path / "run.ncu-rep").write_bytes(write_report([launch]))
    (tmp_path / "k.cu").write_text(DIVIDES, encoding="utf-8")
    value = _analyse(tmp_path / ("run.ncu-rep" if is_sampled else "k.cu"))
    said = {one.line: one.title for one in _findings(value) if one.code == "GPA102"}
    assert said[4].startswith("integer division")
    assert said[5].startswith("single precision computed in double")


def test_without_line_information_kernels_are_left_and_a_note(tmp_path: Path) -> None:
    from cuda.bindings import nvrtc  # the marker says that it is there

    _, program = nvrtc.nvrtcCreateProgram(b"__global__ void k(float* a) { a[0] += 1.5; }", b"k.cu", 0, [], [])
    nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_80"])
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([sampled(cubin, "_Z1kPf", seed="k", demangled="k(float *)")]))
    value = _analyse(path)
    assert value.files == ()
    (kernel,) = value.kernels
    assert kernel.place is None
    assert kernel.unplaced == kernel.samples > 0
    assert "GPA901" in {note.code for note in value.problems}


def test_a_source_that_is_not_the_one_compiled_is_noticed(tmp_path: Path) -> None:
    launch = sampled_launch("thermal_stencil")
    short = dict.fromkeys(launch.sources, "// two\n// lines\n")
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([replace(launch, sources=short)]))
    value = _analyse(path)
    assert any(note.code == "GPA906" and "which has 3 lines" in note.message for note in value.problems)
    file = _file(value, "before.cu")
    placed = place(file, "// two\n// lines\n")
    assert placed.samples == sum(line.samples for line in file.lines)


def test_samples_of_a_kernel_that_takes_no_time_are_noticed(tmp_path: Path) -> None:
    one, four = _templates()
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(
        write_report([replace(one, samples={}, duration_ns=99e6), replace(four, duration_ns=1e6)])
    )
    notes = [note.message for note in _analyse(path).problems if note.code == "GPA907"]
    assert " ".join(notes) == (
        "These samples cover 1.0 % of the GPU time that was seen (gather<4>); gather<1> takes 99.0 % and has "
        "none: gpadvisor profile --kernel gather -- APP profiles it."
    )


def test_a_new_profile_shows_what_came_of_the_advice(templates: EditorAnalysis, tmp_path: Path) -> None:
    one, four = _templates()
    path = tmp_path / "after.ncu-rep"
    path.write_bytes(write_report([replace(one, duration_ns=6e6), four], created=1_700_000_100))
    entries = ledger(templates, _analyse(path))
    assert {entry.kernel_name for entry in entries} == {"gather<1>", "gather<4>"}
    assert {entry.achieved for entry in entries if entry.kernel_name == "gather<1>"} == {1.5}


def _sass(path: Path, kernel: str) -> SassView:
    view = editor.sass_for_editor(path, _request(path.parent), lambda _: None, Cache(None), kernel=kernel)
    assert from_json(json.loads(json.dumps(to_json(view))), SassView) == view
    return view


def test_machine_code_has_all_samples_and_its_source(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report(_templates()))
    view = _sass(path, next(iter(NAMES)))
    assert sum(row.samples for row in view.rows) == view.samples > 0
    assert view.functions[0] == (next(name for name, _ in view.functions), 0)
    loads = [row for row in view.rows if row.text.startswith("LDG")]
    assert all(row.write_barrier is not None for row in loads)
    waiting = [row for row in view.rows if row.waits_for is not None and row.reason == "long_scoreboard"]
    assert waiting
    for row in waiting:
        assert row.waits_for is not None
        assert view.rows[row.waits_for].caused > 0
        assert row.waits
    inlined = [row for row in view.rows if row.inline]
    assert any(
        row.place is not None and row.place.file == HEADER_PATH and row.inline[0].line == 10
        for row in inlined
    )


def test_a_kernel_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report(_templates()))
    with pytest.raises(ProfileMismatchError, match="has no kernel _Zother"):
        _sass(path, "_Zother")


def test_cancelling_stops_it(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report(_templates()))

    class StopError(GpadvisorError):
        pass

    def after(stages: int) -> Callable[[str], None]:
        seen: list[str] = []

        def progress(words: str) -> None:
            seen.append(words)
            if len(seen) > stages:
                raise StopError(words)

        return progress

    for stages in (0, 1, 2):
        with pytest.raises(StopError):
            editor.advise_and_show(path, _request(tmp_path), after(stages), Cache(None))[1]


@pytest.mark.parametrize("name", ["thermal_stencil", "local_histogram"])
def test_what_was_planted_is_found_on_its_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([sampled_launch(name)]))
    _check_planted(name, _analyse(path))


_STATIC = [
    name
    for name, kernel in KERNELS.items()
    if kernel.static and kernel.plants != "GPA103"  # a loop that is too large begins anywhere
]


@pytest.mark.slow
@pytest.mark.parametrize("name", _STATIC)
def test_what_the_machine_code_shows_is_found_on_its_line(name: str) -> None:
    _check_planted(name, _analyse(KERNELS[name].source()))


def _check_planted(name: str, value: EditorAnalysis) -> None:
    kernel = KERNELS[name]
    found = [finding for finding in _findings(value) if finding.code == kernel.plants]
    lines = {finding.line for finding in found}
    lines |= {entry.place.line for finding in found for entry in finding.related}
    assert lines & {kernel.planted_line("def"), kernel.planted_line("use")}
