# SPDX-License-Identifier: Apache-2.0
"""Hot lines: how much of a kernel's samples each line has, as levels for colours, and as stops to jump to.

Of a kernel that was counted and not sampled, a line's share is that of the executed instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.options import Options, Stale
from gpadvisor.model.figures import short_percent
from gpadvisor.model.finding import EditorAnalysis, Freshness

LEVELS: Final = (0.01, 0.03, 0.10, 0.25, 0.50)
"""Shares from which on a line has level 1, 2, 3, 4 and 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotLine:
    """One line to colour."""

    line: int
    level: int  # 1 to len(LEVELS)
    share: float  # of the samples of the kernel that has the largest share here
    samples: int
    kernel_name: str
    freshness: Freshness

    @property
    def text(self) -> str:
        """What the share is of."""
        counted = "samples" if self.samples else "executed instructions"
        return f"{short_percent(self.share)} of the {counted} of `{self.kernel_name}`"


def heat(analysis: EditorAnalysis, file: PlacedFile, options: Options) -> tuple[HotLine, ...]:
    """The lines to colour, by line; samples of edited lines that fell on one line are added up."""
    chosen = chosen_kernels(analysis, options)
    names = {kernel.kernel: kernel.name for kernel in analysis.kernels}
    sums: dict[tuple[int, str], tuple[float, int, Freshness]] = {}
    for entry in file.lines:
        data = entry.data
        if data.kernel not in chosen or (options.stale is Stale.HIDE and entry.freshness is Freshness.EDITED):
            continue
        share, samples, freshness = sums.get((entry.line, data.kernel), (0.0, 0, entry.freshness))
        older = Freshness.EDITED if Freshness.EDITED in (freshness, entry.freshness) else freshness
        sums[entry.line, data.kernel] = share + data.share, samples + data.samples, older
    hottest: dict[int, HotLine] = {}
    for (line, kernel), (share, samples, freshness) in sums.items():
        number = level(share, options)
        if number and (line not in hottest or hottest[line].share < share):
            hottest[line] = HotLine(
                line=line,
                level=number,
                share=share,
                samples=samples,
                kernel_name=names.get(kernel, kernel),
                freshness=freshness,
            )
    return tuple(hottest[line] for line in sorted(hottest))


def level(share: float, options: Options) -> int:
    """0 below the threshold of the settings."""
    if share < options.heat_share:
        return 0
    return max(sum(1 for bound in LEVELS if share >= bound), 1)
