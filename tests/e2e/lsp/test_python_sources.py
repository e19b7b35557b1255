# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel's profile in an editor: findings attach to the Python file that its line table names."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp
from tests.lsp_client import Editor, editor, plain, recorded
from tests.ncu_writer import write_report
from tests.python_kernels import PYTHON_KERNELS, python_launch

from gpadvisor.lsp.capabilities import client_features

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

NAME = "blend.py"


def _project(folder: Path, *, source: bool = True) -> Path:
    folder.mkdir()
    (folder / NAME).write_bytes((PYTHON_KERNELS / NAME).read_bytes())
    (folder / "run.ncu-rep").write_bytes(write_report([python_launch("blend", source=source)]))
    return folder


def _measured(found: list[lsp.Diagnostic]) -> bool:
    return any("[measured" in one.message for one in found)


def _line(one: Editor, words: str) -> int:
    return next(at for at, line in enumerate(one.texts[NAME].split("\n")) if words in line)


def _places(found: list[lsp.Diagnostic]) -> set[tuple[object, int]]:
    return {(each.code, each.range.start.line) for each in found}


def _insert(one: Editor, line: int, column: int, text: str) -> None:
    """Type something; the editor's own copy of the text follows."""
    one.edit(NAME, text, lsp.Range(lsp.Position(line, column), lsp.Position(line, column)))
    lines = one.texts[NAME].split("\n")
    lines[line] = lines[line][:column] + text + lines[line][column:]
    one.texts[NAME] = "\n".join(lines)


@pytest.mark.parametrize("client", ["vscode", "neovim"])
async def test_advice_stands_in_the_python_file_and_follows_its_lines(client: str, tmp_path: Path) -> None:
    features = client_features(recorded(client))
    async with editor(_project(tmp_path / "project"), client, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME, language="python")
        found = await one.shown(NAME, _measured)
        hot = _line(one, "total +=")
        assert {each.code for each in found if each.range.start.line == hot} == {"GPA102"}
        assert "GPA202" not in {each.code for each in found}, "when to load is the compiler's affair here"
        assert all("[measured, fresh, Test GPU, " in each.message for each in found)
        assert {each.severity for each in found} <= {
            lsp.DiagnosticSeverity.Warning,
            lsp.DiagnosticSeverity.Information,
        }
        division = next(each for each in found if each.code == "GPA102")
        assert {each.location.uri for each in division.related_information} == {one.uri(NAME)}
        lenses = await one.lenses(NAME)
        assert {lens.range.start.line for lens in lenses} == {_line(one, "def blend(")}
        assert "100 % of GPU time" in lenses[0].command.title
        hints = {hint.position.line: hint for hint in await one.hints(NAME)}
        assert hints[hot].position.character == len(one.texts[NAME].split("\n")[hot])
        said = await one.hover(NAME, hot)
        assert said is not None
        assert ": Strength Reduction" in said
        await _lines_follow(one, found, hot)
        if features.own:
            await one.until(lambda: _stale_heat(one) == [hot + 1])
            sass = await one.ask("gpadvisor/sass", {"uri": one.uri(NAME)})
            assert {row["uri"] for row in sass["rows"] if row["uri"]} == {one.uri(NAME)}
        titles = str(one.client.progress_reports)
        assert "analysing blend.py" not in titles, "a Python file is not compiled"


def _stale_heat(one: Editor) -> list[int]:
    heat = plain(one.own["gpadvisor/heat"][-1])
    assert heat["uri"] == one.uri(NAME)
    return [entry["line"] for entry in heat["lines"] if entry["stale"]]


async def _lines_follow(one: Editor, found: list[lsp.Diagnostic], hot: int) -> None:
    """A line above moves all, an edit dims its own line; the save changes nothing about either."""
    _insert(one, 0, 0, "# one more\n")
    wanted = [each.range.start.line + 1 for each in found]
    await one.shown(NAME, lambda all_: [each.range.start.line for each in all_] == wanted)
    _insert(one, hot + 1, len("        total += "), "0.5 * ")

    def dimmed(all_: list[lsp.Diagnostic]) -> bool:
        here = [each for each in all_ if "[measured, edited since" in each.message]
        return bool(here) and {each.range.start.line for each in here} == {hot + 1}

    await one.shown(NAME, dimmed)
    one.save(NAME)
    one.close(NAME)
    one.open(NAME, language="python")
    after = await one.shown(NAME, dimmed)
    assert len([each for each in after if each.code != "GPA902"]) == len(found), "nothing is wiped"


@pytest.mark.parametrize("embedded", [True, False], ids=["source in the report", "source as first seen"])
async def test_disabled_lines_of_a_measured_python_kernel(embedded: bool, tmp_path: Path) -> None:
    async with editor(
        _project(tmp_path / "project", source=embedded), settings={"debounceMilliseconds": 0}
    ) as one:
        one.open(NAME, language="python")
        found = await one.shown(NAME, _measured)
        _insert(one, 0, 0, "# comments cover lines of today, findings those of the profile\n")
        await one.shown(NAME, lambda all_: all_ != found)
        hot = _line(one, "total +=")
        here = next(
            each for each in one.diagnostics(NAME) if (each.code, each.range.start.line) == ("GPA102", hot)
        )
        actions = await one.actions(NAME, here.range)
        disable = next(each for each in actions if each.title == "Disable for this line [GPA102]")
        (change,) = disable.edit.document_changes
        (edit,) = change.edits
        _insert(one, hot, edit.range.start.character, edit.new_text)
        one.save(NAME)
        await one.shown(NAME, lambda all_: ("GPA102", hot) not in _places(all_))
        assert "# gpadvisor: ignore[GPA102] " in one.texts[NAME]
        # A comment that silences nothing is said to.
        await one.status("idle")
        _insert(one, _line(one, "place = "), 4, "# gpadvisor: ignore[GPA203] no reason\n    ")
        one.save(NAME)
        unused = await one.shown(NAME, lambda all_: any(each.code == "GPA905" for each in all_))
        (note,) = (each for each in unused if each.code == "GPA905")
        assert "GPA203" in note.message
