# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's rule results beside ours: disagreements in full, agreement in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.advice import KernelAdvice, RuleComparison
from gpadvisor.report.page import Page
from gpadvisor.report.words import shorten, without_links, wrap

MESSAGE: Final = 240
_AGREES: Final = "agrees"
_ORDER: Final = {"disagrees": 0, _AGREES: 1}


def rule_groups(comparisons: Sequence[RuleComparison]) -> list[list[RuleComparison]]:
    """Results of one rule with one answer together, disagreements first, what cannot be compared last."""
    groups: dict[tuple[str, str, str], list[RuleComparison]] = {}
    for comparison in comparisons:
        key = (comparison.rule.name, comparison.agreement, comparison.explanation)
        groups.setdefault(key, []).append(comparison)
    return sorted(groups.values(), key=lambda group: _ORDER.get(group[0].agreement, 2))


def rule_head(group: Sequence[RuleComparison]) -> str:
    """The rule, how often and how seriously it speaks, and whether ours says the same."""
    first = group[0]
    gain = f", {first.rule.estimated_speedup:.2f}x" if first.rule.estimated_speedup is not None else ""
    often = f", {len(group)} times" if len(group) > 1 else ""
    ours = f" {' '.join(first.ours)}" if first.ours else ""
    return f"{first.rule.name} ({first.rule.kind}{gain}{often}): {first.agreement}{ours}"


def rule_message(group: Sequence[RuleComparison]) -> str:
    """What the rule says, where it is not what ours says anyway."""
    rule = group[0].rule
    if group[0].agreement == _AGREES:
        return ""
    title = f"{rule.title}: " if rule.title else ""
    return shorten(without_links(title + rule.message), MESSAGE)


def rule_lines(page: Page, kernel: KernelAdvice) -> list[str]:
    """Every rule result of the report."""
    if not kernel.rules:
        return []
    lines = page.heading("NVIDIA's own rules beside ours")
    for group in rule_groups(kernel.rules):
        lines += wrap(rule_head(group), page.width, "   ", " ")
        if group[0].explanation:
            lines += wrap(group[0].explanation, page.width, "   ")
        message = rule_message(group)
        if message:
            lines += [page.style.quiet(line) for line in wrap(f'"{message}"', page.width, "   ")]
    return lines
