# SPDX-License-Identifier: Apache-2.0
"""The roofline for a terminal: what it says, then the numbers in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gpadvisor.model.figures import percent
from gpadvisor.report.names import base_name, short_name
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import clean, cleaned, duration, wrap
from gpadvisor.views.roofline.model import LANES, Figure, RegionKind, RegionPoint, Roofline, WallKind
from gpadvisor.views.roofline.shown import ShownKernel
from gpadvisor.views.roofline.words import allows, code_place, mnemonic, sentences

_INDENT: Final = 2


def render_text(
    kernels: Sequence[ShownKernel], missing: Sequence[str], *, width: int, rows: int | None
) -> str:
    """All kernels, then those that have no roofline.

    Args:
        kernels: the kernels.
        missing: why others have none.
        width: of the page, in cells.
        rows: of each table; None for all.
    """
    blocks = [_kernel(cleaned(kernel), width, rows) for kernel in kernels]
    if missing:
        blocks.append([line for sentence in missing for line in wrap(clean(sentence), width, "  ", "! ")])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def gips(value: float) -> str:
    """1e9 warp instructions per second, in four digits at most."""
    return f"{value / 1e9:,.0f}" if value >= 1e12 else f"{value / 1e9:.4g}"


def _kernel(shown_kernel: ShownKernel, width: int, rows: int | None) -> list[str]:
    roofline = shown_kernel.roofline
    facts = [roofline.device, duration(1e9 * roofline.seconds)]
    if shown_kernel.time_share is not None:
        facts.append(f"{percent(shown_kernel.time_share, 0)} of the time")
    lines = [short_name(roofline.kernel, width), f"  {', '.join(facts)}", *_height(roofline, width), ""]
    for text in sentences(shown_kernel):
        lines += wrap(text, width)
    for note in roofline.notes:
        lines += wrap(note, width, "  ", "! ")
    for table in (_levels, _ceilings, _walls, _regions, _mix):
        table_rows = table(roofline, width, rows)
        lines += ["", *table_rows] if table_rows else []
    return lines


def _height(roofline: Roofline, width: int) -> list[str]:
    text = f"{gips(roofline.height)} GIPS (1e9 warp instructions a second)"
    peak, most = roofline.issue_peak, roofline.issue_peak_maximum
    if peak is not None:
        text += f", {percent(roofline.height / peak.value)} of {gips(peak.value)} that it can issue"
    if peak is not None and most is not None:
        text += f" ({gips(most.value)} at the maximum clock)"
    return wrap(text, width, " " * _INDENT)


def _levels(roofline: Roofline, width: int, _rows: int | None) -> list[str]:
    columns = (
        Column(title="level"),
        Column(title="transactions", right=True),
        Column(title="inst/txn", right=True),
        Column(title="GTXN/s", right=True),
        Column(title="peak", right=True),
        Column(title="use", right=True),
        Column(title="from", drop=1),
    )
    cells = [
        (
            point.level.value,
            f"{point.transactions.value:,.0f}",
            f"{point.intensity:.4g}",
            gips(point.rate),
            "-" if point.peak is None else gips(point.peak.value),
            percent(point.use),
            _origin(point.transactions),
        )
        for point in roofline.points
    ]
    return format_table(columns, cells, width=width, indent=_INDENT) if cells else []


def _origin(figure: Figure) -> str:
    return figure.basis.value


def _ceilings(roofline: Roofline, width: int, rows: int | None) -> list[str]:
    columns = (
        Column(title="ceiling"),
        Column(title="use", right=True),
        Column(title="allows", right=True),
        Column(title="reached at GIPS", right=True),
        Column(title="from", min_width=20, overflow=Overflow.CUT_END, drop=1),
    )
    cells = [
        (ceiling.name, percent(ceiling.use), allows(ceiling), gips(ceiling.height), ceiling.source)
        for ceiling in roofline.ceilings[:rows]
    ]
    return format_table(columns, cells, width=width, indent=_INDENT) if cells else []


def _walls(roofline: Roofline, width: int, rows: int | None) -> list[str]:
    columns = (
        Column(title="access", min_width=8, overflow=Overflow.CUT_END),
        Column(title="at", min_width=8, overflow=Overflow.CUT_START),
        Column(title="bytes", right=True),
        Column(title="txn/inst", right=True),
        Column(title="fewest", right=True),
        Column(title="wall"),
        Column(title="of all", right=True),
    )
    totals: dict[object, float] = {}
    for access in roofline.accesses:
        totals[access.space] = totals.get(access.space, 0.0) + access.transactions
    cells = [
        (
            mnemonic(access.text),
            code_place(access.location, access.pc),
            "-" if access.width_bytes is None else str(access.width_bytes),
            f"{access.per_instruction:.3g}",
            "-" if access.fewest is None else f"{access.fewest:.3g}",
            f"{access.excess:.3g}-way conflict" if access.wall is WallKind.CONFLICT else access.wall.value,
            percent(access.transactions / totals[access.space], 0),
        )
        for access in roofline.accesses[:rows]
    ]
    more = len(roofline.accesses) - len(cells)
    table = format_table(columns, cells, width=width, indent=_INDENT) if cells else []
    return [*table, *([f"  ... and {more:,} more accesses; --top 0 shows all"] if more > 0 else [])]


def _regions(roofline: Roofline, width: int, rows: int | None) -> list[str]:
    if not roofline.regions:
        return []
    loops = roofline.regions[0].kind is RegionKind.LOOP
    loaded = any(region.load is not None for region in roofline.regions)
    columns = (
        Column(title="loop" if loops else "line", min_width=14, overflow=Overflow.CUT_START),
        Column(title="samples", right=True),
        Column(title="GIPS (95 %)", right=True),
        Column(title="per sector", right=True, drop=3),
        Column(title="per tag", right=True, drop=4),
        Column(title="per wavefront", right=True, drop=5),
        Column(title="lanes", right=True, drop=2),
        Column(title="fullest there", drop=1),
        Column(title=f"of {roofline.nearest.name}" if roofline.nearest and loaded else "", right=True),
    )
    cells = [_region(point) for point in roofline.regions[:rows]]
    more = len(roofline.regions) - len(cells)
    hidden = Counter(region_point.hidden for region_point in roofline.regions[:rows] if region_point.hidden)
    reasons = "; ".join(f"{reason} ({count})" for reason, count in hidden.most_common())
    return [
        *format_table(columns, cells, width=width, indent=_INDENT),
        *(wrap(f"no height: {reasons}", width, "    ", "  ") if reasons else []),
        *([f"  ... and {more:,} more; --top 0 shows all"] if more > 0 else []),
    ]


def _region(point: RegionPoint) -> tuple[str, ...]:
    name = code_place(point.location, point.pc) or point.function
    if point.kind is RegionKind.LOOP and point.loop is None and point.pc is not None:
        name = f"no loop, {base_name(point.function)}"
    near = point.ceilings[0] if point.ceilings else None
    height = point.height
    return (
        "  " * max(0, point.depth - 1) + name,
        percent(point.share),
        "-"
        if height is None
        else f"{height.expected / 1e9:.3g} ({height.low / 1e9:.3g}-{height.high / 1e9:.3g})",
        _per(point.instructions, point.sectors),
        _per(point.instructions, point.tags),
        _per(point.instructions, point.wavefronts),
        "-"
        if point.active_lanes is None or point.predicated_lanes is None
        else f"{LANES * point.active_lanes:.0f}/{LANES * point.predicated_lanes:.0f}",
        "-" if near is None else f"{near.name} {percent(near.use, 0)}",
        "" if point.load is None else percent(point.load, 0),
    )


def _per(instructions: float, transactions: float | None) -> str:
    return f"{instructions / transactions:.3g}" if transactions else "-"


def _mix(roofline: Roofline, width: int, _rows: int | None) -> list[str]:
    lanes = roofline.lanes
    shares = [f"{row.name} {percent(row.share)}" for row in roofline.mix if row.share >= 0.0005]
    lines = wrap(f"mix: {', '.join(shares)}", width, " " * 7, "  ") if shares else []
    parts = [
        f"{LANES * figure.value:.1f} {text}"
        for figure, text in ((lanes.active, "active"), (lanes.predicated, "with a true predicate"))
        if figure is not None
    ]
    return [*lines, *(wrap(f"lanes: of {LANES}, {', '.join(parts)}", width, " " * 9, "  ") if parts else [])]
