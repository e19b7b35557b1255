# SPDX-License-Identifier: Apache-2.0
"""The potential of each kernel of a file, beside what is suggested for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from gpadvisor.estimators.caps import remaining
from gpadvisor.estimators.utilisation import DRAM, ISSUE, MEMORY_RESOURCES, PIPES
from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.views import view_kernels
from gpadvisor.views.potential.build import benefit_of, potential
from gpadvisor.views.potential.formats import render_json, render_text
from gpadvisor.views.potential.model import Benefit, Promise, ShownPotential

_RELIEVED: Final = {
    **dict.fromkeys(MEMORY_RESOURCES, Benefit.MEMLP),
    **dict.fromkeys((ISSUE, *PIPES.values()), Benefit.FP),
}
"""What less load of a unit saves."""
_LEAST: Final = (DRAM, ISSUE, *PIPES.values())
"""Units whose load the model takes for the least: a change of that has no bound in it."""


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
    shown, missing = view_kernels(path, request, progress, lambda kernel: shown_potential(kernel, essential))
    return (
        render_json(shown, missing) if output_format == "json" else render_text(shown, missing, width=width)
    )


def shown_potential(kernel: AdvisedKernel, essential: str | None = None) -> ShownPotential:
    """One kernel's potential with its suggestions.

    Raises:
        ProfileMismatchError: it lacks what the model takes.
    """
    return ShownPotential(
        potential=potential(kernel.analysed.context, kernel.advice.name, essential),
        promises=promises(kernel),
        time_share=kernel.advice.time_share,
    )


def promises(kernel: AdvisedKernel) -> tuple[Promise, ...]:
    """The suggestions of a kernel in their order, each with what most of its samples are spent on."""
    blame = kernel.analysed.context.blame
    found = []
    for one in kernel.advice.suggestions:
        match = kernel.matches.get(one.code)
        if match is None or one.suppressed is not None:
            continue
        spent: Counter[Benefit] = Counter()
        if blame is not None:
            for region in match.regions:
                rows = zip(blame.rows.reason[region.rows], blame.rows.samples[region.rows], strict=True)
                for reason, samples in rows:
                    benefit = benefit_of(blame.reasons[int(reason)].stall_class)
                    if benefit is not None:
                        spent[benefit] += int(samples)
        most = sorted(spent, key=lambda benefit: -spent[benefit])[:1]
        relieved = [_RELIEVED[name] for name in _RELIEVED if remaining(name, match.relieves, best=True) < 1]
        found.append(
            Promise(
                code=one.code,
                name=one.name,
                speedup=one.speedup,
                benefits=tuple(dict.fromkeys((*most, *relieved))),
                bounded=match.parallel is None
                and all(remaining(name, match.relieves, best=True) == 1 for name in _LEAST),
            )
        )
    return tuple(found)
