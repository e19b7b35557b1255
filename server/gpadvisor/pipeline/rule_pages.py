# SPDX-License-Identifier: Apache-2.0
"""The rules with their pages, by code or by name."""

from __future__ import annotations

import difflib
import inspect

from gpadvisor.errors import UsageError
from gpadvisor.estimators.context import Optimizer
from gpadvisor.estimators.run_facts import RunRule
from gpadvisor.report.sarif import RuleMetadata
from gpadvisor.rules import OPTIMIZERS, RUN_RULES


def all_rules() -> tuple[Optimizer | RunRule, ...]:
    """Every rule, of kernels and of runs, by code."""
    return tuple(sorted((*OPTIMIZERS, *RUN_RULES), key=lambda rule: rule.code))


def find_rule(name: str) -> Optimizer | RunRule:
    """The rule of a code or a name.

    Raises:
        UsageError: no rule has that code or name.
    """
    by_name = {key: rule for rule in all_rules() for key in (rule.code.lower(), rule.slug)}
    rule = by_name.get(name.lower().replace("_", "-"))
    if rule is None:
        close = difflib.get_close_matches(name.lower(), by_name, n=1)
        hint = f"did you mean {by_name[close[0]].code} ({by_name[close[0]].slug})? " if close else ""
        raise UsageError(f"no rule is called '{name}'; {hint}'gpadvisor rules' lists them all")
    return rule


def kind_of(rule: Optimizer | RunRule) -> str:
    """What a rule is about, in words."""
    return "host code" if isinstance(rule, RunRule) else rule.category.value.replace("_", " ")


def rule_page(name: str) -> str:
    """The page of a rule, Markdown.

    Raises:
        UsageError: no rule has that code or name.
    """
    rule = find_rule(name)
    return f"# {rule.code} {rule.name}\n\n{inspect.cleandoc(rule.document)}\n"


def rule_metadata(pages: str = "") -> tuple[RuleMetadata, ...]:
    """What SARIF says about each rule; ``pages`` is the address of the folder that has a page for each."""
    return tuple(
        RuleMetadata(
            code=rule.code,
            slug=rule.slug,
            name=rule.name,
            summary=inspect.cleandoc(rule.document).partition("\n")[0],
            help_markdown=inspect.cleandoc(rule.document),
            help_uri=f"{pages.rstrip('/')}/{rule.code}-{rule.slug}.md" if pages else None,
        )
        for rule in all_rules()
    )
