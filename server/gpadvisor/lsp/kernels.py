# SPDX-License-Identifier: Apache-2.0
"""The kernels and launches that a file can be coloured by, and choosing one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gpadvisor.editor.show.choice import chosen_kernels, launches_of
from gpadvisor.editor.show.words import EVIDENCE_WORDS, file_name, percent
from gpadvisor.errors import UsageError
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.protocol import KernelChoice
from gpadvisor.lsp.workspace import View, file_path
from gpadvisor.model.finding import KernelView, LaunchView

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session

_LAUNCH: Final = "@"
_MOST: Final = 200


async def kernel_choices(session: Session, uri: str) -> list[KernelChoice]:
    """What to pick from for a document, most GPU time first."""
    path = file_path(uri)
    view = None if path is None else await session.publisher.view(path)
    if view is None:
        return []
    found: list[KernelChoice] = []
    for layer in view.layers:
        shown = chosen_kernels(layer.analysis, session.workspace.options(view.path))
        for kernel in layer.analysis.kernels:
            found += _choices(layer, kernel, chosen=kernel.kernel in shown)
    return found[:_MOST]


def _choices(layer: PlacedLayer, kernel: KernelView, *, chosen: bool) -> list[KernelChoice]:
    origin = f"{EVIDENCE_WORDS[kernel.evidence]}, {file_name(layer.analysis.origin)}"
    share = "" if kernel.time_share is None else f"{percent(kernel.time_share)} of GPU time"
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
    number = sorted(one.index for one in launches).index(launch.index) + 1
    return f"launch {number} of {len(launches)}: {launch.label}"


async def choose_kernel(session: Session, uri: str, key: str) -> str:
    """Show an instantiation or a launch; its name.

    Raises:
        UsageError: the document has no such kernel.
    """
    path = file_path(uri)
    view = None if path is None else await session.publisher.view(path)
    name, _, index = key.partition(_LAUNCH)
    found = None if view is None else _find(view, name)
    if view is None or found is None:
        raise UsageError(
            f"no kernel {name} has lines in this file; it was analysed again meanwhile: pick anew"
        )
    layer, kernel = found
    session.show(session.workspace.choose(view.path, kernel.base_name, kernel.kernel))
    if index.isdigit() and int(index) != kernel.launch_index:
        await session.analyses.profile(layer.analysis.origin, launch=int(index))
    return kernel.name


def _find(view: View, name: str) -> tuple[PlacedLayer, KernelView] | None:
    for layer in view.layers:
        for kernel in layer.analysis.kernels:
            if kernel.kernel == name:
                return layer, kernel
    return None
