# SPDX-License-Identifier: Apache-2.0
"""Code actions: quick fixes for findings, folders of a missing header, and the rule's page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from lsprotocol import types as lsp

from gpadvisor.lsp import protocol
from gpadvisor.lsp.features.fixes import Offer, Read, fix_action
from gpadvisor.lsp.snapshot import Snapshot
from gpadvisor.model.finding import NoteCode

Action: TypeAlias = lsp.CodeAction | lsp.Command
_NOTES: Final = frozenset(NoteCode)
KINDS: Final = (lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite)


def fix_actions(
    snapshot: Snapshot,
    offers: Sequence[Offer],
    useless: Collection[str],
    of_file: Sequence[lsp.Diagnostic],
    read: Read,
) -> list[Action]:
    """Fixes in the order of the diagnostics, those last that only disable; ``useless`` are ids."""
    actions: list[Action] = []
    rank = {diagnostic.code: index for index, diagnostic in reversed(list(enumerate(of_file)))}
    for offer in sorted(
        offers, key=lambda offered: (offered.fix.change == "disable", rank.get(offered.fix.code, 0))
    ):
        diagnostics = [
            diagnostic
            for diagnostic in of_file
            if diagnostic.code == offer.fix.code and diagnostic.range.start.line == offer.fix.line - 1
        ]
        action = fix_action(snapshot, offer, diagnostics, read, useless=offer.fix.id in useless)
        actions += [] if action is None else [action]
    return actions


def header_actions(snapshot: Snapshot, diagnostics: Sequence[lsp.Diagnostic]) -> list[Action]:
    """Of a missing header: the setting for folders, which our client can open."""
    missing = [diagnostic for diagnostic in diagnostics if diagnostic.data]
    if not missing or not snapshot.client.own:
        return []
    command = lsp.Command(
        title="Set include folders",
        command=protocol.CLIENT_SETTINGS,
        arguments=["gpadvisor.analysis.flags"],
    )
    kind = lsp.CodeActionKind.QuickFix
    return [lsp.CodeAction(title=command.title, kind=kind, diagnostics=missing, command=command)]


def page_actions(snapshot: Snapshot, diagnostics: Sequence[lsp.Diagnostic]) -> list[Action]:
    """The page of each rule that has one."""
    return [_explain(snapshot, diagnostic) for diagnostic in _by_code(diagnostics)]


def _explain(snapshot: Snapshot, diagnostic: lsp.Diagnostic) -> Action:
    name = protocol.CLIENT_EXPLAIN if snapshot.client.own else protocol.EXPLAIN_COMMAND
    title = f"Explain {_rule_name(snapshot, str(diagnostic.code))} [{diagnostic.code}]"
    command = lsp.Command(title=title, command=name, arguments=[diagnostic.code])
    if not snapshot.client.action_literals:
        return command
    return lsp.CodeAction(
        title=command.title, kind=lsp.CodeActionKind.QuickFix, diagnostics=[diagnostic], command=command
    )


def _rule_name(snapshot: Snapshot, code: str) -> str:
    """As the findings have it; a client may still ask about one that is gone."""
    files = (file for entry in snapshot.entries.values() for file in entry.analysis.files)
    rule_name = next(
        (finding.name for file in files for finding in file.findings if finding.code == code), None
    )
    if rule_name is not None:
        return rule_name
    from gpadvisor.pipeline.rule_pages import find_rule  # noqa: PLC0415  # imports every rule

    return find_rule(code).name


def _by_code(diagnostics: Sequence[lsp.Diagnostic]) -> list[lsp.Diagnostic]:
    """One for each rule that has a page."""
    first = {
        diagnostic.code: diagnostic for diagnostic in reversed(diagnostics) if diagnostic.code not in _NOTES
    }
    return [diagnostic for diagnostic in diagnostics if first.get(diagnostic.code) is diagnostic]


def is_requested(action: Action, only: Sequence[str] | None) -> bool:
    """Whether an action is of a kind that was asked for: ``refactor`` means ``refactor.rewrite``, too."""
    if not only or isinstance(action, lsp.Command):
        return True
    kind = str(getattr(action.kind, "value", action.kind))
    kinds = [str(getattr(kind, "value", kind)) for kind in only]
    return any(not requested or kind == requested or kind.startswith(f"{requested}.") for requested in kinds)
