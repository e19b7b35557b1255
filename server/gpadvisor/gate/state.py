# SPDX-License-Identifier: Apache-2.0
"""From advice to what a baseline keeps of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpadvisor.gate.baseline import Examined, Findings, Known
from gpadvisor.model.advice import Advice
from gpadvisor.model.problem import ProblemCode
from gpadvisor.report.entries import primary
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.names import base_name
from gpadvisor.report.page import make_page
from gpadvisor.report.words import base_file, cleaned


def state_of(advice: Advice, sources: Mapping[str, str], compilers: Mapping[str, str | None]) -> Findings:
    """Suggestions that no comment silences, with the fingerprints of the SARIF report.

    Args:
        advice: what was found.
        sources: texts of source files by the path that the advice names.
        compilers: version of ptxas by mangled name of a kernel, where it is known.
    """
    advice = cleaned(advice)
    prints = Fingerprints(make_page(advice, width=0, color=False, sources=sources))
    live, examined = [], []
    for kernel in advice.kernels:
        if any(problem.code is ProblemCode.NO_DISASSEMBLY for problem in kernel.problems):
            continue  # what rules would have found is not known
        name, device = base_name(kernel.name), kernel.device.arch
        examined.append(Examined(kernel=name, device=device, compiler=compilers.get(kernel.mangled) or ""))
        for suggestion in kernel.suggestions:
            place = primary(suggestion)
            fingerprint = prints.of(kernel, suggestion, place)  # also of silenced ones: it numbers equal ones
            if suggestion.suppressed is None:
                live.append(
                    Known(
                        kernel=name,
                        rule=suggestion.code,
                        file="" if place is None else base_file(place.file),
                        fingerprint=fingerprint,
                        device=device,
                        low=_rounded(suggestion.speedup.low if suggestion.speedup else None),
                        expected=_rounded(suggestion.speedup.expected if suggestion.speedup else None),
                        high=_rounded(suggestion.speedup.high if suggestion.speedup else None),
                    )
                )
    return Findings(examined=tuple(examined), known=tuple(live))


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 3)
