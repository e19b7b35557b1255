# SPDX-License-Identifier: Apache-2.0
"""The calling contexts of the kernels of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.model.profile import Profile
from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.pipeline.contexts import measured_contexts
from gpadvisor.pipeline.launch_ways import TracedRun, ways_of_profile
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.views import advised_run, shown_kernels
from gpadvisor.report.style import Style
from gpadvisor.store.paths import is_database
from gpadvisor.store.traces import is_trace
from gpadvisor.views.tree.build import ContextKernel, OtherWork, call_tree, checked, columns_of
from gpadvisor.views.tree.contexts import contexts_tree, usual_metrics
from gpadvisor.views.tree.formats import render_json, values
from gpadvisor.views.tree.formula import Formula, parse_formula
from gpadvisor.views.tree.measured import USUAL
from gpadvisor.views.tree.model import CallTree, TreeView
from gpadvisor.views.tree.rows import arranged
from gpadvisor.views.tree.stacks import render_folded, render_speedscope
from gpadvisor.views.tree.text import render_text
from gpadvisor.views.tree.turned import turned

_CONTEXT_SUFFIXES: Final = (".hatchet", ".json")
"""Of Proton and hatchet."""
_NO_BLAME: Final = (
    "contexts and values are as measured, without blame, which takes PC samples and machine code",
)


def tree_file(
    path: Path,
    request: Request,
    progress: Progress,
    *,
    view: TreeView,
    metrics: Sequence[str],
    output_format: str,
    width: int = 80,
    rows: int | None = None,
    color: bool = False,
) -> str:
    """The tree of the kernels that were asked for.

    Raises:
        ProfileMismatchError: no wanted kernel has samples or counts, and code.
        UsageError: a metric is no formula, or names an unknown column.
        GpadvisorError: the input or a tool is at fault.
    """
    parsed = [parse_formula(metric) for metric in metrics]
    missing: Sequence[str]
    if is_database(path) or path.suffix in _CONTEXT_SUFFIXES or is_trace(path):
        tree, formulas = _contexts(path, view, parsed)
        missing = _NO_BLAME
    else:
        advised = advised_run(path, request, progress)
        run = traced_run(request)
        kernels, missing = shown_kernels(
            path, advised, lambda kernel: shown_kernel(kernel, advised.analysis.profile, run)
        )
        tree, formulas = shown_tree(kernels, view, parsed, () if run is None else run.others())
    if output_format == "json":
        return render_json(tree, formulas, missing)
    if output_format == "folded":
        return render_folded(tree, formulas[0])
    if output_format == "speedscope":
        return render_speedscope(tree, formulas, path.name)
    return render_text(tree, formulas, missing, width=width, rows=rows, style=Style(color))


def traced_run(request: Request) -> TracedRun | None:
    """The run whose timeline is asked for.

    Raises:
        ProfileFormatError: it is no trace of a run, or a damaged one.
        ProfileMismatchError: it is a database of HPCToolkit, whose contexts stand for themselves.
    """
    if request.timeline is None:
        return None
    if not is_trace(request.timeline):
        raise ProfileMismatchError(
            f"{request.timeline} is no trace with launches to put above kernels: give an SQLite export or a"
            " Chrome trace; a database of HPCToolkit has its own tree ('gpadvisor tree DATABASE')"
        )
    return TracedRun(measured_contexts(request.timeline))


def shown_kernel(
    kernel: AdvisedKernel, profile: Profile | None = None, run: TracedRun | None = None
) -> ContextKernel:
    """One kernel as the tree takes it, below the ways to its launches in a run, else in a profile.

    Raises:
        ProfileMismatchError: it has no code, or neither samples nor counts.
    """
    shown = checked(
        ContextKernel(
            context=kernel.analysed.context,
            name=kernel.advice.name,
            time_share=kernel.advice.time_share,
            ways=ways_of_profile(kernel, profile),
        )
    )
    return shown if run is None else run.placed(shown, kernel.advice.mangled)


def shown_tree(
    kernels: Sequence[ContextKernel],
    view: TreeView,
    metrics: Sequence[Formula] = (),
    others: Sequence[OtherWork] = (),
) -> tuple[CallTree, Sequence[Formula]]:
    """The tree from where it is looked at, and its metrics, the first of which says what comes first.

    Without metrics it has the share of the time, samples, latency samples and instructions.

    Raises:
        UsageError: a metric names an unknown column.
    """
    tree_columns = columns_of(kernels)
    for metric in metrics:
        parse_formula(metric.text, tree_columns)
    formulas = metrics or [parse_formula(name) for name in USUAL if name in tree_columns]
    needed = dict.fromkeys(name for metric in formulas for name in metric.columns)
    return _seen_from(call_tree(kernels, list(needed), others), view, formulas), formulas


def _contexts(path: Path, view: TreeView, metrics: Sequence[Formula]) -> tuple[CallTree, Sequence[Formula]]:
    """The tree as another profiler measured it, of GPUs of any vendor."""
    contexts = measured_contexts(path)
    if not contexts.metrics:
        raise ProfileMismatchError(f"{path} has contexts and no values: nothing was measured")
    for metric in metrics:
        parse_formula(metric.text, contexts.metrics)
    formulas = metrics or [parse_formula(name) for name in usual_metrics(contexts)]
    return _seen_from(contexts_tree(contexts), view, formulas), formulas


def _seen_from(tree: CallTree, view: TreeView, formulas: Sequence[Formula]) -> CallTree:
    """The tree of a view, rows with the most of the first metric first."""
    oriented = turned(tree, view)
    exclusive, inclusive = values(oriented, formulas[:1])
    return arranged(oriented, (inclusive if view is TreeView.TOP_DOWN else exclusive)[:, 0])
