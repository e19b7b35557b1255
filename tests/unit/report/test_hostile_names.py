# SPDX-License-Identifier: Apache-2.0
"""Names from damaged reports in the tables of a terminal."""

from __future__ import annotations

import csv
import io
import re

from gpadvisor.advice.compare import Comparison
from gpadvisor.report.blame_table import BlameRow, render_blame_csv, render_blame_text
from gpadvisor.report.comparison import render_comparison_text
from gpadvisor.report.words import no_link

EVIL = "k\x1b[31m\x07\n\u202e"


def is_safe(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_a_comparison_prints_no_control_character() -> None:
    text = render_comparison_text(
        Comparison(kernels=(), only_before=(EVIL,), only_after=(EVIL,)), rows=None, width=80
    )
    assert is_safe(text)
    assert text.count("\n") == 3


def test_a_blame_table_prints_no_control_character() -> None:
    row = BlameRow(
        role="unattributed", use_pc=16, use=EVIL, use_line=EVIL, reason=EVIL, dependency_class=None,
        def_pc=None, definition=None, def_line=None, samples=1, latency=1, distance_instructions=None,
        registers=None, pruned_by=None, detail=EVIL, function=EVIL,
    )  # fmt: skip
    assert is_safe(render_blame_text(EVIL, [row], limit=None, width=80))


def test_a_blame_table_for_programs_is_no_formula_and_moves_no_cursor() -> None:
    row = BlameRow(
        role="blamed", use_pc=16, use="@!P0 BRA", use_line="=1+1", reason="-2", dependency_class=None,
        def_pc=None, definition="+x", def_line="@SUM(1)", samples=1, latency=1, distance_instructions=-1,
        registers=None, pruned_by=None, detail=EVIL, function=EVIL,
    )  # fmt: skip
    text = render_blame_csv([("=" + EVIL, [row])])
    assert is_safe(text)
    (cells,) = csv.DictReader(io.StringIO(text))
    assert cells["kernel"].startswith("'=k\\x1b")
    assert [cells[name] for name in ("use", "use_line", "reason", "definition", "def_line")] == [
        *("@!P0 BRA", "'=1+1", "'-2", "'+x", "'@SUM(1)")
    ]
    assert cells["distance_instructions"] == "-1"


def test_a_notification_has_no_link_and_no_line_of_its_own() -> None:
    """VS Code runs the command of a link in one; what it takes for a link stands in this expression."""
    link = re.compile(r"\[([^\]]+)\]\(((?:https?://|command:|file:)[^)\s]+)", re.IGNORECASE)
    names = [
        "[Fix](command:workbench.action.terminal.new)",
        "[a](file:///etc/passwd)",
        "[" * 99 + "](command:b)" * 99,
    ]
    for name in names:
        assert link.search(name)
        assert not link.search(no_link(f"{name}\n{EVIL}"))
        assert is_safe(no_link(name + EVIL))
    assert no_link("gemm [clone .1] (b) a[i]") == "gemm [clone .1] (b) a[i]"
