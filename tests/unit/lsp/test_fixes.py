# SPDX-License-Identifier: Apache-2.0
"""What is offered: each change once, for what gains most, and only where it changes the machine code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpadvisor.lsp.features.fixes import Offer, _each_once
from gpadvisor.lsp.server import Server
from gpadvisor.lsp.texts import Text
from gpadvisor.model.fix import Fix, FixKind, TextEdit

TEXT = "__global__ void k(float *p) {\n  *p = *p * 2.1;\n}\n"


def fix(new: str, *, code: str = "GPA102", column: int = 15, finding: str = "f") -> Fix:
    """Some text on the second line."""
    change = TextEdit(start_line=2, start_column=column, end_line=2, end_column=column, new_text=new)
    return Fix(
        id=f"{code}{new}{finding}", code=code, title=f"{code}: a change", kind=FixKind.QUICKFIX, file="k.cu",
        edits=(change,), needs_confirmation=False, reason=None, preferred=False, change="float_literals",
        line=2, first_line=2, last_line=2, finding=finding,
    )  # fmt: skip


def test_a_change_that_answers_two_findings_is_offered_for_the_first() -> None:
    best, other = fix("f", code="GPA202"), fix("f", code="GPA201", finding="g")
    disable = replace(other, change="disable", edits=(), id="disable")
    assert _each_once([best, other, disable]) == [best, disable]


@pytest.mark.asyncio
@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_what_leaves_the_machine_code_as_it_is_is_useless(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(TEXT, encoding="utf-8")
    session = Server().session
    session.state.now = replace(session.state.now, trusted=True)
    same, other, wrong = fix(" /* a remark */"), fix("f"), fix(" nonsense")
    offers = [
        Offer(fix=replace(one, file=str(path)), path=str(path), text=Text(TEXT), kernel=None, version=1)
        for one in (same, other, wrong)
    ]
    try:
        assert await session.fixes.useless(offers, 300) == {same.id, wrong.id}
        assert await session.fixes.useless(offers, 0) == {same.id, wrong.id}, "known, so nobody waits"
    finally:
        await session.close()
