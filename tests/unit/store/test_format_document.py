# SPDX-License-Identifier: Apache-2.0
"""docs/profile-format.md names every table and column of the snapshot, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpadvisor.store.snapshot.tables import SCHEMAS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "profile-format.md"


@pytest.mark.parametrize("table", sorted(SCHEMAS))
def test_columns_are_documented(table: str) -> None:
    (row,) = re.findall(rf"^\| `{table}` \|[^|]*\| (.*) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row)))
    assert named == set(SCHEMAS[table])
