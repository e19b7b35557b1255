# SPDX-License-Identifier: Apache-2.0
"""The comment on a pull request: the verdict, what is new and fixed, the gates, and the advice folded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gpadvisor.gate.baseline import Difference, Known
from gpadvisor.report.markdown import code, prose
from gpadvisor.report.words import cleaned

MAX_TEXT: Final = 65_000
"""Characters; a comment of GitHub has at most 65,536, a summary of a job 1 MiB."""
_SHOWN: Final = 20
_NAME: Final = re.compile(r"[\w.+/-]{1,100}")


def marker(name: str) -> str:
    """The first line of a comment, by which the next run finds it; not shown.

    Raises:
        ValueError: the name could end the line.
    """
    if not _NAME.fullmatch(name) or "--" in name:
        raise ValueError(f"'{name}' is no name of letters, digits and slashes")
    return f"<!-- gpadvisor:{name} -->"


def comment_text(
    verdict: str, why: Sequence[str], changes: Difference | None, gates: str, advice: Sequence[str]
) -> str:
    """Markdown without its marker.

    Args:
        verdict: "pass", "fail" or "inconclusive".
        why: sentences on what decided it.
        changes: the advice beside a baseline, if there is one.
        gates: Markdown of a comparison; empty where nothing was compared.
        advice: Markdown of each input.
    """
    why, changes = cleaned(tuple(why)), cleaned(changes)
    parts = [f"### gpadvisor: {verdict}", *(f"- {prose(reason)}" for reason in why)]
    if changes is not None:
        counts = f"{len(changes.new)} new, {len(changes.known)} known, {len(changes.fixed)} fixed"
        parts += ["", f"Advice beside the baseline: {counts}."]
        parts += _rows("New", changes.new) + _rows("Fixed", changes.fixed)
        parts += [f"- not comparable: {prose(reason)}" for reason in changes.not_comparable[:_SHOWN]]
        if changes.elsewhere:
            names = ", ".join(code(name) for name in changes.elsewhere[:_SHOWN])
            parts += ["", f"Not looked at here: {names}."]
    if gates:
        parts += ["", gates.strip()]
    return _with_folded("\n".join(parts), "\n\n---\n\n".join(text.strip() for text in advice))


def _rows(title: str, findings: Sequence[Known]) -> list[str]:
    if not findings:
        return []
    rows = [_row(title, finding) for finding in findings[:_SHOWN]]
    more = [f"| | | and {len(findings) - _SHOWN} more | | |"] if len(findings) > _SHOWN else []
    return ["", "| | rule | kernel | file | expected |", "|---|---|---|---|---:|", *rows, *more]


def _row(title: str, finding: Known) -> str:
    expected = "" if finding.expected is None else f"{finding.expected:.2f}x"
    file = code(finding.file, cell=True) if finding.file else ""
    return f"| {title} | {prose(finding.rule)} | {code(finding.kernel, cell=True)} | {file} | {expected} |"


def _with_folded(text: str, advice: str) -> str:
    """The advice is left out where the whole would be too long: a cut could leave markup open."""
    head, end = "\n\n<details><summary>All advice</summary>\n\n", "\n\n</details>\n"
    if advice and len(text) + len(head) + len(advice) + len(end) <= MAX_TEXT:
        return text + head + advice + end
    ending = "\n\nThe advice is too long for a comment; it is in the job's log.\n" if advice else "\n"
    return text[: MAX_TEXT - len(ending)] + ending
