# SPDX-License-Identifier: Apache-2.0
"""Writes the rules' pages from their modules: ``make docs``; a test proves them current."""

from __future__ import annotations

import inspect
from pathlib import Path

from gpadvisor.estimators.context import Optimizer
from gpadvisor.workflow.rule_pages import all_rules, rule_page

FOLDER = Path(__file__).resolve().parent

_INTRODUCTION = """\
# Rules

One page for each, the same text as `gpadvisor explain CODE`.

| code | rule | category | what it is |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Every generated page by its path under ``docs``."""
    found = {"rules/README.md": _INTRODUCTION + "".join(_row(rule) for rule in all_rules())}
    for rule in all_rules():
        found[f"rules/{rule.code}-{rule.slug}.md"] = rule_page(rule.code)
    return found


def _row(rule: Optimizer) -> str:
    page = f"[{rule.code}]({rule.code}-{rule.slug}.md)"
    return f"| {page} | {rule.name} | {rule.category.value.replace('_', ' ')} | {_summary(rule)} |\n"


def _summary(rule: Optimizer) -> str:
    """What the first line of the page says between the name and the paper's section."""
    first = inspect.cleandoc(rule.document).partition("\n")[0]
    return first.partition(": ")[2].partition(" (GPA")[0].rstrip(".")


def main() -> None:
    """Write every page, and remove pages of rules that are gone."""
    wanted = pages()
    folder = FOLDER / "rules"
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if f"rules/{path.name}" not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
