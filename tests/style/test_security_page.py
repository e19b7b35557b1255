# SPDX-License-Identifier: Apache-2.0
"""What docs/security.md says of each threat is there: the code that holds it, and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (_ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
][1:]


def test_there_are_threats() -> None:
    assert len(_ROWS) > 20


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0][:40])
def test_a_threat_has_code_that_holds_it_and_a_test(row: list[str]) -> None:
    threat, holds, tests = row
    assert threat
    named = re.findall(r"`([^`]+)`", tests)
    assert named
    for name in named:
        text = (_ROOT / name).read_text(encoding="utf-8")
        assert re.search(r"^(?:async )?def test_|^\s*(?:it|test)\(", text, re.MULTILINE), name
    for name in re.findall(r"`([\w./-]+\.(?:py|txt))`", holds):
        assert (_ROOT / "server" / "gpadvisor" / name).is_file() or (_ROOT / name).is_file(), name
