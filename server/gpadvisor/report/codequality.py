# SPDX-License-Identifier: Apache-2.0
"""The Code Quality report of GitLab: a list of findings, each on one line of a file of the repository."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gpadvisor.model.advice import Advice, Suggestion
from gpadvisor.report.entries import primary
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.page import make_page
from gpadvisor.report.placement import Repository, RepositoryPlaces
from gpadvisor.report.sarif import level, sentence
from gpadvisor.report.words import cleaned

MAJOR_SPEEDUP: Final = 1.5
"""A measured suggestion that gives the run this at its low end is major, SARIF's other warnings are minor."""

Object: TypeAlias = dict[str, Any]


def render_codequality(
    advice: Advice, repository: Repository, *, sources: Mapping[str, str] | None = None
) -> str:
    """Suggestions that no comment silences; those without a line in the repository have no place in it.

    Args:
        advice: what to report.
        repository: that paths are relative to.
        sources: texts by the path that the advice names, for stable fingerprints.
    """
    advice = cleaned(advice)
    page = make_page(advice, width=0, color=False, sources=sources)
    placement, prints = RepositoryPlaces(page=page, repository=repository), Fingerprints(page)
    result = []
    for kernel in advice.kernels:
        for suggestion in kernel.suggestions:
            fingerprint = prints.of(kernel, suggestion, primary(suggestion))
            place = placement.of(suggestion)
            path = None if place is None else placement.below(place.file)
            if place is None or path is None or suggestion.suppressed is not None:
                continue
            result.append(
                {
                    "description": sentence(kernel, suggestion),
                    "check_name": suggestion.code,
                    "fingerprint": _of_device(fingerprint, kernel.device.arch),
                    "severity": _severity(suggestion),
                    "location": {"path": path, "lines": {"begin": placement.line(place)}},
                }
            )
    return _text(result)


def joined_findings(lists: Iterable[Sequence[Object]]) -> str:
    """Several lists as one, in which each fingerprint stands once."""
    return _text(
        list({finding["fingerprint"]: finding for findings in lists for finding in findings}.values())
    )


def _of_device(fingerprint: str, arch: str) -> str:
    """Of one report for several architectures, each has its own."""
    return hashlib.sha256(f"{fingerprint}\0{arch}".encode()).hexdigest()


def _severity(suggestion: Suggestion) -> str:
    if level(suggestion) != "warning":
        return "info"
    estimate = suggestion.program_speedup or suggestion.speedup
    return "major" if estimate is not None and estimate.low >= MAJOR_SPEEDUP else "minor"


def _text(findings: Sequence[Object]) -> str:
    return json.dumps(findings, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
