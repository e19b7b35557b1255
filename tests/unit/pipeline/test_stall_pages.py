# SPDX-License-Identifier: Apache-2.0
"""Pages of stall reasons: one for each, found by every name it goes by, with rules that exist."""

from __future__ import annotations

import re

import pytest

from gpadvisor.errors import UsageError
from gpadvisor.model.stalls import KNOWN_REASONS
from gpadvisor.pipeline.rule_pages import find_rule
from gpadvisor.pipeline.stall_pages import explain, find_stall, stall_pages

HEADINGS = ("Why the hardware waits", "What helps", "What it is mistaken for", "Rules that answer it")


def test_every_known_reason_has_its_page_and_no_other() -> None:
    assert {page.name for page in stall_pages()} == set(KNOWN_REASONS)


@pytest.mark.parametrize("name", KNOWN_REASONS)
def test_the_page_has_all_parts_and_rules_that_exist(name: str) -> None:
    text = explain(name, "../rules/{code}-{slug}.md")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == HEADINGS
    for section in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert section.strip()
    links = re.findall(r"\[(GPA\d+)\]\(\.\./rules/(GPA\d+)-([a-z-]+)\.md\)", text)
    page = find_stall(name)
    assert page is not None
    assert [slug for _, _, slug in links] == list(page.rules)
    assert all(find_rule(slug).code == code == again for code, again, slug in links)


def test_no_two_pages_answer_to_one_name() -> None:
    names = [name for page in stall_pages() for name in (page.name, *page.also)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("Long Scoreboard", "long_scoreboard"),
        ("stall_long_sb", "long_scoreboard"),
        ("long-scoreboard", "long_scoreboard"),
        ("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued", "long_scoreboard"),
        ("smsp__pcsamp_warp_stall_math_pipe_throttle", "math_pipe_throttle"),
        ("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "lg_throttle"),
        ("Stall Not Selected", "not_selected"),
        ("stall_branch_resolve", "branch_resolving"),
        ("no_instruction", "no_instructions"),
        ("Stall Dispatch Stall", "dispatch_stall"),
        ("MIO Throttle", "mio_throttle"),
    ],
)
def test_names_of_other_tools_find_the_page(asked: str, name: str) -> None:
    page = find_stall(asked)
    assert page is not None
    assert page.name == name


def test_rules_are_explained_as_before() -> None:
    assert explain("gpa106").startswith("# GPA106 ")
    assert explain("strength-reduction").startswith("# GPA102 ")


@pytest.mark.parametrize("name", ["", "GPA999", "long_scorebored", "x" * 1_000_000, "_" * 300_000, "\x1b[2J"])
def test_what_is_neither_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match="no rule and no stall reason") as caught:
        explain(name)
    assert len(str(caught.value)) < 1000
    if name.startswith("long"):
        assert "did you mean long_scoreboard?" in str(caught.value)
