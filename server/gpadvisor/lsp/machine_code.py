# SPDX-License-Identifier: Apache-2.0
"""The machine code of a kernel, beside the lines of today's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.control_code import control_words
from gpadvisor.editor.show.words import EVIDENCE_WORDS
from gpadvisor.errors import UsageError
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.progress import with_progress
from gpadvisor.lsp.protocol import SassFunction, SassParams, SassResult, SassRow
from gpadvisor.lsp.publishing import local_paths
from gpadvisor.lsp.workspace import View, file_path
from gpadvisor.model.finding import KernelView, SassInstruction, SassView
from gpadvisor.sandbox.codec import from_json

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session


async def machine_code(session: Session, asked: SassParams) -> SassResult:
    """The rows of the kernel that was asked for, of a line's kernel, or of the chosen one.

    Raises:
        GpadvisorError: it cannot be disassembled.
    """
    path = file_path(asked.uri)
    if path is None or not session.workspace.may_read(path):
        return _nothing("the workspace is not trusted: nothing is disassembled")
    view = await session.publisher.view(path)
    found = None if view is None else _wanted(session, view, asked)
    if found is None:
        return _nothing("nothing is known of this file: analyse it, or open a profile of it")
    layer, kernel = found
    folder = session.workspace.folder_of(path)
    origin = layer.analysis.origin
    arguments = {
        "path": origin,
        "root": str(folder.path),
        "kernel": kernel.kernel,
        "trusted": session.workspace.trusted,
        "launch": kernel.launch_index if layer.entry.is_profile else None,
        **session.analyses.compile_arguments(origin),
        "model": "asked" if kernel.evidence.value == "modelled" else "none",
    }
    key = json.dumps([layer.entry.content, layer.entry.key, arguments], sort_keys=True)
    shown = session.machine_code.get(key)
    if shown is None:
        data = await with_progress(
            session.server if session.client.progress else None,
            f"GPA: disassembling {kernel.name}",
            lambda said: session.workers.run(
                "sass", arguments, timeout_seconds=folder.settings.analysis_timeout_seconds, progress=said
            ),
        )
        shown = from_json(data, SassView)
        # Lines move while one types, and a client asks again: only their numbers are others then.
        session.machine_code = {key: shown}
    return _result(session, layer, shown, Path(origin).name)


def _wanted(session: Session, view: View, asked: SassParams) -> tuple[PlacedLayer, KernelView] | None:
    """The layer and kernel that a request means."""
    candidates: list[tuple[PlacedLayer, KernelView]] = []
    for layer in view.layers:
        shown = chosen_kernels(layer.analysis, session.workspace.options(view.path))
        for kernel in layer.analysis.kernels:
            if asked.kernel is not None and kernel.kernel == asked.kernel.partition("@")[0]:
                return layer, kernel
            if kernel.kernel in shown:
                candidates.append((layer, kernel))
    if asked.kernel is not None:
        raise UsageError(f"no kernel {asked.kernel} has lines in this file")
    if asked.line is not None:
        for layer, kernel in candidates:
            if any(
                one.line == asked.line + 1 and one.data.kernel == kernel.kernel for one in layer.file.lines
            ):
                return layer, kernel
        above = [pair for pair in candidates if _start(pair) <= asked.line + 1]
        if above:
            return max(above, key=_start)
    return candidates[0] if candidates else None


def _start(pair: tuple[PlacedLayer, KernelView]) -> int:
    """The line that a kernel of this file is defined on, today."""
    layer, kernel = pair
    if kernel.place is None or kernel.place.file != layer.file.path:
        return 0
    return layer.file.map.now(kernel.place.line)[0]


def _result(session: Session, layer: PlacedLayer, view: SassView, origin: str) -> SassResult:
    local = local_paths(layer)
    uris = {name: session.workspace.uri_of(path) for name, path in local.items()}
    files = {**layer.files, layer.file.path: layer.file}
    return SassResult(
        title=f"{view.name} ({view.arch}, {origin})",
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
        place = next((one for one in row.inline if one.file in uris), None)
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
