# SPDX-License-Identifier: Apache-2.0
"""Results of NVIDIA's own rules as a report carries them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.model.profile import RuleResult
from gpadvisor.store.ncu import wire

_KINDS: Final = {1: "ok", 2: "optimization", 3: "warning", 4: "error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a rule."""

    text: str
    title: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule with what it said about a launch; most rules say nothing about most launches."""

    identifier: str
    name: str
    section: str | None
    messages: tuple[Message, ...]


def parse_rule(encoded: bytes) -> Rule:
    """Decode one rule result."""
    fields = wire.parse(encoded)
    messages: list[Message] = []
    for body in wire.blobs(fields, 3):
        for item in wire.blobs(wire.parse(body), 1):
            messages += [_message(message) for message in wire.blobs(wire.parse(item), 1)]
    identifier = wire.text(fields, 1) or ""
    return Rule(
        identifier=identifier,
        name=wire.text(fields, 2) or identifier,
        section=wire.text(fields, 4) or None,
        messages=tuple(messages),
    )


def _message(encoded: bytes) -> Message:
    fields = wire.parse(encoded)
    kind = wire.integer(fields, 2) or 0
    return Message(
        text=wire.text(fields, 1) or "", title=wire.text(fields, 4) or "", kind=_KINDS.get(kind, "none")
    )


def rule_results(rule: Rule) -> list[RuleResult]:
    """One result per message."""
    return [
        RuleResult(
            identifier=rule.identifier,
            name=rule.name,
            section=rule.section,
            kind=message.kind,
            message=message.text,
            estimated_speedup=None,
        )
        for message in rule.messages
    ]
