# SPDX-License-Identifier: Apache-2.0
"""What the status bar says of a document, and what to do next in each state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.status import (
    bar_words,
    elsewhere_words,
    nowhere_words,
    open_findings,
    stale_share,
    status,
)
from gpadvisor.editor.show.words import EVIDENCE_WORDS
from gpadvisor.lsp import protocol
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.protocol import NextStep, StatusParams, StatusState
from gpadvisor.lsp.snapshot import PROFILE, Snapshot, View

_BARS: Final[dict[StatusState, str]] = {
    "disabled": "GPA: off",
    "untrusted": "GPA: restricted",
    "busy": "GPA: analysing",
    "error": "GPA: failed",
    "noKernel": "GPA: no kernel here",
    "noProfile": "GPA: no profile",
}
_NOT_COMPILED: Final = "GPA: does not compile"
_ELSEWHERE: Final = "GPA: not in a profile"
_IMPORT: Final = NextStep(title="Import Profile", command=protocol.CLIENT_IMPORT_PROFILE, argument=None)
_PROFILE: Final = NextStep(title="Profile", command=protocol.CLIENT_PROFILE, argument=None)
_MODEL: Final = NextStep(title="Model", command=protocol.CLIENT_MODEL_FILE, argument=None)
_LOGS: Final = NextStep(title="Show Server Logs", command=protocol.CLIENT_SERVER_LOGS, argument=None)
_SETTINGS: Final = NextStep(
    title="Open Settings", command=protocol.CLIENT_SETTINGS, argument="gpadvisor.analysis"
)
_PROBLEMS: Final = NextStep(title="Show Problems", command=protocol.CLIENT_PROBLEMS, argument=None)
_FINDINGS: Final = NextStep(title="Show Findings", command=protocol.CLIENT_FINDINGS, argument=None)
_NUMBERS: Final = (_IMPORT, _PROFILE, _MODEL)
_NEXT: Final[dict[StatusState, tuple[NextStep, ...]]] = {
    "idle": (NextStep(title="Select Kernel", command=protocol.CLIENT_SELECT_KERNEL, argument=None), _IMPORT),
    "stale": (_PROFILE, _IMPORT),
    "busy": (NextStep(title="Stop", command=protocol.CLIENT_CANCEL, argument=None),),
    "error": (_SETTINGS, _LOGS),
    "noKernel": (_IMPORT,),
    "noProfile": _NUMBERS,
    "untrusted": (NextStep(title="Manage Trust", command=protocol.CLIENT_TRUST, argument=None),),
    "disabled": (
        NextStep(title="Open Settings", command=protocol.CLIENT_SETTINGS, argument="gpadvisor.enable"),
    ),
}


def status_of(snapshot: Snapshot, path: str, view: View | None, time: datetime) -> StatusParams:
    """The status of one document; a profile's age counts to ``at``."""
    options = snapshot.options(path)
    layer = view.layers[0] if view is not None and view.layers else None
    text, details, stale = "GPA", [], 0.0
    if layer is not None:
        files = [layer.file, *layer.files.values()]
        sentence = status(layer.analysis, files, time, layer.entry.history)
        text, details = sentence.text, list(sentence.details)
        stale = stale_share([layer.file]) or 0.0
    else:
        details = _nowhere(snapshot, path)
    error = snapshot.errors_of(path)
    kernels = () if layer is None else layer.analysis.kernels
    chosen = frozenset() if layer is None else chosen_kernels(layer.analysis, options)
    in_file = frozenset() if layer is None else {line.data.kernel for line in layer.file.lines}
    views = [kernel_view for kernel_view in kernels if kernel_view.kernel in chosen]
    kernel = next(
        (kernel_view for kernel_view in views if kernel_view.kernel in in_file), views[0] if views else None
    )
    is_profile = layer is not None and layer.entry.is_profile
    failed = (
        bool(error) and not is_profile
    )  # what a profile says holds for a source that does not compile, too
    state = _state(snapshot, path, stale=stale, has_layer=layer is not None, failed=failed)
    wrong = snapshot.complaints.get(path)
    compiles = wrong is None or not wrong.messages
    entries = [] if is_profile else list(_profiles(snapshot, path))
    elsewhere = elsewhere_words((entry.analysis for entry in entries), options)
    words = None if layer is None else bar_words(layer.analysis, layer.file, options)
    return StatusParams(
        state=state,
        uri=snapshot.uri_of(path),
        bar=_bar(state, words, compiles=compiles, profiles=bool(entries), elsewhere=elsewhere),
        text=text,
        detail="\n".join([*error, *details]),
        next=_next(state, is_profile=is_profile, compiles=compiles, elsewhere=bool(entries)),
        device=None if kernel is None else kernel.device or None,
        profile=layer.analysis.origin if layer is not None and is_profile else None,
        collected_at=None if layer is None else layer.analysis.collected_at,
        evidence=None if kernel is None else EVIDENCE_WORDS[kernel.evidence],
        kernel=None if kernel is None else kernel.name,
        findings=0
        if view is None
        else sum(len(open_findings(placed_layer.file, options)) for placed_layer in view.layers),
        stale_share=stale,
    )


def _nowhere(snapshot: Snapshot, path: str) -> list[str]:
    """Of profiles in the document's folder that are on no line of a file here."""
    sentences = [nowhere_words(profile.analysis) for profile in _profiles(snapshot, path)]
    return [sentence for sentence in sentences if sentence is not None]


def _profiles(snapshot: Snapshot, path: str) -> Iterator[Entry]:
    """The profiles in the document's folder."""
    key = f"{PROFILE}{snapshot.folder_of(path).path}"
    return (entry for entry in snapshot.entries.values() if entry.key.startswith(key))


def _state(snapshot: Snapshot, path: str, *, stale: float, has_layer: bool, failed: bool) -> StatusState:
    if not snapshot.settings_of(path).enable:
        return "disabled"
    if not snapshot.may_read(path):
        return "untrusted"
    if snapshot.busy:
        return "busy"
    if failed:
        return "error"
    if has_layer:
        return "stale" if stale else "idle"
    return "noKernel" if path in snapshot.without_kernels else "noProfile"


def _bar(
    state: StatusState, words: str | None, *, compiles: bool, profiles: bool, elsewhere: str | None
) -> str:
    """``words`` are of the layer, ``elsewhere`` of what profiles of the folder say of other files."""
    if state == "error" and not compiles:
        sentence = _NOT_COMPILED
    elif state == "noProfile" and profiles:
        sentence = _ELSEWHERE
    else:
        sentence = _BARS.get(state) or f"GPA: {words or ''}"
    return f"{sentence}; {elsewhere}" if elsewhere and state != "busy" else sentence


def _next(state: StatusState, *, is_profile: bool, compiles: bool, elsewhere: bool) -> list[NextStep]:
    steps = _NUMBERS if state == "idle" and not is_profile else _NEXT[state]
    problems = [_PROBLEMS] if state == "error" and not compiles else []
    findings = [_FINDINGS] if elsewhere and state in {"error", "noProfile", "noKernel"} else []
    return [*problems, *findings, *steps]
