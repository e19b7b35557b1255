# SPDX-License-Identifier: Apache-2.0
"""The potential of each kernel of a file, beside what is suggested for it."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.views import view_kernels
from gpadvisor.views.potential.build import potential
from gpadvisor.views.potential.formats import render_json, render_text
from gpadvisor.views.potential.model import Promise, ShownPotential
from gpadvisor.views.potential.saved import saves


def potential_file(
    path: Path,
    request: Request,
    progress: Progress,
    *,
    essential: str | None,
    output_format: str,
    width: int,
) -> str:
    """The potential of each kernel that was asked for.

    Raises:
        ProfileMismatchError: no wanted kernel has the counts that the model takes.
        GpadvisorError: the input or a tool is at fault.
    """
    potentials, missing = view_kernels(
        path, request, progress, lambda kernel: shown_potential(kernel, essential)
    )
    return (
        render_json(potentials, missing)
        if output_format == "json"
        else render_text(potentials, missing, width=width)
    )


def shown_potential(kernel: AdvisedKernel, essential: str | None = None) -> ShownPotential:
    """One kernel's potential with its suggestions.

    Raises:
        ProfileMismatchError: it lacks what the model takes.
    """
    return ShownPotential(
        potential=kernel.limits.potential
        if essential is None
        else potential(kernel.analysed.context, kernel.advice.name, essential),
        promises=promises(kernel),
        time_share=kernel.advice.time_share,
    )


def promises(kernel: AdvisedKernel) -> tuple[Promise, ...]:
    """The suggestions of a kernel in their order, each with what it saves."""
    blame = kernel.analysed.context.blame
    return tuple(
        Promise(
            code=suggestion.code,
            name=suggestion.name,
            speedup=suggestion.speedup,
            benefits=saves(match, blame),
        )
        for suggestion in kernel.advice.suggestions
        if (match := kernel.matches.get(suggestion.code)) is not None and suggestion.suppressed is None
    )
