# SPDX-License-Identifier: Apache-2.0
"""What the views cost beside the advice they start from: ``python -m bench.views REPORT``, in one process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gpadvisor.__main__ import end, relax_collector
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.pipeline.advise import AdvisedKernel, advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.potential import shown_potential
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.roofline import shown_roofline
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.tree import shown_kernel, shown_tree
from gpadvisor.report.text import render_text
from gpadvisor.views.potential.formats import render_json as potential_json
from gpadvisor.views.roofline.formats import render_json as roofline_json
from gpadvisor.views.roofline.model import RegionKind
from gpadvisor.views.tree.formats import render_json as tree_json
from gpadvisor.views.tree.model import TreeView

Shown = TypeVar("Shown")


def costs(path: Path) -> dict[str, float]:
    """Seconds of this process's processor time: of the advice, and of each view of all kernels as JSON."""
    clock = _Clock()
    advised = advise_file(path, Request(settings=Settings()), lambda _: None, Cache(None))
    render_text(advised.advice)
    found = {"advice": clock.lap()}
    roofline_json(_each(advised.kernels, lambda one: shown_roofline(one, RegionKind.LOOP)), [])
    found["roofline"] = clock.lap()
    potential_json(_each(advised.kernels, shown_potential), [])
    found["potential"] = clock.lap()
    tree, metrics = shown_tree(_each(advised.kernels, shown_kernel), TreeView.TOP_DOWN)
    tree_json(tree, metrics, [])
    return {**found, "tree": clock.lap()}


class _Clock:
    def __init__(self) -> None:
        self._since = time.process_time()

    def lap(self) -> float:
        """Since the last one."""
        now = time.process_time()
        since, self._since = self._since, now
        return now - since


def _each(kernels: tuple[AdvisedKernel, ...], show: Callable[[AdvisedKernel], Shown]) -> list[Shown]:
    found = []
    for kernel in kernels:
        try:
            found.append(show(kernel))
        except ProfileMismatchError as error:
            print(error, file=sys.stderr)
    return found


if __name__ == "__main__":
    relax_collector()
    print(json.dumps(costs(Path(sys.argv[1]))))
    end(0)
