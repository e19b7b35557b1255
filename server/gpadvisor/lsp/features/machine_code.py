# SPDX-License-Identifier: Apache-2.0
"""The machine code of a kernel, beside the lines of today's text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.control_code import control_words
from gpadvisor.editor.show.words import EVIDENCE_WORDS
from gpadvisor.errors import UsageError
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.paths import file_path
from gpadvisor.lsp.protocol import SassFunction, SassParams, SassResult, SassRow
from gpadvisor.lsp.snapshot import Snapshot, View, local_files
from gpadvisor.model.finding import KernelView, SassInstruction, SassView


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SassQuestion:
    """The kernel that was asked for, and what a worker needs to know of it."""

    path: str  # of the file that shows it
    layer: PlacedLayer
    kernel: KernelView
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What its machine code is made of."""
        entry = self.layer.entry
        return json.dumps([entry.content, entry.key, self.arguments], sort_keys=True)


def sass_question(snapshot: Snapshot, view: View | None, params: SassParams) -> SassQuestion | SassResult:
    """The kernel that was asked for, a line's kernel, or the chosen one; else the answer why there is none.

    Raises:
        UsageError: the file has no such kernel.
    """
    path = file_path(params.uri)
    if path is None or not snapshot.may_read(path):
        return _nothing("the workspace is not trusted: nothing is disassembled")
    layer_and_kernel = None if view is None else _wanted(snapshot, view, params)
    if layer_and_kernel is None:
        return _nothing("nothing is known of this file: analyse it, or open a profile of it")
    layer, kernel = layer_and_kernel
    origin = layer.analysis.origin
    arguments = {
        **snapshot.job_arguments(origin),
        "root": str(snapshot.folder_of(path).path),
        "kernel": kernel.kernel,
        "trusted": snapshot.trusted,
        "launch": kernel.launch_index if layer.entry.is_profile else None,
        "model": "asked" if kernel.evidence.value == "modelled" else "none",
    }
    return SassQuestion(path=path, layer=layer, kernel=kernel, arguments=arguments)


def _wanted(snapshot: Snapshot, view: View, params: SassParams) -> tuple[PlacedLayer, KernelView] | None:
    """The layer and kernel that a request means."""
    candidates: list[tuple[PlacedLayer, KernelView]] = []
    for layer in view.layers:
        chosen = chosen_kernels(layer.analysis, snapshot.options(view.path))
        for kernel in layer.analysis.kernels:
            if params.kernel is not None and kernel.kernel == params.kernel.partition("@")[0]:
                return layer, kernel
            if kernel.kernel in chosen:
                candidates.append((layer, kernel))
    if params.kernel is not None:
        raise UsageError(f"no kernel {params.kernel} has lines in this file")
    if params.line is not None:
        for layer, kernel in candidates:
            if any(
                placed_line.line == params.line + 1 and placed_line.data.kernel == kernel.kernel
                for placed_line in layer.file.lines
            ):
                return layer, kernel
        above = [pair for pair in candidates if _start(pair) <= params.line + 1]
        if above:
            return max(above, key=_start)
    return candidates[0] if candidates else None


def _start(pair: tuple[PlacedLayer, KernelView]) -> int:
    """The line that a kernel of this file is defined on, today."""
    layer, kernel = pair
    if kernel.place is None or kernel.place.file != layer.file.path:
        return 0
    return layer.file.map.now(kernel.place.line)[0]


def machine_code(snapshot: Snapshot, layer: PlacedLayer, view: SassView) -> SassResult:
    """A kernel's rows, at today's lines."""
    uris = {name: snapshot.uri_of(path) for name, path in local_files(layer.entry).items()}
    files = {**layer.files, layer.file.path: layer.file}
    return SassResult(
        title=f"{view.name} ({view.arch}, {Path(layer.analysis.origin).name})",
        kernel=view.kernel,
        arch=view.arch,
        evidence=EVIDENCE_WORDS[view.evidence],
        functions=[SassFunction(name=name, row=row) for name, row in view.functions],
        rows=[_row(row, uris, files) for row in view.rows],
        truncated=view.truncated,
        message=None,
    )


def _row(row: SassInstruction, uris: dict[str, str], files: dict[str, PlacedFile]) -> SassRow:
    place = row.place
    # A line inside a header of the toolkit is not what the reader looks for: its call site is.
    if place is None or place.file not in uris:
        place = next((inlined for inlined in row.inline if inlined.file in uris), None)
    line = None
    if place is not None:
        file = files.get(place.file)
        line = (place.line if file is None else file.map.now(place.line)[0]) - 1
    return SassRow(
        address=row.pc,
        text=row.text,
        control=control_words(row),
        samples=row.samples,
        share=row.share,
        reason=row.reason,
        causes=row.caused,
        waits_for=row.waits_for,
        uri=None if place is None else uris[place.file],
        line=line,
    )


def _nothing(message: str) -> SassResult:
    return SassResult(
        title="", kernel=None, arch=None, evidence=None, functions=[], rows=[], truncated=0, message=message
    )
