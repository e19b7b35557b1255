# SPDX-License-Identifier: Apache-2.0
"""Quick fixes: what is asked of a worker, what is offered of its answer, and the edit that a client makes."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from lsprotocol import types as lsp

from gpadvisor.editor.place.placing import PlacedFinding, place_now
from gpadvisor.editor.show.diagnostics import rank
from gpadvisor.lsp import protocol
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.paths import resolved
from gpadvisor.lsp.protocol import FixCheckedParams
from gpadvisor.lsp.snapshot import SOURCES, Snapshot, View
from gpadvisor.lsp.texts import Text
from gpadvisor.model.finding import Finding, Freshness
from gpadvisor.model.fix import Fix, FixCheck, PatternState, TextEdit, apply_edits, fix_all
from gpadvisor.sandbox.codec import to_json

Read: TypeAlias = Callable[[str], str | None]
MAY_CHANGE: Final = "it may change results"
_ASKED: Final = 40
"""Findings of a kernel that fixes are looked for."""
_ASKED_LINES: Final = 24
"""Of a change, in the question whether to make it."""
_OUTCOMES: Final = {
    PatternState.GONE: "gone",
    PatternState.FEWER: "fewer",
    PatternState.STAYS: "remains",
    PatternState.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A fix with the text that it is for."""

    fix: Fix
    path: str
    text: Text
    kernel: str | None  # mangled, of the finding
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixQuestion:
    """What fixes are looked for."""

    view: View
    here: tuple[Finding, ...]  # on the lines that were asked about
    known: Mapping[str, Finding]  # of the whole file, by id
    arguments: Mapping[str, Any]


def fix_question(snapshot: Snapshot, view: View, first_line: int, last_line: int) -> FixQuestion | None:
    """What to look for of findings on lines from 1, and of all of their kernels; None of nothing.

    Lines that were edited since the profile get none.
    """
    if not snapshot.may_read(view.path):
        return None
    all_open = [
        (layer, placed) for layer in view.layers for placed in layer.file.findings if _is_open(placed)
    ]
    all_open.sort(key=lambda pair: rank(pair[1].finding))
    on_lines = [(layer, placed) for layer, placed in all_open if first_line <= placed.line <= last_line]
    if not on_lines:
        return None
    kernels = {placed.finding.kernel for _, placed in on_lines}
    to_fix = [pair for pair in all_open if pair[1].finding.kernel in kernels and _sure(pair[1])][:_ASKED]
    to_fix += [pair for pair in on_lines if pair not in to_fix and _sure(pair[1])]
    launches = {site: facts for layer, _ in to_fix for site, facts in layer.entry.launches.items()}
    arguments = {
        **snapshot.job_arguments(view.path),
        "text": view.text.source,
        "findings": to_json([_today(layer, placed) for layer, placed in to_fix]),
        "launches": to_json(launches),
        "disable": [
            [placed.line, [placed.finding.code], placed.finding.id] for _, placed in _first_of_each(on_lines)
        ],
        "roots": [str(folder.path) for folder in snapshot.folders.values()] or [str(Path(view.path).parent)],
    }
    return FixQuestion(
        view=view,
        here=tuple(placed.finding for _, placed in on_lines),
        known={placed.finding.id: placed.finding for _, placed in all_open},
        arguments=arguments,
    )


def offers_of(question: FixQuestion, fixes: Sequence[Fix]) -> list[Offer]:
    """Those for the lines that were asked about, then one for all of their kernel.

    A change that answers several findings is offered for the one that gains most.
    """
    ids = {finding.id for finding in question.here}
    chosen = _each_once([fix for fix in fixes if fix.finding in ids])
    for kernel, name in {finding.kernel: finding.kernel_name for finding in question.here}.items():
        of_kernel = {id_ for id_, finding in question.known.items() if finding.kernel == kernel}
        of_same_kernel = [fix for fix in fixes if fix.finding in of_kernel]
        combined = fix_all(_each_once(of_same_kernel), name)
        chosen += [] if combined is None else [combined]
    return [_offer(question, fix) for fix in chosen]


def _offer(question: FixQuestion, fix: Fix) -> Offer:
    finding = None if fix.finding is None else question.known.get(fix.finding)
    kernel, view = None if finding is None else finding.kernel, question.view
    return Offer(fix=fix, path=view.path, text=view.text, kernel=kernel, version=view.version)


def check_arguments(snapshot: Snapshot, offer: Offer) -> dict[str, Any]:
    """What a worker is told that compiles a text with and without a fix."""
    return {
        **snapshot.job_arguments(offer.path),
        "text": offer.text.source,
        "fix": to_json(offer.fix),
        "kernel": offer.kernel,
        "units": [path for path in snapshot.users_of(offer.path) if path.endswith(SOURCES)],
    }


