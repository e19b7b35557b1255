# SPDX-License-Identifier: Apache-2.0
"""The pages of stall reasons: what the hardware waits for, what helps, what it is mistaken for."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from gpadvisor.errors import UsageError
from gpadvisor.model.stalls import KNOWN_REASONS
from gpadvisor.pipeline.rule_pages import all_rules, find_rule, rule_page

_MOST_LETTERS: Final = 200
"""Of a name that is asked for; metrics of Nsight Compute have some 80."""
_METRIC: Final = re.compile(
    r"^(smsp?__|sm__)?(pcsamp_|average_|group_)*(warps?_issue_|warp_)?(stalled_|stall_)?"
    r"|(_not_issued)?(_per_\w+)?(\.\w+)*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPage:
    """What is known of one stall reason."""

    name: str  # as CUPTI has it, "long_scoreboard"
    title: str
    also: tuple[str, ...]  # what others call it
    cause: str
    helps: tuple[str, ...]
    mistaken: tuple[str, ...]
    rules: tuple[str, ...]  # slugs of the rules that answer it

    def markdown(self, address: str | None = None) -> str:
        """The page.

        Args:
            address: of a rule's page, with ``{code}`` and ``{slug}``; without one rules are not links.
        """
        rules = []
        for slug in self.rules:
            rule = find_rule(slug)
            link = address and address.replace("{code}", rule.code).replace("{slug}", rule.slug)
            rules.append(f"[{rule.code}]({link}) {rule.name}" if link else f"{rule.code} {rule.name}")
        return "\n\n".join(
            (
                f"# {self.title}",
                f"`{self.name}`: {KNOWN_REASONS[self.name].plain}.",
                f"## Why the hardware waits\n\n{self.cause.strip()}",
                f"## What helps\n\n{_items(self.helps)}",
                f"## What it is mistaken for\n\n{_items(self.mistaken)}",
                f"## Rules that answer it\n\n{_items(rules or ['None: no rule knows a cure.'])}\n",
            )
        )


def _items(lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


@cache
def stall_pages() -> tuple[StallPage, ...]:
    """Every page, in the order of the list."""
    data = tomllib.loads(files("gpadvisor.report").joinpath("stalls.toml").read_text(encoding="utf-8"))
    return tuple(
        StallPage(
            name=name,
            title=document["title"],
            also=tuple(document["also"]),
            cause=document["cause"],
            helps=tuple(document["helps"]),
            mistaken=tuple(document["mistaken"]),
            rules=tuple(document["rules"]),
        )
        for name, document in data.items()
    )


def find_stall(name: str) -> StallPage | None:
    """The page of a stall reason by its name, by that of another tool, or by that of a metric."""
    by_name = {key: page for page in stall_pages() for key in (page.name, *page.also)}
    stall_name = re.sub(r"[\s-]+", "_", name[:_MOST_LETTERS].strip().lower())
    return by_name.get(stall_name) or by_name.get(_METRIC.sub("", stall_name))


def explain(name: str, address: str | None = None) -> str:
    """The page of a rule or of a stall reason, Markdown.

    Args:
        name: a rule's code or slug, or a stall reason.
        address: of rules' pages, for links from a stall reason to them.

    Raises:
        UsageError: nothing is called that.
    """
    stall_page = find_stall(name)
    if stall_page is not None:
        return stall_page.markdown(address)
    try:
        return rule_page(name)
    except UsageError:
        names = [*(page.name for page in stall_pages()), *(rule.slug for rule in all_rules())]
        close = difflib.get_close_matches(name[:_MOST_LETTERS].lower().replace(" ", "_"), names, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        reasons = ", ".join(page.name for page in stall_pages())
        raise UsageError(
            f"no rule and no stall reason is called '{name[:_MOST_LETTERS]}'; {hint}"
            f"'gpadvisor rules' lists the rules, the stall reasons are {reasons}"
        ) from None
