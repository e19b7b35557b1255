# SPDX-License-Identifier: Apache-2.0
"""What host code leaves idle, in every format: on its line where the trace has call paths."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpadvisor.model.estimate import Estimate
from gpadvisor.model.figures import expected, gain
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.timeline import HostPlace, RunFinding
from gpadvisor.report.names import short_name
from gpadvisor.report.words import base_file, clean, cleaned, wrap

HEADING: Final = "Host code that leaves the GPU idle"
NO_PLACES: Final = (
    "No lines: the trace has no call paths. nsys profile --cudabacktrace all --sample process-tree records"
    " them, and torch.profiler's with_stack=True."
)
_FUNCTION: Final = 60
_INDENT: Final = "     "


def place_words(place: HostPlace | None) -> str:
    """``app.cu:12 in solve()``; nothing of a place that is not known."""
    if place is None:
        return ""
    function = short_name(place.function, _FUNCTION) if place.function else ""
    if place.line:
        line = f"{base_file(place.file)}:{place.line}"
        if place.is_definition:
            return f"{function}(), which begins at {line}"
        return f"{line} in {function}" if function else line
    address = f" at {place.address:#x}" if place.address else ""
    module = f" of {base_file(place.module)}" if place.module else ""
    return f"{function}{address}{module}"


def finding_lines(findings: Sequence[RunFinding], width: int) -> list[str]:
    """A heading and each finding, its title below it."""
    if not findings:
        return []
    lines = [f"{HEADING} (each as if changed alone, of the whole run)"]
    for finding in cleaned(tuple(findings)):
        where = place_words(finding.place)
        head = f"{finding.code} {gain(finding.speedup)}  {finding.name}" + (f", {where}" if where else "")
        lines += ["", *wrap(head, width, _INDENT, "  "), *wrap(f"{finding.title}.", width, _INDENT)]
        lines += wrap(finding.advice, width, _INDENT)
        lines += wrap(f"{'; '.join(finding.speedup.reasons)}.", width, _INDENT)
    if not any(finding.place for finding in findings):
        lines += ["", *wrap(NO_PLACES, width, "  ")]
    return lines


def finding_row(finding: RunFinding, width: int) -> list[str]:
    """One in a line or two, for a screen that has little room."""
    clean_finding = cleaned(finding)
    where = place_words(clean_finding.place)
    text = (
        f"{expected(clean_finding.speedup)} of the run ({clean_finding.code}), host code {where}".rstrip()
        + f": {clean_finding.title}"
    )
    return wrap(text, width, "    ", "  ")[:3]


def finding_json(finding: RunFinding) -> dict[str, Any]:
    """The values of one."""
    place = finding.place
    return {
        "code": finding.code,
        "slug": finding.slug,
        "name": finding.name,
        "title": _text(finding.title),
        "advice": _text(finding.advice),
        "calls": finding.calls,
        "place": None
        if place is None
        else {
            "function": _text(place.function) or None,
            "file": _text(place.file) or None,
            "line": place.line or None,
            "is_definition": place.is_definition,
            "module": _text(place.module) or None,
            "address": place.address or None,
        },
        "speedup": speedup_json(finding.speedup),
        "equation": finding.speedup.equation,
    }


def speedup_json(estimate: Estimate) -> dict[str, Any]:
    """Its three ends and what they rest on."""
    return {
        "low": float(f"{estimate.low:.9g}"),
        "expected": float(f"{estimate.expected:.9g}"),
        "high": float(f"{estimate.high:.9g}"),
        "reason": _text(estimate.reason),
    }


def _text(value: str) -> str:
    return clean(value).encode("utf-8", "replace").decode("utf-8")


def source_line(finding: RunFinding) -> SourceLocation | None:
    """The line to show it at."""
    place = finding.place
    return SourceLocation(place.file, place.line) if place is not None and place.line else None


def sentence(finding: RunFinding) -> str:
    """All of it in one text."""
    where = place_words(finding.place)
    in_function = f" [{where}]" if where else ""
    return (
        f"{gain(finding.speedup)} of the whole run: {finding.name}: {finding.title}. {finding.advice}"
        f" {finding.speedup.reason}.{in_function}"
    )


def fingerprint(finding: RunFinding, occurrences: Mapping[str, int]) -> tuple[str, str]:
    """A digest without lines, counts or times, and what it is made of; equal ones are numbered."""
    place = finding.place or HostPlace(function="")
    key = "\0".join((finding.code, place.function, base_file(place.file or place.module)))
    return hashlib.sha256(f"{key}\0{occurrences.get(key, 0)}".encode()).hexdigest(), key
