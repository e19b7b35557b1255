# SPDX-License-Identifier: Apache-2.0
"""The kernels and launches that a file can be coloured by, and choosing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.editor.show.choice import chosen_kernels, launches_of
from gpadvisor.editor.show.words import EVIDENCE_WORDS, file_name
from gpadvisor.errors import UsageError
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.protocol import KernelChoice
from gpadvisor.lsp.snapshot import Snapshot, View
from gpadvisor.model.figures import short_percent
from gpadvisor.model.finding import KernelView, LaunchView

_LAUNCH: Final = "@"
_MOST: Final = 200


def kernel_choices(snapshot: Snapshot, view: View | None) -> list[KernelChoice]:
    """What to pick from for a document, most GPU time first."""
    if view is None:
        return []
    choices: list[KernelChoice] = []
    for layer in view.layers:
        chosen = chosen_kernels(layer.analysis, snapshot.options(view.path))
        for kernel in layer.analysis.kernels:
            choices += _choices(layer, kernel, chosen=kernel.kernel in chosen)
    return choices[:_MOST]


def _choices(layer: PlacedLayer, kernel: KernelView, *, chosen: bool) -> list[KernelChoice]:
    origin = f"{EVIDENCE_WORDS[kernel.evidence]}, {file_name(layer.analysis.origin)}"
    share = "" if kernel.time_share is None else f"{short_percent(kernel.time_share)} of GPU time"
    launches = launches_of(layer.analysis, kernel)
    if not layer.entry.is_profile or len(launches) < 2:
        words = [word for word in (share, kernel.launch) if word]
        return [_choice(kernel, kernel.kernel, ", ".join(words), origin, chosen=chosen)]
    return [
        _choice(
            kernel,
            f"{kernel.kernel}{_LAUNCH}{launch.index}",
            ", ".join(word for word in (share, _launch(launch, launches)) if word),
            origin,
            chosen=chosen and launch.index == kernel.launch_index,
        )
        for launch in launches
    ]


def _choice(kernel: KernelView, key: str, description: str, detail: str, *, chosen: bool) -> KernelChoice:
    return KernelChoice(kernel=key, name=kernel.name, description=description, detail=detail, chosen=chosen)


def _launch(launch: LaunchView, launches: Sequence[LaunchView]) -> str:
    """A launch by its number among those of its kernel, as the lens has it."""
    number = sorted(view.index for view in launches).index(launch.index) + 1
    return f"launch {number} of {len(launches)}: {launch.label}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """What a key of ``kernel_choices`` stands for."""

    layer: PlacedLayer
    kernel: KernelView
    launch: int | None  # where it is another one than the layer shows


def chosen_kernel(view: View | None, key: str) -> Chosen:
    """The instantiation or launch that was picked.

    Raises:
        UsageError: the document has no such kernel.
    """
    name, _, index = key.partition(_LAUNCH)
    for layer in () if view is None else view.layers:
        for kernel in layer.analysis.kernels:
            if kernel.kernel == name:
                another_launch = index.isdigit() and int(index) != kernel.launch_index
                return Chosen(layer=layer, kernel=kernel, launch=int(index) if another_launch else None)
    raise UsageError(f"no kernel {name} has lines in this file; it was analysed again meanwhile: pick anew")
