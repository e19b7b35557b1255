# SPDX-License-Identifier: Apache-2.0
"""The potential for a terminal and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from gpadvisor.model.figures import percent
from gpadvisor.report.names import short_name
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import clean, cleaned, wrap
from gpadvisor.views.potential.model import Benefit, Potential, ShownPotential
from gpadvisor.views.potential.words import WHAT, at_most, lowered, promise_of, sentences

SCHEMA: Final = "gpadvisor.potential/1"
_INDENT: Final = 2
_BAR: Final = 50


def render_text(potentials: Sequence[ShownPotential], missing: Sequence[str], *, width: int) -> str:
    """All kernels, then those of which nothing can be said."""
    blocks = [_kernel(cleaned(potential), width) for potential in potentials]
    if missing:
        blocks.append([line for sentence in missing for line in wrap(clean(sentence), width, "  ", "! ")])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _kernel(kernel: ShownPotential, width: int) -> list[str]:
    of = kernel.potential
    facts = [of.device, f"{of.cycles:,.0f} cycles of an SM"]
    if kernel.time_share is not None:
        facts.append(f"{percent(kernel.time_share, 0)} of the time")
    lines = [short_name(of.kernel, width), f"  {', '.join(facts)}", ""]
    for text in sentences(kernel):
        lines += wrap(text, width)
    for note in (*of.notes, *(f"missing: {name}" for name in of.missing)):
        lines += wrap(note, width, "  ", "! ")
    return [*lines, "", *_bar(of, width), "", *_table(of, width), "", *_inputs(of, width)]


def shares(of: Potential) -> tuple[tuple[str, float], ...]:
    """The parts of the measured cycles, which add up to one; what the model does not explain comes last."""
    parts = of.parts
    exposed = parts.memory - parts.overlap
    rows = [
        (f"essential instructions ({of.essential})", parts.ideal_compute),
        ("bytes of DRAM at its peak, exposed", exposed - parts.benefits[Benefit.MEMLP]),
        *((benefit.value, parts.benefits[benefit]) for benefit in Benefit),
        ("not explained", of.unexplained),
    ]
    return tuple((name, cycles / of.cycles) for name, cycles in rows)


def _bar(of: Potential, width: int) -> list[str]:
    """The parts as bars, each beside its share; more than was measured is below zero and has none."""
    room = max(10, min(_BAR, width - 56))
    cells = [
        (name, percent(share), "=" * round(room * max(0.0, min(1.0, share)))) for name, share in shares(of)
    ]
    columns = (Column(title="measured cycles"), Column(title="", right=True), Column(title=""))
    return format_table(columns, [*cells, ("sum", percent(1.0), ".")], width=width, indent=_INDENT)


def _table(of: Potential, width: int) -> list[str]:
    columns = (
        Column(title="could be saved"),
        Column(title="model", right=True),
        Column(title="samples", right=True),
        Column(title="speedup", right=True),
        Column(title="by", min_width=16, overflow=Overflow.WRAP),
    )
    cells = [
        (
            benefit.value,
            percent(of.share(benefit)),
            percent(None if of.samples is None else of.samples[benefit]),
            at_most(of.bound(benefit)),
            WHAT[benefit],
        )
        for benefit in Benefit
    ]
    return format_table(columns, cells, width=width, indent=_INDENT)


def _inputs(of: Potential, width: int) -> list[str]:
    columns = (
        Column(title="input"),
        Column(title="value", right=True),
        Column(title="from", min_width=20, overflow=Overflow.CUT_END),
    )
    cells = [
        (
            field.name.replace("_", " "),
            f"{value:.4g}" if value < 1e5 else f"{value:,.0f}",
            of.sources.get(field.name, ""),
        )
        for field in fields(of.inputs)
        if isinstance(value := getattr(of.inputs, field.name), float)
    ]
    cells += [("MWP, CWP", f"{of.parts.mwp:.1f}, {of.parts.cwp:.1f}", "Eqs. A.4, A.1")]
    return format_table(columns, cells, width=width, indent=_INDENT)


def render_json(potentials: Sequence[ShownPotential], missing: Sequence[str]) -> str:
    """Everything, by ``potential.schema.json``; the same input gives the same bytes."""
    value = {
        "schema": SCHEMA,
        "kernels": [potential_json(potential) for potential in potentials],
        "missing": list(missing),
    }
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def potential_json(kernel: ShownPotential) -> dict[str, object]:
    """One kernel, as ``render_json`` has it."""
    of = kernel.potential
    return {
        "kernel": of.kernel,
        "device": of.device,
        "time_share": kernel.time_share,
        "cycles": of.cycles,
        "essential": of.essential,
        "inputs": {field.name: getattr(of.inputs, field.name) for field in fields(of.inputs)},
        "sources": dict(of.sources),
        "missing_inputs": list(of.missing),
        "parts": {
            field.name: getattr(of.parts, field.name)
            for field in fields(of.parts)
            if field.name != "benefits"
        },
        "benefits": {
            benefit.name.lower(): {
                "cycles": of.parts.benefits[benefit],
                "share": of.share(benefit),
                "share_by_samples": None if of.samples is None else of.samples[benefit],
                "speedup_at_most": bound if math.isfinite(bound := of.bound(benefit)) else None,
                "suggestion": None if (first := promise_of(benefit, kernel.promises)) is None else first.code,
            }
            for benefit in Benefit
        },
        "unexplained_cycles": of.unexplained,
        "says": list(sentences(kernel)),
        "capped": [promise.code for promise, _ in lowered(kernel.promises)],
        "notes": list(of.notes),
    }
