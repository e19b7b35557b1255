# SPDX-License-Identifier: Apache-2.0
"""The order of words of every surface: what is gained, by what cure, and how much is at stake here."""

from __future__ import annotations

from gpadvisor.editor.show.words import percent
from gpadvisor.model.figures import expected, won
from gpadvisor.model.finding import Finding


def headline(finding: Finding) -> str:
    """``4.5x (3.8-4.9): Memory Transaction Reduction, 92 % of samples``, or ``code only: ...``."""
    return f"{won(finding.speedup, finding.evidence)}: {finding.name}{_share(finding)}"


def short_headline(finding: Finding) -> str:
    """The same without the range, for the end of a line: ``4.5x: Memory Transaction Reduction``."""
    estimate = finding.speedup
    return f"{won(estimate, finding.evidence) if estimate is None else expected(estimate)}: {finding.name}"


def _share(finding: Finding) -> str:
    share = finding.matched if finding.leads else finding.importance
    return f", {percent(share)} of samples" if share and finding.samples else ""


def run_gain(finding: Finding) -> float:
    """The speedup expected of the whole run; of the kernel where its part of the run is not known."""
    whole = [part.program_speedup.expected for part in finding.parts if part.program_speedup is not None]
    own = 0.0 if finding.speedup is None else finding.speedup.expected
    return max(whole, default=own)
