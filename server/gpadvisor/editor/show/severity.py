# SPDX-License-Identifier: Apache-2.0
"""How loudly a finding is shown: by what the run gains, and how sure that is.

A warning is measured, of this very text, and worth it at the low end of its range. A hint is what the run
hardly notices, and a further line of a suggestion: the line that leads stands for all of them.
"""

from __future__ import annotations

import math

from gpadvisor.editor.place.placing import PlacedFinding
from gpadvisor.editor.show.headline import run_gain
from gpadvisor.editor.show.options import Options, Severity
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.finding import Finding, Freshness, NoteCode, ToolNote


def severity(placed: PlacedFinding, options: Options) -> Severity:
    """The severity of a finding; a rule's own setting wins, and what the source sets aside is off."""
    return finding_severity(placed.finding, placed.freshness, options)


def finding_severity(finding: Finding, freshness: Freshness, options: Options) -> Severity:
    """The same of a finding that is not placed."""
    if finding.suppressed is not None:
        return Severity.OFF
    configured = options.severity.get(finding.code)
    if configured is not None:
        return configured
    if not finding.leads or (finding.speedup is not None and run_gain(finding) < options.least_gain):
        return Severity.HINT
    sure = finding.evidence is Evidence.MEASURED and freshness is Freshness.FRESH
    return Severity.WARNING if sure and _likely(finding, options) else Severity.INFORMATION


def _likely(finding: Finding, options: Options) -> bool:
    """Whether the run gains enough even at the low end."""
    estimates = [part.program_speedup for part in finding.parts if part.program_speedup is not None]
    lows = [estimate.low for estimate in estimates] or [
        finding.speedup.low if finding.speedup is not None else 0.0
    ]
    return any(math.isfinite(low) and low >= options.warning_low for low in lows)


def note_severity(note: ToolNote, options: Options) -> Severity:
    """The severity of a tool note."""
    configured = options.severity.get(note.code)
    if configured is not None:
        return configured
    return Severity.HINT if note.quiet or note.code == NoteCode.STALE else Severity.INFORMATION
