# SPDX-License-Identifier: Apache-2.0
"""Idle time of devices as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from gpadvisor.model.figures import percent
from gpadvisor.model.timeline import DeviceIdleness, IdleShare, RunIdleness
from gpadvisor.report.run_findings import finding_json, finding_lines
from gpadvisor.report.words import clean, count, plural

_NAME: Final = 60
_WIDTH: Final = 100


def idle_text(name: str, run: RunIdleness, rows: int | None) -> str:
    """A table for each device, and what host code the gaps are due to.

    Args:
        name: of the trace.
        run: what was traced.
        rows: of each table at most; None for all.
    """
    lines: list[str] = []
    for device in run.devices:
        share = device.idle_ns / device.span_ns if device.span_ns else 0.0
        lines += [
            f"{clean(name, _NAME)}, GPU {device.device}",
            (
                f"{_percent(share)} of {_ms(device.span_ns)} idle: {_ms(device.idle_ns)} in"
                f" {plural(device.gaps, 'gap')}"
            ),
            "",
            *_table("what the CPU did meanwhile", device.by_call, device, rows),
            "",
            *_table("the call that launched what ended the gap", device.by_end, device, rows),
            "",
        ]
    findings = run.findings[:rows]
    lines += finding_lines(findings, _WIDTH)
    if findings:
        more = len(run.findings) - len(findings)
        lines += [*([f"  and {more:,} more: --top 0"] if more else []), ""]
    return "\n".join(lines)


def idle_json(name: str, run: RunIdleness) -> str:
    """The same, with times in nanoseconds."""
    return json.dumps(
        {
            "trace": name,
            "devices": [device_json(idleness) for idleness in run.devices],
            "findings": [finding_json(finding) for finding in run.findings],
        },
        indent=1,
    )


def device_json(idleness: DeviceIdleness) -> dict[str, object]:
    """Of one device."""
    return {
        "device": idleness.device,
        "span_ns": idleness.span_ns,
        "busy_ns": idleness.busy_ns,
        "idle_ns": idleness.idle_ns,
        "gaps": idleness.gaps,
        "by_call": [_share(share) for share in idleness.by_call],
        "by_end": [_share(share) for share in idleness.by_end],
    }


def _share(share: IdleShare) -> dict[str, object]:
    return {"name": share.name, "idle_ns": share.idle_ns, "gaps": share.gaps}


def _table(title: str, shares: Sequence[IdleShare], device: DeviceIdleness, rows: int | None) -> list[str]:
    idle_shares = shares[:rows]
    top_rows = [
        f"  {_percent(share.idle_ns / device.idle_ns) if device.idle_ns else '-':>7} {_ms(share.idle_ns):>14}"
        f" {count(share.gaps):>9}  {clean(share.name, _NAME)}"
        for share in idle_shares
    ]
    more = len(shares) - len(idle_shares)
    return [
        f"  {'idle':>7} {'time':>14} {'gaps':>9}  {title}",
        *top_rows,
        *([f"  and {more:,} more: --top 0"] if more else []),
    ]


def _percent(share: float) -> str:
    return f"{percent(share)}"


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:,.3f} ms"
