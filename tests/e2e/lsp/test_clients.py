# SPDX-License-Identifier: Apache-2.0
"""Recorded clients: each gets what it announces, and nothing that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcMethodNotFound
from tests.kernels import KERNELS
from tests.lsp_client import CLIENTS, editor, recorded
from tests.lsp_projects import make_project, report_of

from gpadvisor.lsp.capabilities import client_features

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

KERNEL = "thermal_stencil"
NAME = "before.cu"
NAMES = sorted(path.stem for path in CLIENTS.glob("*.json"))


async def test_what_the_recorded_clients_announce() -> None:
    own = {name: client_features(recorded(name)) for name in NAMES}
    assert [name for name in NAMES if own[name].own] == ["vscode"]
    assert [name for name in NAMES if own[name].related_information] == ["neovim", "vscode"]
    assert [name for name in NAMES if own[name].hint_refresh] == ["neovim", "vscode"]
    assert [name for name in NAMES if own[name].lens_refresh] == ["vscode"]
    assert [name for name in NAMES if own[name].watches_files] == ["emacs", "helix", "vscode"]
    assert [name for name in NAMES if own[name].disabled_actions] == ["helix", "vscode"]
    assert [name for name in NAMES if not own[name].progress] == ["bare"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_client_gets_what_it_announces_and_no_more(name: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL), name=NAME)
    features = client_features(recorded(name))
    async with editor(project, name) as one:
        assert one.result is not None
        encodings = {"vscode": "utf-16", "bare": "utf-16", "emacs": "utf-32"}
        assert one.result.capabilities.position_encoding == encodings.get(name, "utf-8")
        text = (project / NAME).read_text(encoding="utf-8")
        planted = KERNELS[KERNEL].planted_line("def") - 1
        lines = text.splitlines(keepends=True)
        # Letters outside of ASCII before the expression: one, two or three units, by the encoding.
        at = lines[planted].index("const")
        lines[planted] = lines[planted][:at] + "/* é😋 */ " + lines[planted][at:]
        (project / NAME).write_text("".join(lines), encoding="utf-8")
        one.open(NAME)
        found = await one.shown(NAME, lambda all_: any("[measured" in each.message for each in all_))
        assert all(each.severity is not None for each in found)
        assert all((each.related_information is not None) <= features.related_information for each in found)
        if not features.related_information:
            assert any("before.cu:" in each.message for each in found)
        assert all(
            (each.code_description is not None) == features.code_description
            for each in found
            if not each.code.startswith("GPA9")
        )
        assert all((each.data is not None) == features.diagnostic_data for each in found)
        await _edits_and_answers(one, name, planted)
        if not features.own:
            assert one.own == {}, "no message of our own"
        assert (lsp.WORKSPACE_CODE_LENS_REFRESH in one.refreshed) == features.lens_refresh
        assert (lsp.WORKSPACE_INLAY_HINT_REFRESH in one.refreshed) == features.hint_refresh
        asked = {each.method for each in one.registered}
        assert (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES in asked) == features.watches_files
        assert bool(one.client.progress_reports) <= features.progress


async def _edits_and_answers(one: object, name: str, planted: int) -> None:
    features = client_features(recorded(name))
    lenses = await one.lenses(NAME)
    own = all(lens.command.command.startswith("gpadvisor.server.") for lens in lenses)
    assert own != features.own
    hints = await one.hints(NAME)
    assert hints
    hover = await one.hover(NAME, planted + 1)
    assert hover is not None
    if not features.markdown:
        assert "**" not in hover
    # The literal of the line below, which has not been touched.
    place = next(
        each.range
        for each in one.diagnostics(NAME)
        if each.code == "GPA102" and each.range.start.line == planted + 1
    )
    actions = await one.actions(NAME, place)
    fix = next(each for each in actions if "float literal" in each.title)
    if not features.action_literals:
        assert isinstance(fix, lsp.Command)
        return
    if features.own:
        assert fix.command.command == "gpadvisor.applyFix", "it asks itself"
        return
    # It changes rounding and asks first, by a message; Helix up to 25.07 knows none that is answered.
    assert fix.edit is None
    one.answer = _cannot_ask if name == "helix" else lambda _params: None
    assert await one.execute(fix.command.command, *fix.command.arguments) is False
    assert not one.applied
    if name == "helix":
        assert one.client.messages[-1].message.endswith("take it again to apply it")
    else:
        one.answer = lambda params: params.actions[0].title
    assert await one.execute(fix.command.command, *fix.command.arguments) is True
    (applied,) = one.applied
    assert (applied.edit.document_changes is not None) == features.versioned_edits
    edits = (
        applied.edit.changes[one.uri(NAME)]
        if applied.edit.changes
        else applied.edit.document_changes[0].edits
    )
    assert {edit.new_text for edit in edits} == {"f"}
    await one.until(lambda: any("GPA102" in each.message for each in one.client.messages))


def _cannot_ask(_params: object) -> None:
    raise JsonRpcMethodNotFound


async def test_columns_follow_the_agreed_encoding(tmp_path: Path) -> None:
    """The same expression behind the same letters, in the units of each client."""
    columns = {}
    for name in ("vscode", "neovim", "emacs"):
        project = make_project(tmp_path / name, KERNEL, name=NAME)
        text = (project / NAME).read_text(encoding="utf-8")
        planted = KERNELS[KERNEL].planted_line("def") - 1
        lines = text.splitlines(keepends=True)
        at = lines[planted].index("const")
        lines[planted] = lines[planted][:at] + "/* é😋 */ " + lines[planted][at:]
        (project / NAME).write_text("".join(lines), encoding="utf-8")
        async with editor(project, name) as one:
            one.open(NAME)
            found = await one.shown(NAME)
            columns[name] = next(
                each.range.start.character for each in found if each.range.start.line == planted
            )
    # é: 2, 1, 1 units; the face: 4, 2, 1.
    assert columns["neovim"] - columns["emacs"] == 4
    assert columns["vscode"] - columns["emacs"] == 1
