# SPDX-License-Identifier: Apache-2.0
"""The roofline as a picture: one SVG without scripts, in light or dark as its reader prefers.

Both axes are logarithmic. Each dot and line has its numbers as a tooltip; the table below has them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from gpadvisor.model.figures import percent
from gpadvisor.report.names import short_name
from gpadvisor.report.words import cleaned, duration, wrap
from gpadvisor.views.roofline.accesses import no_conflict, stride_1
from gpadvisor.views.roofline.axes import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Axes, axes_of, grid, line, text
from gpadvisor.views.roofline.model import (
    LANES,
    AccessSpace,
    CeilingKind,
    Level,
    Point,
    RegionPoint,
    Roofline,
)
from gpadvisor.views.roofline.shown import ShownKernel
from gpadvisor.views.roofline.style import CLASS_OF, STYLE
from gpadvisor.views.roofline.text import gips
from gpadvisor.views.roofline.words import allows, region_name, sentences

_DOTS: Final = 12  # regions drawn at most
_LABEL_GAP: Final = 15.0
_ROW: Final = 19
_SENTENCE_CELLS: Final = 62
_INDENT: Final = 9
_LABEL_HEIGHT: Final = 20.0  # of the name along a line, with its distance from that
_RADIUS: Final = 6.0
_RISE: Final = 30.0  # from the end of a label to its middle
_OUTER: Final = "a sector for each lane, a conflict of all lanes"


def render_svg(kernel: ShownKernel) -> str:
    """One kernel; hostile names come out as text."""
    shown_kernel = cleaned(kernel)
    roofline = shown_kernel.roofline
    rows = [
        row for sentence in sentences(shown_kernel) for row in wrap(sentence, _SENTENCE_CELLS, "   ", "-  ")
    ]
    height = BOTTOM + 64 + _ROW * max(len(rows), len(roofline.points) + 4) + 16
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "width": str(WIDTH),
            "height": str(height),
            "role": "img",
            "aria-labelledby": "title description",
        },
    )
    ET.SubElement(root, "title", {"id": "title"}).text = f"Instruction roofline of {roofline.kernel}"
    ET.SubElement(root, "desc", {"id": "description"}).text = " ".join(sentences(shown_kernel))
    ET.SubElement(root, "style").text = STYLE
    ET.SubElement(root, "rect", {"class": "page", "width": str(WIDTH), "height": str(height)})
    _heading(root, shown_kernel)
    axes = axes_of(roofline)
    grid(root, axes)
    _walls(root, axes, roofline)
    _levels(root, axes, roofline)
    _flat_ceilings(root, axes, roofline)
    _regions(root, axes, roofline.regions)
    _points(root, axes, roofline)
    _table(root, roofline)
    for number, row in enumerate(rows):
        begins = row.startswith("-  ")
        x = WIDTH / 2 - 20 + (0 if begins else _INDENT)
        text(root, x, BOTTOM + 64 + _ROW * number, f"\u2022 {row[3:]}" if begins else row.lstrip(), "said")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _heading(root: ET.Element, shown_kernel: ShownKernel) -> None:
    roofline = shown_kernel.roofline
    text(root, LEFT, 30, short_name(roofline.kernel, 90), "heading")
    share = "" if shown_kernel.time_share is None else f", {percent(shown_kernel.time_share, 0)} of the time"
    facts = f"{roofline.device}, {duration(1e9 * roofline.seconds)}{share}, {gips(roofline.height)} GIPS"
    text(root, LEFT, 50, facts, "quiet")


def _walls(root: ET.Element, axes: Axes, roofline: Roofline) -> None:
    """Dashed verticals: the outer ones, and those of the widths that occur in global and in shared memory."""
    if not roofline.accesses:
        return
    walls = {1.0: ("one address", ["one address in all lanes"]), 1 / LANES: ("each lane", [_OUTER])}
    for access in roofline.accesses:
        width = access.width_bytes or 4
        shared = access.space is AccessSpace.SHARED
        x = 1 / (no_conflict(width) if shared else stride_1(width))
        wall = f"{width} bytes without conflict" if shared else f"neighbouring values of {width} bytes"
        names = walls.setdefault(x, (f"{1 / x:.0f} B", []))[1]
        if wall not in names:
            names.append(wall)
    for x, (label, names) in sorted(walls.items()):
        where = axes.x(x)
        group = ET.SubElement(root, "g", {"class": "wall"})
        ET.SubElement(group, "title").text = f"{1 / x:g} transactions for each access: {', '.join(names)}"
        line(group, (where, TOP), (where, BOTTOM), "wall")
        text(group, where, TOP - 6, label, "small wall-label middle")


def _levels(root: ET.Element, axes: Axes, roofline: Roofline) -> None:
    """Rising ceilings: y = peak * x up to the issue peak, each with its name along it."""
    top = axes.top if roofline.issue_peak is None else roofline.issue_peak.value
    labelled: list[tuple[float, Point, ET.Element]] = []
    for point in roofline.points:
        if point.peak is None:
            continue
        first = max(axes.x_low, axes.y_low / point.peak.value)
        right_end = min(axes.x_high, top / point.peak.value)
        if first >= right_end:
            continue
        group = ET.SubElement(root, "g", {"class": CLASS_OF[point.level]})
        peak = f"{gips(point.peak.value)} GTXN/s"
        ET.SubElement(group, "title").text = f"{point.level.value}: {peak} ({point.peak.source})"
        end = (axes.x(right_end), axes.y(point.peak.value * right_end))
        line(group, (axes.x(first), axes.y(point.peak.value * first)), end, "ceiling")
        labelled.append((right_end, point, group))
    for right_end, point, group in labelled:
        alike = [
            neighbour
            for end_of_other, neighbour, _ in labelled
            if abs(axes.x(end_of_other) - axes.x(right_end)) < _LABEL_GAP
        ]
        if point.peak is None or alike[0] is not point:  # lines that lie on each other share a label
            continue
        place = _label_place(axes, right_end, point.peak.value, roofline.height)
        names = ", ".join(neighbour.level.value for neighbour in alike)
        setback = _LABEL_HEIGHT / math.sin(math.radians(-axes.angle))  # stays below the line that it ends at
        label = text(
            group, place[0] - setback, place[1] - 5, f"{names} {gips(point.peak.value)}", "small right halo"
        )
        label.set("transform", f"rotate({axes.angle:.2f} {place[0]:.1f} {place[1]:.1f})")


def _label_place(axes: Axes, right_end: float, peak: float, height: float) -> tuple[float, float]:
    """The upper end of a rising line or its middle, whichever is further from the dots."""
    middle = (right_end * max(axes.x_low, axes.y_low / peak)) ** 0.5
    best = max((right_end, middle), key=lambda x: abs(axes.y(peak * x) + _RISE - axes.y(height)))
    return axes.x(best), axes.y(peak * best)


def _flat_ceilings(root: ET.Element, axes: Axes, roofline: Roofline) -> None:
    """The issue peak at both clocks, and pipes and units at the height that this mix would reach."""
    flat = [
        (
            ceiling.height,
            f"{ceiling.name} {percent(ceiling.use, 0)}",
            "unit",
            f"allows {allows(ceiling)}, from {ceiling.source}",
        )
        for ceiling in roofline.ceilings
        if ceiling.kind in {CeilingKind.PIPE, CeilingKind.UNIT}
    ]
    for figure, name, kind in (
        (roofline.issue_peak, "issue", "issue"),
        (roofline.issue_peak_maximum, "issue, maximum clock", "maximum"),
    ):
        if figure is not None:
            flat.append((figure.value, f"{name} {gips(figure.value)}", kind, f"from {figure.source}"))
    flat = sorted(
        (ceiling for ceiling in flat if axes.y_low < ceiling[0] <= axes.y_high),
        key=lambda ceiling: -ceiling[0],
    )
    places = _apart([axes.y(height) for height, *_ in flat], TOP, BOTTOM)
    for (height, name, kind, why), place in zip(flat, places, strict=True):
        group = ET.SubElement(root, "g", {"class": kind})
        ET.SubElement(group, "title").text = f"{name} ({gips(height)} GIPS), {why}"
        y = axes.y(height)
        line(group, (LEFT, y), (RIGHT, y), kind)
        line(group, (RIGHT, y), (RIGHT + 10, place), "leader")
        text(group, RIGHT + 14, place + 4, name, "small")


def _apart(desired: Sequence[float], low: float, high: float) -> list[float]:
    """Places at least a line of text apart, each as near to the wanted one as that allows."""
    places: list[float] = []
    for y in desired:
        places.append(max(y, places[-1] + _LABEL_GAP) if places else max(y, low))
    for index in range(len(places) - 1, -1, -1):
        limit = high if index == len(places) - 1 else places[index + 1] - _LABEL_GAP
        places[index] = min(places[index], limit)
    return places


def _points(root: ET.Element, axes: Axes, roofline: Roofline) -> None:
    """Filled: all instructions at each level; open: accesses alone; dotted down: lanes that are lost."""
    lanes = roofline.lanes.predicated or roofline.lanes.active
    for number, point in enumerate(roofline.points):
        x, y = axes.x(point.intensity), axes.y(roofline.height)
        group = ET.SubElement(root, "g", {"class": CLASS_OF[point.level]})
        ET.SubElement(group, "title").text = _numbers(point, roofline)
        if lanes is not None and lanes.value < 0.98:
            below = axes.y(roofline.height * lanes.value)
            line(group, (x, y), (x, below), "lost")
            line(group, (x - 5, below), (x + 5, below), "lanes")
        beside = [axes.x(later.intensity) for later in roofline.points[number + 1 :]]
        hidden = sum(
            abs(x_of_later - x) < _RADIUS for x_of_later in beside
        )  # a ring shows under each later one
        ET.SubElement(group, "circle", {"class": "dot", **_at(x, y), "r": str(_RADIUS + 4 * hidden)})
    for space, level, intensity in (
        (AccessSpace.GLOBAL, Level.L1_SECTORS, roofline.global_intensity),
        (AccessSpace.SHARED, Level.SHARED, roofline.shared_intensity),
    ):
        moved = next((point for point in roofline.points if point.level is level), None)
        if intensity is None or moved is None:
            continue
        height = intensity * moved.rate
        group = ET.SubElement(root, "g", {"class": CLASS_OF[level]})
        unit = "sector" if space is AccessSpace.GLOBAL else "wavefront"
        ET.SubElement(
            group, "title"
        ).text = f"accesses to {space.value} memory alone: {intensity:.4g} for each {unit}"
        where = _at(axes.x(intensity), axes.y(height))
        ET.SubElement(group, "circle", {"class": "open", **where, "r": str(_RADIUS)})


def _at(x: float, y: float) -> dict[str, str]:
    return {"cx": f"{x:.1f}", "cy": f"{y:.1f}"}


def _numbers(point: Point, roofline: Roofline) -> str:
    return (
        f"{point.level.value}: {point.intensity:.4g} instructions for each transaction, "
        f"{gips(roofline.height)} GIPS, {gips(point.rate)} GTXN/s, {percent(point.use)} of the peak"
    )


def _regions(root: ET.Element, axes: Axes, regions: Sequence[RegionPoint]) -> None:
    """Loops or lines by their L1 sectors, larger with more samples, with the interval of the height."""
    timed = [region for region in regions if region.height is not None and region.sectors and region.share]
    for point in sorted(timed, key=lambda region_point: -region_point.samples)[:_DOTS]:
        height, sectors, share = point.height, point.sectors or 1.0, point.share or 0.0
        if height is None:
            continue
        x = axes.x(point.instructions / sectors)
        group = ET.SubElement(root, "g", {"class": "region"})
        spread = f"{gips(height.expected)} GIPS ({gips(height.low)}-{gips(height.high)}, modelled)"
        where = f"{percent(share)} of the samples, {point.instructions / sectors:.4g} per L1 sector"
        ET.SubElement(group, "title").text = f"{region_name(point)}: {spread}, {where}"
        line(group, (x, axes.y(height.high)), (x, axes.y(height.low)), "interval")
        size = {"r": f"{3 + 7 * share**0.5:.1f}", **_at(x, axes.y(height.expected))}
        ET.SubElement(group, "circle", {"class": "part", **size})


def _table(root: ET.Element, roofline: Roofline) -> None:
    """What the dots are, with their numbers."""
    top = BOTTOM + 64
    columns = (LEFT + 18, LEFT + 190, LEFT + 270, LEFT + 350, LEFT + 420)
    for x, title in zip(columns, ("level", "inst/txn", "GTXN/s", "peak", "use"), strict=True):
        text(root, x, top, title, "quiet" if x == columns[0] else "quiet right")
    for number, point in enumerate(roofline.points, start=1):
        y = top + _ROW * number
        group = ET.SubElement(root, "g", {"class": CLASS_OF[point.level]})
        ET.SubElement(group, "circle", {"class": "dot", **_at(LEFT + 6, y - 4), "r": "5"})
        peak = "-" if point.peak is None else gips(point.peak.value)
        cells = (point.level.value, f"{point.intensity:.4g}", gips(point.rate), peak, percent(point.use))
        for x, cell in zip(columns, cells, strict=True):
            text(root, x, y, cell, "cell" if x == columns[0] else "cell right")
    y = top + _ROW * (len(roofline.points) + 1)
    ET.SubElement(root, "circle", {"class": "open key", **_at(LEFT + 6, y - 4), "r": "5"})
    text(root, LEFT + 18, y, "loads, stores and atomics alone, beside the walls: dashed;", "quiet")
    y += _ROW
    width = min((access.width_bytes or 4 for access in roofline.accesses), default=4)
    text(root, LEFT + 18, y, f"{width} B is that of neighbouring values of {width} bytes", "quiet")
    if any(region.height is not None for region in roofline.regions):
        y += _ROW
        ET.SubElement(root, "circle", {"class": "part", **_at(LEFT + 6, y - 4), "r": "5"})
        text(root, LEFT + 18, y, "loops or lines at L1 sectors, height modelled from samples", "quiet")