def fix_action(
    snapshot: Snapshot,
    offer: Offer,
    diagnostics: Sequence[lsp.Diagnostic],
    read: Read,
    *,
    useless: bool = False,
) -> lsp.CodeAction | lsp.Command | None:
    """A code action; one that may change results asks first, by our client or by a message.

    None for a useless one that is not shown. ``read`` has the text of a file that no editor has open.
    """
    client, fix = snapshot.client, offer.fix
    edits = bool(fix.edits) and fix.flag is None
    direct = edits and not fix.needs_confirmation
    name = protocol.CHECK_FIX if direct else protocol.APPLY_FIX
    if useless and not client.disabled_actions:
        return None
    arguments: list[object] = [snapshot.uri_of(offer.path), fix.id]
    if not client.action_literals:
        name = protocol.APPLY_FIX
    elif fix.needs_confirmation and edits and client.own:
        name = protocol.CLIENT_APPLY_FIX
    if fix.needs_confirmation and edits and client.own:
        arguments += [fix.title, f"{fix.reason or MAY_CHANGE}\n\n{_difference(offer, read)}"]
    command = lsp.Command(title=fix.title, command=name, arguments=arguments)
    if not client.action_literals:
        return command
    kind = lsp.CodeActionKind(fix.kind.value)
    if useless:
        disabled = lsp.CodeActionDisabled(reason="no effect: the machine code stays the same")
        return lsp.CodeAction(
            title=f"{fix.title}: no effect",
            kind=kind,
            diagnostics=list(diagnostics) or None,
            disabled=disabled,
        )
    return lsp.CodeAction(
        title=fix.title,
        kind=kind,
        diagnostics=list(diagnostics) or None,
        is_preferred=True if fix.preferred and client.preferred_actions else None,
        edit=workspace_edit(snapshot, offer, read) if direct else None,
        command=command if fix.checkable or not direct else None,
    )


def workspace_edit(snapshot: Snapshot, offer: Offer, read: Read) -> lsp.WorkspaceEdit:
    """The edit in the client's units; versioned where the client knows versions."""
    fix, path = offer.fix, resolved(offer.fix.file)
    text = offer.text if path == offer.path else Text(read(path) or "")
    edits = [_text_edit(snapshot, edit, text) for edit in fix.edits]
    uri = snapshot.uri_of(path)
    if not snapshot.client.versioned_edits:
        return lsp.WorkspaceEdit(changes={uri: edits})
    version = offer.version if path == offer.path else None
    document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
    return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(document, edits)])


def _text_edit(snapshot: Snapshot, edit: TextEdit, text: Text) -> lsp.TextEdit:
    start = text.units(edit.start_line - 1, edit.start_column, snapshot.encoding)
    end = text.units(edit.end_line - 1, edit.end_column, snapshot.encoding)
    return lsp.TextEdit(
        range=lsp.Range(
            start=lsp.Position(edit.start_line - 1, start), end=lsp.Position(edit.end_line - 1, end)
        ),
        new_text=edit.new_text,
    )


def outcome(checked: FixCheck) -> str:
    """What a check has come to, in a word of the protocol."""
    return _OUTCOMES[checked.pattern] if checked.compiles else "notCompiled"


def fix_checked(snapshot: Snapshot, offer: Offer, result: Any, text: str) -> FixCheckedParams:
    """What our client is told of a check; ``result`` is a word of the protocol."""
    return FixCheckedParams(
        uri=snapshot.uri_of(offer.path),
        line=max(offer.fix.line - 1, 0),
        code=offer.fix.code,
        title=offer.fix.title,
        outcome=result,
        text=text.removeprefix(f"{offer.fix.code}: "),
    )


def _difference(offer: Offer, read: Read) -> str:
    """The lines that a fix changes, as they are and as they would be."""
    path = resolved(offer.fix.file)
    before = offer.text.source if path == offer.path else read(path) or ""
    after = apply_edits(before, offer.fix.edits)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if line[:1] in "-+" and line[:3] not in {"---", "+++"}]
    words = textwrap.dedent("\n".join(line[1:] for line in changed)).split("\n")
    excerpt = [f"{line[0]} {text}" for line, text in zip(changed, words, strict=True)]
    return "\n".join([*excerpt[:_ASKED_LINES], *(["..."] if len(excerpt) > _ASKED_LINES else [])])


def _is_open(placed: PlacedFinding) -> bool:
    return placed.finding.suppressed is None


def _each_once(fixes: Sequence[Fix]) -> list[Fix]:
    """Of fixes that change the same the first."""
    first: dict[tuple[object, ...], Fix] = {}
    for fix in fixes:
        first.setdefault((fix.file, fix.edits, fix.flag, fix.change == "disable" and fix.id), fix)
    return list(first.values())


def _sure(placed: PlacedFinding) -> bool:
    """Whether the text on the line is what the finding is about."""
    return placed.freshness is not Freshness.EDITED


def _today(layer: PlacedLayer, placed: PlacedFinding) -> Finding:
    """A finding with the lines of today's text."""
    finding = placed.finding
    scope = finding.scope
    if scope is not None:
        scope = place_now(scope, {**layer.files, layer.file.path: layer.file})
    return replace(finding, line=placed.line, scope=scope)


def _first_of_each(
    placed: Sequence[tuple[PlacedLayer, PlacedFinding]],
) -> list[tuple[PlacedLayer, PlacedFinding]]:
    """One for each line and code."""
    earliest = {(finding.line, finding.finding.code): (layer, finding) for layer, finding in reversed(placed)}
    return list(earliest.values())
