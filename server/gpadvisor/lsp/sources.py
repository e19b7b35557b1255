# SPDX-License-Identifier: Apache-2.0
"""When sources are compiled and disassembled: by content, the code first and a simulation later."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpadvisor.lsp.inputs import AnalysisAnswer, Inputs, read_result
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.publishing import Publisher
from gpadvisor.lsp.search import SourceState, source_state
from gpadvisor.lsp.settings import EditorSettings
from gpadvisor.lsp.snapshot import COMPILED, HEADERS, SOURCE, Folder, local_files
from gpadvisor.lsp.state import State


class Sources:
    """Analyses of sources."""

    def __init__(self, state: State, inputs: Inputs, publisher: Publisher) -> None:
        self._state, self._inputs, self._publisher = state, inputs, publisher

    def analyse(
        self, path: str, *, delay: float = 0.0, on_request: bool = False, model: bool = False
    ) -> asyncio.Task[None]:
        """Analyse a source as it is on disk; an older wish for the same source is given up."""
        work = self._analyse(path, delay=delay, on_request=on_request, model=model)
        return self._inputs.start(SOURCE + path, path, work)

    def analyse_open(self, path: str, delay: float = 0.0) -> None:
        """Look at the machine code of an open source, if the settings and the user's trust allow."""
        snapshot = self._state.now
        settings = snapshot.settings_of(path)
        on_save = settings.enable and settings.run == "onSave" and path.endswith(COMPILED)
        if path.endswith(HEADERS) and snapshot.users_of(path):
            return  # known through those
        if on_save and path in snapshot.documents and snapshot.may_read(path):
            self.analyse(path, delay=delay)

    async def _analyse(self, path: str, *, delay: float, on_request: bool, model: bool) -> None:
        if delay:
            await asyncio.sleep(delay)
        await self._inputs.all_looked()
        snapshot = self._state.now
        folder = snapshot.folder_of(path)
        kind = _model(folder.settings, on_request=model)
        arguments = {**snapshot.compile_arguments(path), "model": kind}
        state = await asyncio.to_thread(
            source_state, path, folder.path, json.dumps(arguments, sort_keys=True)
        )
        if state is None:
            return
        entry = self._state.now.entries.get(SOURCE + path)
        if entry is not None and entry.content == state.digest and not on_request:
            return
        result = None if on_request else self._inputs.remembered(state.digest)
        if result is None and entry is None and kind == "known":
            # What the code alone says is there long before the first simulation of an installation is.
            data = await self._run(path, folder, {**arguments, "model": "later"})
            result = await read_result(data)
            if data["models"]:
                self._show(path, result, replace(state, digest=""))
                result = None
        if result is None:
            result = await read_result(await self._run(path, folder, arguments))
        self._inputs.remember(state.digest, result)
        self._show(path, result, state)

    async def _run(self, path: str, folder: Folder, extra: dict[str, Any]) -> Any:
        arguments = {"path": path, "root": str(folder.path), **extra}
        seconds = folder.settings.analysis_timeout_seconds
        return await self._inputs.run("source", arguments, f"analysing {Path(path).name}", seconds)

    def _show(self, path: str, result: AnalysisAnswer, state: SourceState) -> None:
        analysis, launches = result
        entry = Entry(
            key=SOURCE + path,
            analysis=analysis,
            is_profile=False,
            age=0.0,
            content=state.digest,
            launches=launches,
        )
        self._state.set_includes(path, state.files | frozenset(local_files(entry).values()))
        self._publisher.analyses_changed(self._state.put(entry))


def _model(settings: EditorSettings, *, on_request: bool) -> str:
    """Which kernels are simulated."""
    if on_request:
        return "asked"
    return "known" if settings.analysis_model == "onSave" else "none"
