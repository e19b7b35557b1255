# SPDX-License-Identifier: Apache-2.0
"""What the page shows of a file: advice, sources, machine code with samples, and the views of each kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from gpadvisor.advice.in_run import untold
from gpadvisor.advice.scopes import executed_by_place
from gpadvisor.editor.contents.analysis import advise_wanted
from gpadvisor.editor.contents.compared import compared_contents
from gpadvisor.editor.contents.lines import blame_rows
from gpadvisor.editor.contents.machine_code import MAX_ROWS, reading_order
from gpadvisor.editor.contents.places import Places, make_places
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Advice
from gpadvisor.model.blame import Role
from gpadvisor.model.finding import EditorAnalysis, KernelView
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.program import Function
from gpadvisor.pipeline.advise import AdvisedFile, AdvisedKernel, advise_file, with_host_sources
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.launch_ways import TracedRun
from gpadvisor.pipeline.potential import shown_potential
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.roofline import shown_roofline
from gpadvisor.pipeline.timeline import strip_of, with_own_timeline
from gpadvisor.pipeline.tree import shown_kernel, shown_tree, traced_run
from gpadvisor.report.idle import device_json
from gpadvisor.report.jsonformat import advice_json, optional, text
from gpadvisor.store.traces import is_trace
from gpadvisor.views.potential.formats import potential_json
from gpadvisor.views.roofline.formats import roofline_json
from gpadvisor.views.roofline.model import RegionKind
from gpadvisor.views.tree.build import ContextKernel
from gpadvisor.views.tree.formats import plain
from gpadvisor.views.tree.model import TreeView

SCHEMA: Final = "gpadvisor.page/1"
_NONE: Final = -1
ShownT = TypeVar("ShownT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContents:
    """The document of a page, and the advice in it."""

    document: Mapping[str, object]
    advice: Advice
    files: tuple[str, ...]  # paths of the document's files, as the line tables have them


@dataclass(slots=True)
class _Files:
    """Source files by number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, path: str) -> int:
        return self.numbers.setdefault(path, len(self.numbers))


def page_contents(
    path: Path,
    request: Request,
    progress: Progress,
    cache: Cache,
    *,
    sources: bool = True,
    before: tuple[Path, Request] | None = None,
) -> PageContents:
    """Everything the page shows of a report, a snapshot, a cubin or a source.

    Args:
        path: the input.
        request: what is asked of it.
        progress: told the stages.
        cache: of disassembly.
        sources: whether the texts of the sources are in it.
        before: an earlier run to compare with.

    Raises:
        GpadvisorError: an input, a tool or a setting is at fault.
    """
    request = with_own_timeline(path, request)
    first = None if before is None else advise_file(*before, progress, cache)
    advised, shown = advise_wanted(path, request, progress, cache)
    advised = with_host_sources(advised, request)
    progress("making the page")
    places = make_places(advised.sources, request.root)
    for kernel in advised.analysis.kernels:
        places.know(kernel.context.program)
    files = _Files()
    for file in shown.files:
        files.number(file.path)
    kernels = _kernels(advised, shown, places, files, _ways(advised, request))
    compared = None
    if first is not None:

        def number(file: str) -> int:
            return files.number(places.name(file))

        compared = compared_contents(first, advised, number, sources=sources)
    of_kernels = [kernel.advice for kernel in advised.kernels]
    return PageContents(
        document={
            "schema": SCHEMA,
            "advice": advice_json(advised.advice),
            "collected_at": shown.collected_at,
            "kernels": kernels,
            "compared": compared,
            "run": None if request.timeline is None or untold(of_kernels) else _run(request.timeline),
            "files": _texts(shown, files, sources=sources),
        },
        advice=advised.advice,
        files=tuple(files.numbers),
    )


def _ways(advised: AdvisedFile, request: Request) -> TracedRun | None:
    """The ways to the launches in the traced run; of one that nobody asked for as far as it has any."""
    if request.timeline is None:
        return None
    untraced = untold([kernel.advice for kernel in advised.kernels]) or not is_trace(request.timeline)
    return None if untraced and not request.timeline_needed else traced_run(request)


def _run(trace: Path) -> dict[str, object]:
    """The traced run along the clock."""
    strip = strip_of(trace)
    return {
        "trace": text(trace.name),
        "span_ns": strip.span_ns,
        "names": [[text(name), kind] for name, kind in strip.names],
        "lanes": [
            {"kind": lane.kind, "label": text(lane.label), "events": lane.events, "data": lane.data}
            for lane in strip.lanes
        ],
        "left_out": strip.left_out,
        "merged_ns": strip.merged_ns,
        "devices": [device_json(device) for device in strip.devices],
    }


def _kernels(
    advised: AdvisedFile, analysis: EditorAnalysis, places: Places, files: _Files, run: TracedRun | None
) -> list[dict[str, object]]:
    """In the order of the advice; machine code of those that take most of the time, while there is room."""
    views = {view.kernel: view for view in analysis.kernels}
    profile = advised.analysis.profile

    def tree(kernel: AdvisedKernel) -> dict[str, object]:
        return _tree(shown_kernel(kernel, profile, run))

    order = {id(advice): position for position, advice in enumerate(advised.advice.kernels)}
    kernels, room = [], MAX_ROWS
    for advised_kernel in sorted(
        advised.kernels, key=lambda kernel: order.get(id(kernel.advice), len(order))
    ):
        made = _kernel(
            advised_kernel, views[advised_kernel.analysed.context.kernel], places, files, room, tree
        )
        kernels.append(made.values)
        room -= made.rows
    return kernels


