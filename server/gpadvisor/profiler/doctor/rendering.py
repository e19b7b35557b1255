# SPDX-License-Identifier: Apache-2.0
"""The diagnosis for people, in 80 columns, and for programs."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from typing import Final

from gpadvisor.profiler.doctor.diagnosis import Diagnosis
from gpadvisor.profiler.doctor.verdicts import Check, CheckStatus
from gpadvisor.report.words import clean, cleaned

SCHEMA: Final = "gpadvisor.doctor/1"
_MARKS: Final = {
    CheckStatus.OK: "ok",
    CheckStatus.NOTE: "note",
    CheckStatus.WARNING: "warn",
    CheckStatus.BLOCKED: "BLOCKED",
}
_COLOURS: Final = {
    CheckStatus.OK: "32",
    CheckStatus.NOTE: "36",
    CheckStatus.WARNING: "33",
    CheckStatus.BLOCKED: "31;1",
}
_INDENT: Final = " " * 9


def render_text(diagnosis: Diagnosis, *, width: int = 80, color: bool = False) -> str:
    """One paragraph per check, then what is possible here and the next command."""
    lines: list[str] = []
    checks = [_clean(check) for check in diagnosis.checks]
    for check in checks:
        lines += _paragraph(check, width, color=color)
    letters = [check for check in checks if check.admin_text]
    lines.append("")
    best = f"Best evidence here: {diagnosis.step.value}, because {clean(diagnosis.reason)}."
    lines += textwrap.wrap(best, width)
    lines.append(f"Next: {clean(diagnosis.next_command)}")
    for check in letters:
        lines += [
            "",
            f"To send to {check.layer.value if check.layer else 'an administrator'} ({check.name}):",
        ]
        lines += [f"  {line}" for line in _wrapped_letter(check.admin_text, width - 2)]
    return "\n".join(lines) + "\n"


def _clean(check: Check) -> Check:
    """Names of applications, devices and processes are anybody's."""
    letter = "\n".join(map(clean, check.admin_text.splitlines()))
    return replace(cleaned(check), admin_text=letter)


def _wrapped_letter(text: str, width: int) -> list[str]:
    return [
        part
        for line in text.splitlines()
        for part in (textwrap.wrap(line, width, subsequent_indent="    ") or [""])
    ]


def _paragraph(check: Check, width: int, *, color: bool) -> list[str]:
    mark = _MARKS[check.status].ljust(len(_INDENT))
    if color:
        mark = f"\x1b[{_COLOURS[check.status]}m{mark}\x1b[0m"
    first, *further = textwrap.wrap(f"{check.name}: {check.found}", width - len(_INDENT)) or [""]
    lines = [mark + first, *(_INDENT + line for line in further)]
    more = [check.meaning] if check.meaning else []
    if check.status is not CheckStatus.OK and check.layer is not None:
        more.append(f"who can change it: {check.layer.value}")
    if not check.retry_helps:
        more.append("trying again cannot help")
    for text in more:
        lines += textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    if check.action and check.status is not CheckStatus.OK:
        lines.append(f"{_INDENT}$ {check.action}")  # never wrapped: it is copied
    return lines


def render_json(diagnosis: Diagnosis) -> str:
    """The same as one JSON document."""
    document = {
        "schema": SCHEMA,
        "step": diagnosis.step.name.lower(),
        "reason": diagnosis.reason,
        "next_command": diagnosis.next_command,
        "checks": [
            {
                "name": check.name,
                "status": check.status.value,
                "found": check.found,
                "meaning": check.meaning or None,
                "layer": None if check.layer is None else check.layer.name.lower(),
                "action": check.action or None,
                "admin_text": check.admin_text or None,
                "retry_helps": check.retry_helps,
            }
            for check in diagnosis.checks
        ],
    }
    return json.dumps(document, indent=2) + "\n"
