# SPDX-License-Identifier: Apache-2.0
"""Checked limits as lines of text, Markdown, JSON values and JUnit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from gpadvisor.gate.limits import TIME, GateCheck, GateOutcome, verdict
from gpadvisor.report.markdown import code, prose
from gpadvisor.report.names import short_name
from gpadvisor.report.words import cleaned, wrap

_NAME = 60
_INDENT = 26
_SIGN = {GateOutcome.PASS: "pass", GateOutcome.FAIL: "FAIL", GateOutcome.INCONCLUSIVE: "inconclusive"}


def gate_text(checks: Sequence[GateCheck], width: int) -> str:
    """The verdict and each check, for a terminal of so many columns."""
    lines = [f"Gate: {verdict(checks).value}"]
    for check in cleaned(tuple(checks)):
        lead = f"  {_SIGN[check.outcome]:<12}  {check.limit:<8}"
        lines += wrap(_sentence(check), width, " " * _INDENT, f"{lead:<{_INDENT - 1}} ")
    return "\n".join(lines) + "\n"


def gate_markdown(checks: Sequence[GateCheck]) -> str:
    """The verdict and a table, for a comment on a pull request or a job's summary."""
    rows = [
        f"| {_SIGN[check.outcome]} | {code(check.limit, cell=True)} "
        f"| {code(short_name(check.kernel, _NAME), cell=True)} "
        f"| {_value(check, check.before)} | {_value(check, check.after)} | {_change(check)} |"
        f" {prose(check.reason)} |"
        for check in cleaned(tuple(checks))
    ]
    head = ["| | limit | kernel | before | after | change | |", "|---|---|---|--:|--:|--:|---|"]
    return "\n".join([f"**gpadvisor: {verdict(checks).value}**", "", *head, *rows]) + "\n"


def gate_json(checks: Sequence[GateCheck]) -> dict[str, Any]:
    """The values: times in nanoseconds, null for what is not known."""
    return {
        "verdict": verdict(checks).value,
        "checks": [
            {
                "kernel": check.kernel,
                "limit": check.limit,
                "quantity": check.quantity,
                "outcome": check.outcome.value,
                "before": check.before,
                "after": check.after,
                "band": check.band,
                "reason": check.reason,
            }
            for check in checks
        ],
    }


def gate_junit(checks: Sequence[GateCheck]) -> str:
    """A test case for each check; what is inconclusive is an error."""
    counts = {outcome: sum(gate_check.outcome is outcome for gate_check in checks) for outcome in GateOutcome}
    suite = ET.Element(
        "testsuite",
        name="gpadvisor compare",
        tests=str(len(checks)),
        failures=str(counts[GateOutcome.FAIL]),
        errors=str(counts[GateOutcome.INCONCLUSIVE]),
    )
    for check in cleaned(tuple(checks)):
        case = ET.SubElement(suite, "testcase", classname=check.kernel or "all kernels", name=check.limit)
        if check.outcome is not GateOutcome.PASS:
            kind = "failure" if check.outcome is GateOutcome.FAIL else "error"
            ET.SubElement(case, kind, message=_sentence(check))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _sentence(check: GateCheck) -> str:
    values = ""
    if check.before is not None and check.after is not None:
        values = (
            f"{check.quantity} {_value(check, check.before)} -> {_value(check, check.after)}"
            f" ({_change(check)})"
        )
    kernel = short_name(check.kernel, _NAME) if check.kernel else ""
    return ": ".join(part for part in (kernel, values, check.reason) if part)


def _value(check: GateCheck, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value / 1000:,.4g} us" if check.quantity == TIME else f"{value:,.15g}"


def _change(check: GateCheck) -> str:
    if check.before is None or check.after is None:
        return ""
    if not check.before:
        return "as before" if not check.after else f"+{check.after:,.15g}"
    band = "" if check.band is None else f" +- {100 * check.band:.1f}"
    return f"{100 * (check.after / check.before - 1):+.1f}{band} %"
