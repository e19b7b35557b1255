# SPDX-License-Identifier: Apache-2.0
"""Advice after comments in the source have set suggestions aside: what depends on them is said anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpadvisor.advice.evaluate import evaluate
from gpadvisor.advice.groups import groups
from gpadvisor.advice.standing import as_told
from gpadvisor.advice.verdict import limiting, verdict
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.model.advice import KernelAdvice


def without_suppressed(
    kernel: KernelAdvice, context: KernelContext, optimizers: Sequence[Optimizer]
) -> KernelAdvice:
    """The same advice whose verdict and groups leave suppressed suggestions out.

    The suggestions themselves stay, with their suppressions: every format says what was set aside.

    Args:
        kernel: from ``advise_kernel``, with suppressions marked.
        context: what it was made from.
        optimizers: what it was made with; those of the suggestions left are asked again.
    """
    suggestions = tuple(suggestion for suggestion in kernel.suggestions if suggestion.suppressed is None)
    if len(suggestions) == len(kernel.suggestions):
        return kernel
    codes = {suggestion.code for suggestion in suggestions}
    findings, _ = evaluate(context, [optimizer for optimizer in optimizers if optimizer.code in codes])
    return replace(
        kernel,
        groups=groups(context, [as_told(context, finding) for finding in findings]),
        verdict=verdict(
            kernel.evidence,
            kernel.limited_by,
            full=limiting(kernel.utilisations) is not None,
            suggestions=suggestions,
            rejected=kernel.rejected,
            hidden=kernel.hidden,
            suppressed=len(kernel.suggestions) - len(suggestions),
        ),
    )
