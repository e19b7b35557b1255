# SPDX-License-Identifier: Apache-2.0
"""Writes the rules' pages from their modules: ``make docs``; a test proves them current."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.workflow.rule_pages import all_rules, rule_metadata, rule_page

FOLDER = Path(__file__).resolve().parent

_RULES_INTRO = """\
# Rules

One page for each, the same text as `gpadvisor explain CODE`.
"""


def pages() -> dict[str, str]:
    """Every generated page by its path under ``docs``."""
    found = {"rules/README.md": _rule_index()}
    for rule in all_rules():
        found[f"rules/{rule.code}-{rule.slug}.md"] = rule_page(rule.code)
    return found


def _rule_index() -> str:
    rows = [
        f"| [{rule.code}]({rule.code}-{rule.slug}.md) | {rule.name} "
        f"| {rule.category.value.replace('_', ' ')} | {rule.summary} |"
        for rule in rule_metadata()
    ]
    return "\n".join(
        [_RULES_INTRO, "| code | rule | category | what it is |", "|---|---|---|---|", *rows, ""]
    )


def main() -> None:
    """Write every page, and remove pages of rules that are gone."""
    wanted = pages()
    for path in (FOLDER / "rules").glob("*.md"):
        if f"rules/{path.name}" not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