@dataclass(frozen=True, slots=True)
class _Made:
    values: dict[str, object]
    rows: int


def _kernel(
    kernel: AdvisedKernel,
    view: KernelView,
    places: Places,
    files: _Files,
    room: int,
    tree: Callable[[AdvisedKernel], dict[str, object]],
) -> _Made:
    missing: list[str] = []
    code, rows = _code(kernel.analysed.context, places, files, room)
    return _Made(
        {
            "name": text(view.name),
            "place": None if view.place is None else [files.number(view.place.file), view.place.line],
            "launch": optional(view.launch),
            "arch": view.arch,
            "code": code,
            "roofline": _view(kernel, _roofline, missing),
            "potential": _view(kernel, _potential, missing),
            "tree": _view(kernel, tree, missing),
            "missing": missing,
        },
        rows,
    )


def _view(
    kernel: AdvisedKernel, show: Callable[[AdvisedKernel], ShownT], missing: list[str]
) -> ShownT | None:
    try:
        return show(kernel)
    except ProfileMismatchError as error:
        missing.append(text(str(error)))
        return None


def _roofline(kernel: AdvisedKernel) -> dict[str, object]:
    loops, lines = (
        roofline_json(shown_roofline(kernel, kind)) for kind in (RegionKind.LOOP, RegionKind.LINE)
    )
    return {**loops, "lines": lines["regions"]}


def _potential(kernel: AdvisedKernel) -> dict[str, object]:
    return potential_json(shown_potential(kernel))


def _tree(kernel: ContextKernel) -> dict[str, object]:
    """From the top down, with the rows of the other views."""
    made = {view: plain(*shown_tree([kernel], view), ()) for view in TreeView}
    turned = {view.value: made[view]["rows"] for view in (TreeView.BOTTOM_UP, TreeView.FLAT)}
    return {**made[TreeView.TOP_DOWN], "turned": turned}


def _code(context: KernelContext, places: Places, files: _Files, room: int) -> tuple[dict[str, object], int]:
    """Instructions as columns, by row; ``blame`` has a row for each dependency that samples were found on."""
    program, blame = context.program, context.blame
    functions: list[dict[str, object]] = []
    first: dict[int, int] = {}
    listed: list[tuple[Function, int, Instruction]] = []
    for function in reading_order(program, context.kernel):
        if len(listed) + len(function.instructions) > room:
            continue
        first[function.id] = len(listed)
        functions.append({"name": text(function.demangled), "row": len(listed)})
        listed += [(function, index, instruction) for index, instruction in enumerate(function.instructions)]
    lines = [places.of(function, index) for function, index, _ in listed]
    executed = executed_by_place(program, context.profile)
    total = sum(len(function.instructions) for function in program.functions)
    code: dict[str, object] = {
        "functions": functions,
        "address": [instruction.pc for _, _, instruction in listed],
        "text": [text(instruction.text) for _, _, instruction in listed],
        "file": [_NONE if place is None else files.number(place.file) for place in lines],
        "line": [0 if place is None else place.line for place in lines],
        "executed": [executed.get((function.id, index), 0) for function, index, _ in listed]
        if executed
        else None,
        "left_out": total - len(listed),
        "reasons": []
        if blame is None
        else [{"name": text(reason.name), "plain": text(reason.plain)} for reason in blame.reasons],
        "blame": None if blame is None else _blame(context, first),
    }
    return code, len(listed)


def _blame(context: KernelContext, first: Mapping[int, int]) -> dict[str, list[int]]:
    """Samples by waiting row, row of the cause (itself where it waits for nothing; -1: not known), reason.

    Row -1 holds what was sampled outside of the rows.
    """
    columns: dict[str, list[int]] = {"row": [], "cause": [], "reason": [], "samples": []}
    if context.blame is None:
        return columns
    for row in blame_rows(context.program, context.blame):
        start = None if row.function is None else first.get(row.function.id)
        is_placed = start is not None and row.use is not None and row.cause is not None
        blamed = is_placed and row.role is not Role.UNATTRIBUTED
        columns["row"].append((start or 0) + (row.use or 0) if is_placed else _NONE)
        columns["cause"].append((start or 0) + (row.cause or 0) if blamed else _NONE)
        columns["reason"].append(row.reason)
        columns["samples"].append(row.samples)
    return columns


def _texts(analysis: EditorAnalysis, files: _Files, *, sources: bool) -> list[dict[str, object]]:
    """Every file that a row names, in the order of their numbers; texts of those with samples or findings."""
    analyses = {file.path: file for file in analysis.files}
    result: list[dict[str, object]] = []
    for path in files.numbers:
        file = analyses.get(path)
        lines = None if file is None or file.baseline is None or not sources else file.baseline
        result.append(
            {
                "path": text(path),
                "local": None if file is None else optional(file.local),
                "text": optional(lines),
                "kind": None if file is None else file.baseline_kind.value,
            }
        )
    return result
