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
    now: Snapshot,
    offers: Sequence[Offer],
    useless: Collection[str],
    found: Sequence[lsp.Diagnostic],
    read: Read,
) -> list[Action]:
    """Fixes in the order of the diagnostics, those last that only disable; ``useless`` are ids."""
    actions: list[Action] = []
    rank = {one.code: at for at, one in reversed(list(enumerate(found)))}
    for offer in sorted(offers, key=lambda one: (one.fix.change == "disable", rank.get(one.fix.code, 0))):
        own = [
            one for one in found if one.code == offer.fix.code and one.range.start.line == offer.fix.line - 1
        ]
        action = fix_action(now, offer, own, read, useless=offer.fix.id in useless)
        actions += [] if action is None else [action]
    return actions


def header_actions(now: Snapshot, found: Sequence[lsp.Diagnostic]) -> list[Action]:
    """Of a missing header: the setting for folders, which our client can open."""
    missing = [one for one in found if one.data]
    if not missing or not now.client.own:
        return []
    command = lsp.Command(
        title="Set include folders",
        command=protocol.CLIENT_SETTINGS,
        arguments=["gpadvisor.analysis.flags"],
    )
    kind = lsp.CodeActionKind.QuickFix
    return [lsp.CodeAction(title=command.title, kind=kind, diagnostics=missing, command=command)]


def page_actions(now: Snapshot, found: Sequence[lsp.Diagnostic]) -> list[Action]:
    """The page of each rule that has one."""
    return [_explain(now, one) for one in _by_code(found)]


def _explain(now: Snapshot, found: lsp.Diagnostic) -> Action:
    name = protocol.CLIENT_EXPLAIN if now.client.own else protocol.EXPLAIN_COMMAND
    title = f"Explain {_rule_name(now, str(found.code))} [{found.code}]"
    command = lsp.Command(title=title, command=name, arguments=[found.code])
    if not now.client.action_literals:
        return command
    return lsp.CodeAction(
        title=command.title, kind=lsp.CodeActionKind.QuickFix, diagnostics=[found], command=command
    )


def _rule_name(now: Snapshot, code: str) -> str:
    """As the findings have it; a client may still ask about one that is gone."""
    files = (file for entry in now.entries.values() for file in entry.analysis.files)
    known = next((one.name for file in files for one in file.findings if one.code == code), None)
    if known is not None:
        return known
    from gpadvisor.pipeline.rule_pages import find_rule  # noqa: PLC0415  # imports every rule

    return find_rule(code).name


def _by_code(found: Sequence[lsp.Diagnostic]) -> list[lsp.Diagnostic]:
    """One for each rule that has a page."""
    first = {one.code: one for one in reversed(found) if not str(one.code).startswith("GPA9")}
    return [one for one in found if first.get(one.code) is one]


def wanted(action: Action, only: Sequence[str] | None) -> bool:
    """Whether an action is of a kind that was asked for: ``refactor`` means ``refactor.rewrite``, too."""
    if not only or isinstance(action, lsp.Command):
        return True
    kind = str(getattr(action.kind, "value", action.kind))
    kinds = [str(getattr(one, "value", one)) for one in only]
    return any(not one or kind == one or kind.startswith(f"{one}.") for one in kinds)
