# SPDX-License-Identifier: Apache-2.0
"""Results of NVIDIA's own rules as a report carries them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.model.profile import RuleResult
from gpadvisor.store.ncu import wire

_KINDS: Final = {1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SPEEDUP_SCOPES: Final = {1: "local", 2: "global"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a rule."""

    text: str
    title: str
    kind: str
    speedup_percent: float | None  # share of the run time that the rule expects to save
    speedup_scope: str | None  # "global" (of the launch), "local" (of the unit the rule looks at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRule:
    """One rule with what it said about a launch; most rules say nothing about most launches."""

    identifier: str
    name: str
    section: str | None
    messages: tuple[Message, ...]


def parse_rule(encoded: bytes) -> ReportRule:
    """Decode one rule result."""
    fields = wire.parse(encoded)
    messages: list[Message] = []
    for body in wire.blobs(fields, 3):
        for encoded_item in wire.blobs(wire.parse(body), 1):
            item = wire.parse(encoded_item)
            percent, scope = _speedup(item)
            messages += [_message(message, percent, scope) for message in wire.blobs(item, 1)]
    identifier = wire.text(fields, 1) or ""
    return ReportRule(
        identifier=identifier,
        name=wire.text(fields, 2) or identifier,
        section=wire.text(fields, 4) or None,
        messages=tuple(messages),
    )


def _message(encoded: bytes, percent: float | None, scope: str | None) -> Message:
    fields = wire.parse(encoded)
    return Message(
        text=wire.text(fields, 1) or "",
        title=wire.text(fields, 4) or "",
        kind=_KINDS.get(wire.integer(fields, 2) or 0, "none"),
        speedup_percent=percent,
        speedup_scope=scope,
    )


def _speedup(item: wire.Fields) -> tuple[float | None, str | None]:
    encoded = wire.blob(item, 10)
    if encoded is None:
        return None, None
    fields = wire.parse(encoded)
    value = wire.blob(fields, 2)
    percent = wire.float64(value) if value is not None else None
    return percent, _SPEEDUP_SCOPES.get(wire.integer(fields, 1) or 0)


def _factor(percent: float | None) -> float | None:
    """A saved share of the run time as a speedup: 50 % saved is twice as fast."""
    return 1 / (1 - percent / 100) if percent is not None and 0 <= percent < 100 else None


def rule_results(rule: ReportRule) -> list[RuleResult]:
    """One result per message."""
    return [
        RuleResult(
            identifier=rule.identifier,
            name=rule.name,
            section=rule.section,
            kind=message.kind,
            message=message.text,
            estimated_speedup=_factor(message.speedup_percent),
            title=message.title or None,
            speedup_scope=message.speedup_scope,
        )
        for message in rule.messages
    ]
