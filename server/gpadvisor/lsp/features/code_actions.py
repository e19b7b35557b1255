# SPDX-License-Identifier: Apache-2.0
"""Code actions: quick fixes for findings, folders of a missing header, and the rule's page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from lsprotocol import types as lsp

from gpadvisor.lsp import protocol
from gpadvisor.lsp.features.fixes import Offer, Read, fix_action
from gpadvisor.lsp.snapshot import Snapshot

Action: TypeAlias = lsp.CodeAction | lsp.Command
KINDS: Final = (lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite)


def fix_actions(
    snapshot: Snapshot,
    offers: Sequence[Offer],
    useless: Collection[str],
    found: Sequence[lsp.Diagnostic],
    read: Read,
) -> list[Action]:
    """Fixes in the order of the diagnostics, those last that only disable; ``useless`` are ids."""
    actions: list[Action] = []
    rank = {diagnostic.code: index for index, diagnostic in reversed(list(enumerate(found)))}
    for offer in sorted(offers, key=lambda one: (one.fix.change == "disable", rank.get(one.fix.code, 0))):
        diagnostics = [
            one for one in found if one.code == offer.fix.code and one.range.start.line == offer.fix.line - 1
        ]
        action = fix_action(snapshot, offer, diagnostics, read, useless=offer.fix.id in useless)
        actions += [] if action is None else [action]
    return actions


def header_actions(snapshot: Snapshot, found: Sequence[lsp.Diagnostic]) -> list[Action]:
    """Of a missing header: the setting for folders, which our client can open."""
    missing = [diagnostic for diagnostic in found if diagnostic.data]
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


def _rule_name(now: Snapshot, code: str) -> str:
    """As the findings have it; a client may still ask about one that is gone."""
    files = (file for entry in now.entries.values() for file in entry.analysis.files)
    known = next((one.name for file in files for one in file.findings if one.code == code), None)
    if known is not None:
        return known
    from gpadvisor.pipeline.rule_pages import find_rule  # noqa: PLC0415  # imports every rule

    return find_rule(code).name


def _by_code(diagnostics: Sequence[lsp.Diagnostic]) -> list[lsp.Diagnostic]:
    """One for each rule that has a page."""
    first = {
        diagnostic.code: diagnostic
        for diagnostic in reversed(diagnostics)
        if not str(diagnostic.code).startswith("GPA9")
    }
    return [one for one in diagnostics if first.get(one.code) is one]


def wanted(action: Action, only: Sequence[str] | None) -> bool:
    """Whether an action is of a kind that was asked for: ``refactor`` means ``refactor.rewrite``, too."""
    if not only or isinstance(action, lsp.Command):
        return True
    kind = str(getattr(action.kind, "value", action.kind))
    kinds = [str(getattr(one, "value", one)) for one in only]
    return any(not one or kind == one or kind.startswith(f"{one}.") for one in kinds)
