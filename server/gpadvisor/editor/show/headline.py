# SPDX-License-Identifier: Apache-2.0
"""The order of words of every surface: what is gained, by what cure, and how much is at stake here."""

from __future__ import annotations

from gpadvisor.model.figures import expected, explains, short_percent, won
from gpadvisor.model.finding import Finding


def headline(finding: Finding) -> str:
    """``4.5x (3.8-4.9): Memory Transaction Reduction, 92 % of samples``, or ``code only: ...``.

    Where a run was traced, what that gains stands behind: ``4.5x (3.8-4.9), 1.2x of the whole run: ...``.
    """
    return f"{won(finding.speedup, finding.evidence)}{run_words(finding)}: {finding.name}{_share(finding)}"


def short_headline(finding: Finding) -> str:
    """The same without the range, for the end of a line: ``4.5x: Memory Transaction Reduction``."""
    estimate = finding.speedup
    gained = won(estimate, finding.evidence) if estimate is None else expected(estimate)
    return f"{gained}{run_words(finding)}: {finding.name}"


def _share(finding: Finding) -> str:
    share = finding.matched if finding.leads else finding.importance
    if not share or not finding.samples or not explains(finding.matched or share, finding.speedup):
        return ""
    return f", {short_percent(share)} of samples"


def run_words(finding: Finding, kernel: str | None = None) -> str:
    """What a traced run gains, of the kernel that leads or of another one; nothing where none was traced."""
    if finding.run:
        return " of the whole run"
    part = next((part for part in finding.parts if kernel is None or part.kernel == kernel), None)
    if part is None or not part.run or part.program_speedup is None:
        return ""
    return f", {expected(part.program_speedup)} of the whole run"


def run_gain(finding: Finding) -> float:
    """The speedup expected of the whole run; of the kernel where its part of the run is not known."""
    of_programs = [
        part.program_speedup.expected for part in finding.parts if part.program_speedup is not None
    ]
    of_kernel = 0.0 if finding.speedup is None else finding.speedup.expected
    return max(of_programs, default=of_kernel)
