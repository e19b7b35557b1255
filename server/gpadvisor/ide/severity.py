# SPDX-License-Identifier: Apache-2.0
"""How loudly a finding is shown: information unless a gain is likely, measured, and of this very text."""

from __future__ import annotations

import math
from typing import Final

from gpadvisor.ide.options import Options, Severity
from gpadvisor.ide.placing import PlacedFinding
from gpadvisor.ide.values import Finding, Freshness, ToolNote
from gpadvisor.model.profile import Evidence

_QUIET: Final = frozenset({Evidence.STATIC, Evidence.MODELLED})
_QUIET_NOTES: Final = frozenset({"GPA902"})


def severity(placed: PlacedFinding, options: Options) -> Severity:
    """The severity of a finding; a rule's own setting wins, and what the source sets aside is off."""
    return finding_severity(placed.finding, placed.freshness, options)


def finding_severity(finding: Finding, freshness: Freshness, options: Options) -> Severity:
    """The same of a finding that is not placed."""
    if finding.suppressed is not None:
        return Severity.OFF
    wanted = options.severity.get(finding.code)
    if wanted is not None:
        return wanted
    if finding.evidence in _QUIET:
        return Severity.HINT
    sure = finding.evidence is Evidence.MEASURED and freshness is Freshness.FRESH
    return Severity.WARNING if sure and _likely(finding, options) else Severity.INFORMATION


def _likely(finding: Finding, options: Options) -> bool:
    estimate = finding.speedup
    return estimate is not None and math.isfinite(estimate.low) and estimate.low >= options.warning_low


def note_severity(note: ToolNote, options: Options) -> Severity:
    """The severity of a tool note."""
    wanted = options.severity.get(note.code)
    if wanted is not None:
        return wanted
    return Severity.HINT if note.code in _QUIET_NOTES else Severity.INFORMATION
