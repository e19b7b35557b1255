# SPDX-License-Identifier: Apache-2.0
"""Colours of the picture, light and dark; each level is told by its place and its name too."""

from __future__ import annotations

from typing import Final

from gpadvisor.views.roofline.model import Level

CLASS_OF: Final = {
    Level.L1_TAGS: "tags",
    Level.L1_SECTORS: "sectors",
    Level.SHARED: "shared",
    Level.L2: "l2",
    Level.DRAM: "dram",
}

# Five hues that stay apart for the colour-blind (after Okabe and Ito), darker on white, lighter on black.
_LIGHT: Final = {
    "page": "#ffffff", "ink": "#1f2328", "quiet": "#59636e", "grid": "#e4e8ec", "wall": "#8c959f",
    "unit": "#57606a", "tags": "#b35900", "sectors": "#0062a3", "shared": "#00795a", "l2": "#a3478d",
    "dram": "#8a6d00", "part": "#0062a3",
}  # fmt: skip
_DARK: Final = {
    "page": "#1b1f24", "ink": "#e6edf3", "quiet": "#9da7b1", "grid": "#2d333b", "wall": "#768390",
    "unit": "#adbac7", "tags": "#ff9e4a", "sectors": "#6cb6ff", "shared": "#3fce9b", "l2": "#e29bd0",
    "dram": "#e3c341", "part": "#6cb6ff",
}  # fmt: skip


def _variables(colours: dict[str, str]) -> str:
    return "svg {" + "".join(f"--{name}:{value};" for name, value in colours.items()) + "}\n"


STYLE: Final = (
    _variables(_LIGHT)
    + "@media (prefers-color-scheme: dark) {"
    + _variables(_DARK)
    + "}\n"
    + "text {font: 13px system-ui, 'DejaVu Sans', sans-serif; fill: var(--ink)}\n"
    ".page {fill: var(--page)} .heading {font-size: 17px; font-weight: 600}\n"
    ".quiet, .tick {fill: var(--quiet)} .small, .tick {font-size: 11.5px} .right {text-anchor: end}\n"
    ".said {font-size: 12.5px} .middle {text-anchor: middle}\n"
    ".grid {stroke: var(--grid)} .frame {stroke: var(--quiet); fill: none}\n"
    ".wall {stroke: var(--wall); stroke-dasharray: 4 4; stroke-width: 1}\n"
    "text.wall-label {stroke: none; fill: var(--quiet)}\n"
    ".issue {stroke: var(--ink); stroke-width: 2.2} .maximum {stroke: var(--ink); stroke-width: .8}\n"
    ".maximum, .unit {stroke-dasharray: 7 4} .unit {stroke: var(--unit); stroke-width: 1.2}\n"
    ".leader {stroke: var(--quiet); stroke-width: .8; stroke-dasharray: none}\n"
    "g text {stroke: none} g text.halo {stroke: var(--page); stroke-width: 3; paint-order: stroke}\n"
    + "".join(
        f".{name} {{--level: var(--{name})}} .{name} text {{fill: var(--level)}}\n"
        for name in CLASS_OF.values()
    )
    + ".ceiling {stroke: var(--level); stroke-width: 1.8}\n"
    ".dot {fill: var(--level); stroke: var(--page); stroke-width: 1.2}\n"
    ".open {fill: var(--page); fill-opacity: .5; stroke: var(--level, var(--ink)); stroke-width: 2}\n"
    ".lost {stroke: var(--level); stroke-width: 1.4; stroke-dasharray: 2 3}\n"
    ".lanes {stroke: var(--level); stroke-width: 2}\n"
    ".part {fill: var(--part); fill-opacity: .22; stroke: var(--part); stroke-width: 1}\n"
    ".interval {stroke: var(--part); stroke-width: 1.4}\n"
)
