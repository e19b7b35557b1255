# SPDX-License-Identifier: Apache-2.0
"""Which kernels speak: of the instantiations of one template the one that was chosen, else the hottest."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.editor.show.options import Options
from gpadvisor.model.finding import EditorAnalysis, KernelView, LaunchView


def chosen_kernels(analysis: EditorAnalysis, options: Options) -> frozenset[str]:
    """Mangled names, one for each base name."""
    return frozenset(chosen(group, options).kernel for group in families(analysis))


def families(analysis: EditorAnalysis) -> tuple[tuple[KernelView, ...], ...]:
    """Kernels that are instantiations of one template, the hottest first."""
    groups: dict[tuple[str, str | None], list[KernelView]] = {}
    for kernel in analysis.kernels:
        key = kernel.base_name, None if kernel.place is None else kernel.place.file
        groups.setdefault(key, []).append(kernel)
    return tuple(tuple(sorted(group, key=_heat)) for group in groups.values())


def chosen(family: Sequence[KernelView], options: Options) -> KernelView:
    """The member that was chosen, else the hottest."""
    selected = options.chosen.get(family[0].base_name)
    return next((kernel for kernel in family if kernel.kernel == selected), family[0])


def launches_of(analysis: EditorAnalysis, kernel: KernelView) -> tuple[LaunchView, ...]:
    """The launches to choose from, longest first."""
    views = (launch for launch in analysis.launches if launch.kernel == kernel.kernel)
    return tuple(sorted(views, key=lambda launch: (-(launch.duration_ns or 0.0), launch.index)))


def _heat(kernel: KernelView) -> tuple[float, int, int, str]:
    return -(kernel.time_share or 0.0), -kernel.samples, -len(kernel.suggestions), kernel.name
