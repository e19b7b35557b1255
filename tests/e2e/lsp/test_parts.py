# SPDX-License-Identifier: Apache-2.0
"""Files that are compiled in others, and for which GPU: headers, parts of sources, the profile's GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lsp_client import editor, plain
from tests.lsp_projects import make_project, report_of

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

PART = """\
__global__ void part(value *a, int n) {
    for (int i = 0; i < n; i++) a[i] = a[i] / 3.0 + 2.0 * a[n - i];
}
"""


@pytest.mark.parametrize(("name", "template"), [("part.cu", ""), ("part.cuh", "template <class value>\n")])
async def test_a_part_shows_what_its_source_makes_of_it(tmp_path: Path, name: str, template: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(template + PART)
    (tmp_path / "whole.cu").write_text(
        f'using value = float;\n#include "{name}"\nvoid run(float *a) {{ part<<<1, 32>>>(a, 9); }}\n'
    )
    async with editor(tmp_path, settings={"debounceMilliseconds": 0}) as one:
        one.open(name)
        found = await one.shown(name, lambda all_: any(each.code == "GPA102" for each in all_))
        place = next(each for each in found if each.code == "GPA102")
        assert place.range.start.line == 1 + bool(template)
        fix = next(
            action for action in await one.actions(name, place.range) if "float literal" in action.title
        )
        uri, identity, *_ = fix.command.arguments
        assert await one.execute("gpadvisor.server.applyFix", uri, identity, True) is True
        await one.until(lambda: one.own.get("gpadvisor/fixChecked"))
        assert plain(one.own["gpadvisor/fixChecked"][-1])["outcome"] in {"gone", "fewer"}


async def test_a_fix_is_checked_for_the_profiles_gpu(tmp_path: Path) -> None:
    project = make_project(tmp_path, "thermal_stencil", report=report_of("thermal_stencil"))
    async with editor(project, settings={"debounceMilliseconds": 0, "analysis": {"arch": "sm_75"}}) as one:
        one.open("kernel.cu")
        found = await one.shown("kernel.cu", lambda all_: any("[measured" in each.message for each in all_))
        place = next(each for each in found if each.code == "GPA102")
        fix = next(
            action
            for action in await one.actions("kernel.cu", place.range)
            if "float literal" in action.title
        )
        uri, identity, *_ = fix.command.arguments
        assert await one.execute("gpadvisor.server.applyFix", uri, identity, True) is True
        await one.until(lambda: one.own.get("gpadvisor/fixChecked"))
        assert "sm_80" in plain(one.own["gpadvisor/fixChecked"][-1])["text"]
