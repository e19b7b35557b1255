# SPDX-License-Identifier: Apache-2.0
"""The instruction roofline of each kernel of a file, beside what is suggested for it."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.views import view_kernels
from gpadvisor.views.roofline.advice import Proposal
from gpadvisor.views.roofline.build import roofline
from gpadvisor.views.roofline.formats import render_csv, render_json
from gpadvisor.views.roofline.model import RegionKind
from gpadvisor.views.roofline.shown import ShownKernel
from gpadvisor.views.roofline.svg import render_svg
from gpadvisor.views.roofline.text import render_text


def roofline_file(
    path: Path,
    request: Request,
    progress: Progress,
    *,
    kind: RegionKind,
    output_format: str,
    width: int,
    rows: int | None,
) -> str:
    """The roofline of each kernel that was asked for; a picture holds one, that takes the most time.

    Raises:
        ProfileMismatchError: no wanted kernel has counts and a time.
        GpadvisorError: the input or a tool is at fault.
    """
    kernels, missing = view_kernels(path, request, progress, lambda kernel: shown_roofline(kernel, kind))
    if output_format == "svg":
        return render_svg(kernels[0])
    if output_format == "json":
        return render_json(kernels, missing)
    if output_format == "csv":
        return render_csv(kernels)
    return render_text(kernels, missing, width=width, rows=rows)


def shown_roofline(kernel: AdvisedKernel, kind: RegionKind) -> ShownKernel:
    """One kernel's roofline with its suggestions.

    Raises:
        ProfileMismatchError: it has no counts or no time.
    """
    return ShownKernel(
        roofline=roofline(kernel.limits.roofline, kind),
        proposals=proposals(kernel),
        time_share=kernel.advice.time_share,
    )


def proposals(kernel: AdvisedKernel) -> tuple[Proposal, ...]:
    """The suggestions of a kernel in their order, with the loads that they reduce and their places."""
    blame = kernel.analysed.context.blame
    result = []
    for suggestion in kernel.advice.suggestions:
        match = kernel.matches.get(suggestion.code)
        if match is None or suggestion.suppressed is not None:
            continue
        places = {(site.function, site.index) for site in match.static_sites}
        if blame is not None:
            for region in match.regions:
                functions, causes = blame.rows.function[region.rows], blame.rows.def_index[region.rows]
                places.update(zip(functions.tolist(), causes.tolist(), strict=True))
        result.append(
            Proposal(
                code=suggestion.code,
                name=suggestion.name,
                speedup=suggestion.speedup,
                reduced_loads=match.reduced_loads,
                places=frozenset(places),
            )
        )
    return tuple(result)
