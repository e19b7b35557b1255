# SPDX-License-Identifier: Apache-2.0
"""The comment on a pull request: what it shows, and names that try to break out of it."""

from __future__ import annotations

import pytest

from gpadvisor.gate.baseline import Difference, Known
from gpadvisor.gate.comment import MAX_TEXT, comment_text, marker

KNOWN = Known(kernel="gemm", rule="GPA102", fingerprint="f", device="sm_80", file="a.cu", expected=1.25)
EVIL = "a`|</details>\n<script>|![x](https://x.example)\x1b[0m"


def difference(*new: Known) -> Difference:
    return Difference(new=new, known=(), fixed=(KNOWN,), elsewhere=("other",), not_comparable=())


def test_what_is_new_and_fixed() -> None:
    text = comment_text("fail", ["fail-on new is met"], difference(KNOWN), "gates here", ["advice here"])
    assert text.startswith("### gpadvisor: fail\n- fail-on new is met\n")
    assert "| New | GPA102 | `gemm` | `a.cu` | 1.25x |" in text
    assert "| Fixed | GPA102 |" in text
    assert "Not looked at here: `other`." in text
    assert text.index("gates here") < text.index("<details>") < text.index("advice here")


def test_names_stay_in_their_cells() -> None:
    evil = Known(kernel=EVIL, rule=EVIL, fingerprint="f", device="sm_80", file=EVIL)
    text = comment_text("fail", [EVIL], difference(evil), "", [])
    (row,) = [line for line in text.splitlines() if line.startswith("| New")]
    assert row.replace("\\|", "").count("|") == 6
    assert "<script>" not in text.replace("`", "") or "`" in row
    assert "\x1b" not in text
    assert all(not line.startswith("<") for line in text.splitlines())


def test_many_rows_are_counted_and_a_long_text_is_cut() -> None:
    text = comment_text("fail", [], difference(*[KNOWN] * 30), "", [])
    assert text.count("| New |") == 20
    assert "and 10 more" in text
    text = comment_text("pass", [], None, "", ["x" * (MAX_TEXT - 100)])
    assert "<details>" in text or "too long" in text
    assert len(comment_text("pass", ["y" * 2 * MAX_TEXT], None, "", ["x"])) <= MAX_TEXT


@pytest.mark.parametrize("name", ["", "a b", "-->", "a--b", "a\nb", "x" * 101])
def test_names_of_comments(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        marker(name)
    assert marker("gemm/nightly") == "<!-- gpadvisor:gemm/nightly -->"
