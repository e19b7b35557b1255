# SPDX-License-Identifier: Apache-2.0
"""The logarithmic axes of the picture and its few kinds of marks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

from gpadvisor.views.roofline.model import LANES, Roofline

WIDTH: Final = 1100
LEFT, RIGHT, TOP, BOTTOM = 70, 900, 74, 510
_GIGA: Final = 1e9
_LEAST_DECADES: Final = 2.0

Coordinates = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axes:
    """Ends of both axes: instructions per transaction, and warp instructions per second."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @property
    def top(self) -> float:
        """The upper end of the ordinate."""
        return self.y_high

    def x(self, value: float) -> float:
        """Place of an intensity."""
        part = math.log(max(value, self.x_low) / self.x_low) / math.log(self.x_high / self.x_low)
        return LEFT + min(1.0, max(0.0, part)) * (RIGHT - LEFT)

    def y(self, value: float) -> float:
        """Place of a height."""
        part = math.log(max(value, self.y_low) / self.y_low) / math.log(self.y_high / self.y_low)
        return BOTTOM - min(1.0, max(0.0, part)) * (BOTTOM - TOP)

    @property
    def angle(self) -> float:
        """Of a line of slope 1, in degrees as SVG turns."""
        across = (RIGHT - LEFT) / math.log(self.x_high / self.x_low)
        up = (BOTTOM - TOP) / math.log(self.y_high / self.y_low)
        return -math.degrees(math.atan2(up, across))


def axes_of(roofline: Roofline) -> Axes:
    """Axes that hold all walls, dots and the issue peak, with whole decades above."""
    xs = [1 / LANES, 1.0, *(point.intensity for point in roofline.points)]
    xs += [
        region.instructions / region.sectors
        for region in roofline.regions
        if region.sectors and region.height
    ]
    ys = [roofline.height]
    ys += [
        figure.value for figure in (roofline.issue_peak, roofline.issue_peak_maximum) if figure is not None
    ]
    lanes = roofline.lanes.predicated or roofline.lanes.active
    ys += [roofline.height * lanes.value] if lanes is not None and lanes.value else []
    ys += [
        end
        for region_point in roofline.regions
        if region_point.height
        for end in (region_point.height.low, region_point.height.high)
    ]
    ys += [
        intensity * point.rate
        for intensity in (roofline.global_intensity, roofline.shared_intensity)
        for point in roofline.points[:1]
        if intensity
    ]
    high = max(ys) * 1.4
    low = min(min(ys) / 2, high / 10**_LEAST_DECADES)
    return Axes(min(xs) / 1.5, max(max(xs) * 2, 30.0), low, high)


def grid(root: ET.Element, axes: Axes) -> None:
    """Lines of each decade with what they stand for, and the titles of both axes."""
    for value in _decades(axes.x_low, axes.x_high):
        line(root, (axes.x(value), TOP), (axes.x(value), BOTTOM), "grid")
        text(root, axes.x(value), BOTTOM + 18, f"{value:g}", "tick middle")
    for value in _decades(axes.y_low / _GIGA, axes.y_high / _GIGA):
        y = axes.y(value * _GIGA)
        line(root, (LEFT, y), (RIGHT, y), "grid")
        text(root, LEFT - 8, y + 4, f"{value:g}", "tick right")
    frame = {"x": str(LEFT), "y": str(TOP), "width": str(RIGHT - LEFT), "height": str(BOTTOM - TOP)}
    ET.SubElement(root, "rect", {"class": "frame", **frame})
    text(root, (LEFT + RIGHT) / 2, BOTTOM + 38, "warp instructions per memory transaction", "quiet middle")
    middle = (TOP + BOTTOM) / 2
    title = text(root, 20, middle, "1e9 warp instructions per second (GIPS)", "quiet middle")
    title.set("transform", f"rotate(-90 20 {middle})")


def _decades(low: float, high: float) -> Iterator[float]:
    first, highest = math.ceil(math.log10(low)), math.floor(math.log10(high))
    steps = (1, 2, 5) if highest - first < 2 else (1,)
    for power in range(first - 1, highest + 1):
        for step in steps:
            if low <= step * 10.0**power <= high:
                yield step * 10.0**power


def line(parent: ET.Element, start: Coordinates, end: Coordinates, kind: str) -> None:
    """A straight line."""
    ends = zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True)
    ET.SubElement(parent, "line", {"class": kind, **{name: f"{value:.1f}" for name, value in ends}})


def text(parent: ET.Element, x: float, y: float, words: str, kind: str) -> ET.Element:
    """A line of text."""
    element = ET.SubElement(parent, "text", {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}"})
    element.text = words
    return element
