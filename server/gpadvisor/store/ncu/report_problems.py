# SPDX-License-Identifier: Apache-2.0
"""What a report leaves out or has damaged, as problems with the next step."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.store.ncu.report import Report

COLLECT_COMMAND: Final = "ncu --set full --import-source yes -o report ./app"
COLLECT_SECTIONS: Final = "--section SourceCounters --section WarpStateStats"


def report_problems(report: Report) -> tuple[Problem, ...]:
    """What concerns the whole report."""
    problems: list[Problem] = []
    ranges = " and ".join(
        f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in report.others.items() if count
    )
    if ranges:
        message = (
            f"the report holds {ranges}, measured as a whole: such numbers belong to no single kernel and are"
            " left out"
        )
        problems.append(Problem(ProblemCode.NOT_ANALYSED, message))
    if not report.results:
        again = " --replay-mode kernel" if ranges else ""
        problems.append(
            Problem(
                ProblemCode.NO_SAMPLES,
                "the report holds no kernel launch; collect one with "
                f"'{COLLECT_COMMAND.replace('ncu', 'ncu' + again, 1)}'",
            )
        )
    if report.unnamed_metrics:
        message = f"{report.unnamed_metrics} metrics have no name in the report and are left out"
        problems.append(Problem(ProblemCode.INCONSISTENT_REPORT, message))
    ending = _cut_between_blocks(report)
    if ending is not None:
        problems.append(Problem(ProblemCode.INCONSISTENT_REPORT, ending))
    return tuple(problems)


def _cut_between_blocks(report: Report) -> str | None:
    """What tells of a file that ends early at the end of a block, where its bytes still parse.

    The format counts its launches nowhere. But a module is mostly written before the first launch that refers
    to it, and the description of the session behind the first launch; behind a launch without either, nothing
    tells.
    """
    if not report.results or any(report.others.values()):
        return None
    session = report.session
    if report.left_over:
        return (
            f"the report ends with {report.left_over} modules of machine code that no launch in it refers to:"
            " it may be cut short; compare the number of launches, or copy the report again"
        )
    if not (session.versions or session.devices or session.target):
        return (
            "the report does not describe the machine it was collected on, which ncu writes behind the first "
            "launch: it may be cut short; copy it again"
        )
    return None
