# SPDX-License-Identifier: Apache-2.0
"""Every feature of the language server, as an editor uses it, on a real report of one of our kernels."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from tests.kernels import KERNELS
from tests.lsp_client import Editor, editor, plain
from tests.lsp_projects import make_project, report_of

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.asyncio]

KERNEL = "thermal_stencil"
NAME = "kernel.cu"


def measured(found: list[lsp.Diagnostic]) -> bool:
    return any("[measured" in one.message for one in found)


def static(found: list[lsp.Diagnostic]) -> bool:
    return any("[static" in one.message for one in found)


def without_lines(message: str) -> str:
    """A message without the numbers of lines in it, which follow the text."""
    return re.sub(r"(\bline |\.cu:)\d+", r"\1N", message)


def line_of(text: str, words: str) -> int:
    return next(at for at, line in enumerate(text.splitlines()) if words in line)


def change_settings(one: Editor, settings: dict[str, object]) -> None:
    one.client.set_configuration({"gpadvisor": settings})
    one.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))


@pytest.fixture
def plain_project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", KERNEL)


asking = pytest.mark.asyncio(loop_scope="module")
"""Of tests that leave everything as it was, and share a server."""


@pytest_asyncio.fixture(name="one", scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """A source with its profile, whose findings are shown."""
    folder = tmp_path_factory.mktemp("opened") / "project"
    async with editor(make_project(folder, KERNEL, report=report_of(KERNEL))) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        yield one


@asking
async def test_diagnostics_of_a_profile(one: Editor) -> None:
    found = one.diagnostics(NAME)
    assert not static(found), "the profile has judged these lines"
    leading = [each for each in found if not each.message.startswith("Part of ")]
    wanted = next(each for each in leading if each.code == KERNELS[KERNEL].plants)
    planted = range(KERNELS[KERNEL].planted_line("def") - 3, KERNELS[KERNEL].planted_line("use") + 3)
    lines = [each.range.start.line for each in found if each.code == KERNELS[KERNEL].plants]
    assert any(line in planted for line in lines)
    assert wanted.source == "gpadvisor"
    assert wanted.severity is lsp.DiagnosticSeverity.Warning
    assert all(each.severity is not lsp.DiagnosticSeverity.Error for each in found)
    assert wanted.related_information
    assert {each.location.uri for each in wanted.related_information} == {one.uri(NAME)}
    assert re.match(r"\d+\.\d+x \(\S+\): Strength Reduction, \d+ % of samples: single ", wanted.message)
    assert wanted.message[:100].count(": ") == 2, "gain, cure and cause survive the cut of a list"
    assert {each.severity for each in found if each not in leading} <= {lsp.DiagnosticSeverity.Hint}
    assert wanted.data is not None
    assert wanted.code_description is not None
    page = Path(wanted.code_description.href.removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith(f"# {wanted.code}")
    versions = [each.version for each in one.published if each.uri == one.uri(NAME)]
    assert set(versions) == {1}


async def test_static_findings_without_a_profile(plain_project: Path) -> None:
    async with editor(plain_project) as one:
        one.open(NAME)
        found = await one.shown(NAME, static)
        severities = {each.severity for each in found if each.code == "GPA102"}
        assert lsp.DiagnosticSeverity.Information in severities, "it is seen in the list of problems"
        assert lsp.DiagnosticSeverity.Warning not in severities
        own = [each.message for each in found if each.code == "GPA102" and "Part of " not in each.message]
        assert own
        assert all(message.startswith("code only: ") for message in own)
        first, *ways = await one.lenses(NAME)
        assert "code only, no profile" in first.command.title
        commands = [one.command.command for one in ways]
        assert commands == ["gpadvisor.importProfile", "gpadvisor.modelFile"]


@asking
async def test_lens_hints_hover(one: Editor) -> None:
    found = one.diagnostics(NAME)
    lenses = await one.lenses(NAME)
    head = line_of(one.texts[NAME], "__global__")
    assert 1 <= len(lenses) <= 3
    assert {lens.range.start.line for lens in lenses} == {head}
    assert "of GPU time" in lenses[0].command.title
    hints = await one.hints(NAME)
    hot = {hint.position.line: hint for hint in hints}
    place = next(each.range.start.line for each in found if each.code == "GPA102")
    label = "".join(part.value for part in hot[place].label)
    assert "%" in label
    assert hot[place].position.character == len(one.texts[NAME].splitlines()[place])
    said = await one.hover(NAME, place)
    assert said is not None
    assert "Strength Reduction" in said
    assert "| stall | samples | waits for |" in said
    (page, *_) = re.findall(r"^\| \[[^]]+\]\(file://([^)]+)\) \|", said, re.MULTILINE)
    assert Path(page).read_text(encoding="utf-8").startswith("# ")
    assert len(said.splitlines()) <= 25
    assert await one.hover(NAME, 0) is None, "nothing where there is nothing"


@asking
async def test_hints_jump_to_the_cause(one: Editor) -> None:
    parts = [part for hint in await one.hints(NAME) for part in hint.label if part.location]
    assert parts
    assert {part.location.uri for part in parts} == {one.uri(NAME)}
    assert all(part.tooltip for part in parts)


@asking
async def test_heat_and_status(one: Editor) -> None:
    found = one.diagnostics(NAME)
    said = await one.status("idle")
    assert said["profile"].endswith("run.ncu-rep")
    assert said["evidence"] == "measured"
    assert said["device"] == "Test GPU"
    assert said["findings"] == sum(not each.message.startswith("Part of ") for each in found)
    assert said["staleShare"] == 0
    heat = plain(one.own["gpadvisor/heat"][-1])
    assert heat["uri"] == one.uri(NAME)
    assert heat["version"] == 1
    lines = {entry["line"]: entry for entry in heat["lines"]}
    hottest = max(lines.values(), key=lambda entry: entry["share"])
    assert hottest["level"] == max(entry["level"] for entry in lines.values())
    assert 0 < hottest["share"] <= 1
    assert not any(entry["stale"] for entry in lines.values())


async def test_edited_lines_dim_and_others_keep_their_numbers(project: Path) -> None:
    async with editor(project, settings={"run": "manual"}) as one:
        one.open(NAME)
        before = await one.shown(NAME, measured)
        # Three new lines above move everything.
        one.edit(NAME, "// one\n// two\n\n", lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
        wanted = [each.range.start.line + 3 for each in before]
        moved = await one.shown(NAME, lambda found: [each.range.start.line for each in found] == wanted)
        assert [without_lines(each.message) for each in moved] == [
            without_lines(each.message) for each in before
        ]
        assert [each.severity for each in moved] == [each.severity for each in before]
        assert one.published[-1].version == 2
        # An edit on one line dims that line's findings alone.
        place = next(each.range.start.line for each in moved if each.code == "GPA102")
        one.edit(NAME, "  /* edited */ 1 + ", lsp.Range(lsp.Position(place, 0), lsp.Position(place, 0)))
        dimmed = await one.shown(NAME, lambda found: any("edited since" in each.message for each in found))
        assert len([each for each in dimmed if each.code != "GPA902"]) == len(moved), "nothing is wiped"
        assert [each.range.start.line for each in dimmed if each.code == "GPA902"] == [place]
        gray = [each for each in dimmed if lsp.DiagnosticTag.Unnecessary in (each.tags or ())]
        assert {each.range.start.line for each in gray} == {place}
        assert all(each.severity is not lsp.DiagnosticSeverity.Warning for each in gray)
        await one.until(
            lambda: any(entry["stale"] for entry in plain(one.own["gpadvisor/heat"][-1])["lines"])
        )
        heat = plain(one.own["gpadvisor/heat"][-1])
        assert [entry["line"] for entry in heat["lines"] if entry["stale"]] == [place]
        await one.until(lambda: plain(one.own["gpadvisor/status"][-1])["staleShare"] > 0)


async def test_save_analyses_again(plain_project: Path) -> None:
    async with editor(plain_project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        await one.shown(NAME, static)
        one.edit(NAME, KERNELS[KERNEL].source("after").read_text(encoding="utf-8"))
        one.save(NAME)
        found = await one.shown(NAME, lambda all_: not any(each.code == "GPA102" for each in all_))
        assert not any(each.code == "GPA102" for each in found), "the pattern is gone from the machine code"


async def test_equal_content_is_not_analysed_twice(plain_project: Path) -> None:
    async with editor(plain_project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        await one.shown(NAME, static)
        await one.status("idle")
        count = len(one.own["gpadvisor/status"])
        one.save(NAME)
        await asyncio.sleep(1)
        states = [plain(each)["state"] for each in one.own["gpadvisor/status"][count:]]
        assert "busy" not in states[1:]
        before = one.texts[NAME]
        one.edit(NAME, before + "// more\n")
        one.save(NAME)
        await one.until(lambda: plain(one.own["gpadvisor/status"][-1])["state"] == "idle")
        information = await one.ask("gpadvisor/debugInformation")
        assert "kernel.cu" in information["markdown"]


async def test_a_new_profile_swaps_in_beside_its_prediction(project: Path) -> None:
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        watched = [each for each in one.registered if each.method == lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES]
        assert watched
        (project / "run.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=4e5, scale=2))
        event = lsp.FileEvent(uri=one.uri("run.ncu-rep"), type=lsp.FileChangeType.Changed)
        one.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
        statuses = one.own["gpadvisor/status"]
        await one.until(lambda: "promised" in plain(statuses[-1])["detail"])
        detail = plain(statuses[-1])["detail"]
        assert "2.50x of its old speed" in detail
    async with editor(project) as one:  # the old profile is gone, what came of its advice is not
        one.open(NAME)
        statuses = one.own.setdefault("gpadvisor/status", [])
        await one.until(lambda: statuses and "2.50x of its old speed" in plain(statuses[-1])["detail"])


async def test_of_two_profiles_the_newer_is_beside_the_predictions_of_the_older(project: Path) -> None:
    """Though it is read first."""
    (project / "later.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=4e5, scale=2))
    os.utime(project / "run.ncu-rep", (1e9, 1e9))
    async with editor(project) as one:
        one.open(NAME)
        statuses = one.own.setdefault("gpadvisor/status", [])
        await one.until(lambda: statuses and "2.50x of its old speed" in plain(statuses[-1])["detail"])


async def test_a_removed_profile_takes_its_findings_along(project: Path) -> None:
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        (project / "run.ncu-rep").unlink()
        event = lsp.FileEvent(uri=one.uri("run.ncu-rep"), type=lsp.FileChangeType.Deleted)
        one.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
        found = await one.shown(NAME, lambda all_: static(all_) and not measured(all_))
        assert found


async def test_headers_get_diagnostics_without_being_open(tmp_path: Path) -> None:
    project = make_project(
        tmp_path / "project", "lattice_energy", report=report_of("lattice_energy", source=False)
    )
    (header,) = (path.name for path in project.glob("*.cuh"))
    async with editor(project) as one:
        one.open(NAME)
        await one.until(lambda: bool(one.diagnostics(header)) or bool(one.diagnostics(NAME)))
        await one.status("idle")
        text = (project / header).read_text(encoding="utf-8")
        for each in one.diagnostics(header):
            assert each.range.start.line < len(text.splitlines())
            assert each.severity is not None


@asking
async def test_machine_code_beside_the_source(one: Editor) -> None:
    result = await one.ask("gpadvisor/sass", {"uri": one.uri(NAME)})
    assert result["message"] is None
    assert result["arch"] == "sm_80"
    rows = result["rows"]
    assert sum(row["samples"] for row in rows) > 0
    assert {row["uri"] for row in rows if row["uri"]} == {one.uri(NAME)}
    assert any(row["text"].startswith("F2F") for row in rows)
    last = len(one.texts[NAME].splitlines())
    assert all(0 <= row["line"] < last for row in rows if row["line"] is not None)
    blamed = [row for row in rows if row["waitsFor"] is not None]
    assert blamed
    assert result["functions"][0]["row"] == 0


async def test_overview_of_what_is_known(project: Path) -> None:
    (project / "cut.ncu-rep").write_bytes((project / "run.ncu-rep").read_bytes()[:2000])
    async with editor(project) as one:
        one.open(NAME)
        found = await one.shown(NAME, measured)
        told = one.own["gpadvisor/overviewChanged"]
        await one.until(lambda: plain(told[-1])["inputs"] == 3)  # two profiles, one source
        await one.status("idle", "error")
        entries = {each["name"]: each for each in (await one.ask("gpadvisor/overview", {}))["entries"]}
        (kernel,) = entries["run.ncu-rep"]["kernels"]
        first, *_ = kernel["findings"]
        await one.until(lambda: plain(told[-1])["best"] == first["gain"])  # told again as inputs are read
        assert (kernel["name"], first["code"]) == (KERNEL, KERNELS[KERNEL].plants)
        assert first["place"]["uri"] == one.uri(NAME)
        at = {each.range.start.line: each.message for each in found if each.code == first["code"]}
        assert at[first["place"]["line"]].startswith(f"{first['gainAndRange']}: {first['name']}, ")
        assert entries["cut.ncu-rep"]["error"]
        asked = {"uri": one.uri("run.ncu-rep")}
        assert (await one.ask("gpadvisor/overview", asked))["entries"] == [entries["run.ncu-rep"]]


async def test_two_profiles_line_by_line(project: Path) -> None:
    (project / "after.ncu-rep").write_bytes(report_of(KERNEL, duration_ns=5e5))
    async with editor(project) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        asked = {"before": one.uri("run.ncu-rep"), "after": one.uri("after.ncu-rep")}
        result = await one.ask("gpadvisor/compare", asked)
        changes = [each["changeNs"] for each in result["lines"]]
        assert all(change < 0 for change in changes), "every line takes half of its time"
        assert changes == sorted(changes)
        assert sum(changes) == pytest.approx(-5e5, rel=0.1)
        assert {each["uri"] for each in result["lines"]} == {one.uri(NAME)}
        hottest = result["lines"][0]["line"]
        one.edit(NAME, f"// new\n{one.texts[NAME]}")
        moved = await one.ask("gpadvisor/compare", asked)
        assert moved["lines"][0]["line"] == hottest + 1
        with pytest.raises(JsonRpcException, match="no file"):
            await one.ask("gpadvisor/compare", {**asked, "after": "untitled:a"})


@asking
async def test_kernels_to_pick_from(one: Editor) -> None:
    (choice,) = (await one.ask("gpadvisor/kernels", {"uri": one.uri(NAME)}))["choices"]
    assert choice["name"].startswith("thermal_stencil")
    assert choice["chosen"] is True
    picked = await one.execute("gpadvisor.server.selectKernel", one.uri(NAME), choice["kernel"])
    assert picked == choice["name"]
    with pytest.raises(JsonRpcException, match="pick anew"):
        await one.execute("gpadvisor.server.selectKernel", one.uri(NAME), "_Z4nonev")


async def test_fix_is_offered_applied_and_checked(plain_project: Path) -> None:
    async with editor(plain_project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        found = await one.shown(NAME, static)
        literal = line_of(one.texts[NAME], "2.0 *")
        place = next(each for each in found if each.range.start.line == literal)
        actions = await one.actions(NAME, place.range)
        titles = [action.title for action in actions]
        fix = next(action for action in actions if "float literal" in action.title)
        assert any("Disable for this line" in title for title in titles)
        assert "Explain Strength Reduction [GPA102]" in titles
        assert not [title for title in titles if title.startswith("GPA")], "words first, the code last"
        assert fix.edit is None, "it changes rounding: our client asks first, with the lines"
        assert fix.command.command == "gpadvisor.applyFix"
        uri, identity, question, lines = fix.command.arguments
        assert (uri, question) == (one.uri(NAME), fix.title)
        old, new = (line for line in lines.splitlines() if line[:1] in {"-", "+"})
        assert (old[0], new[0]) == ("-", "+")
        assert old[2:] == one.texts[NAME].splitlines()[literal].strip()
        assert new[2:] == old[2:].replace("2.0 ", "2.0f ")
        assert await one.execute("gpadvisor.server.applyFix", uri, identity, True) is True
        assert not one.asked, "not a second time"
        (change,) = one.applied[0].edit.document_changes
        assert change.text_document.version == 1
        await one.until(lambda: one.own.get("gpadvisor/fixChecked"))
        said = plain(one.own["gpadvisor/fixChecked"][-1])
        assert "F2F" in said["text"]
        assert said["outcome"] in {"gone", "fewer"}
        assert said["code"] == "GPA102"


async def test_disable_for_this_line(plain_project: Path) -> None:
    async with editor(plain_project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        found = await one.shown(NAME, static)
        place = next(each for each in found if each.code == "GPA102")
        actions = await one.actions(NAME, place.range)
        (disable,) = (each for each in actions if each.title == "Disable for this line [GPA102]")
        (change,) = disable.edit.document_changes
        (edit,) = change.edits
        assert "gpadvisor: ignore" in edit.new_text
        lines = one.texts[NAME].splitlines(keepends=True)
        line = edit.range.start.line
        text = lines[line]
        column, end = edit.range.start.character, edit.range.end.character
        lines[line] = text[:column] + edit.new_text + text[end:]
        one.edit(NAME, "".join(lines))
        one.save(NAME)
        at = place.range.start.line
        await one.shown(
            NAME,
            lambda all_: (
                static(all_)
                and not any(each.code == "GPA102" and each.range.start.line == at for each in all_)
            ),
        )


@asking
async def test_actions_honour_the_wanted_kinds(one: Editor) -> None:
    place = next(each.range for each in one.diagnostics(NAME) if each.code == "GPA102")
    assert await one.actions(NAME, place)
    context = lsp.CodeActionContext(diagnostics=[], only=[lsp.CodeActionKind.Source])
    params = lsp.CodeActionParams(one.document(NAME), place, context)
    assert not await one.client.text_document_code_action_async(params)


@asking
async def test_commands_say_what_is_wrong(one: Editor) -> None:
    with pytest.raises(JsonRpcException, match=r"open a \.cu file"):
        await one.execute("gpadvisor.server.analyzeFile", one.uri("run.ncu-rep"))
    with pytest.raises(JsonRpcException, match="needs the URI"):
        await one.execute("gpadvisor.server.analyzeFile")
    with pytest.raises(JsonRpcException, match="no file"):
        await one.execute("gpadvisor.server.importProfile", str(one.folder / "none.ncu-rep"))
    with pytest.raises(JsonRpcException, match=r"profile\.command is not set"):
        await one.execute("gpadvisor.server.profile", one.uri(NAME))
    with pytest.raises(JsonRpcException, match="no rule and no stall reason is called"):
        await one.execute("gpadvisor.server.explain", "GPA999")
    assert (await one.execute("gpadvisor.server.explain", "GPA102")).startswith("# GPA102")
    assert (await one.ask("gpadvisor/explain", {"code": "GPA102"}))["markdown"].startswith("# GPA102")
    assert "gpadvisor" in await one.execute("gpadvisor.server.doctor")


async def test_import_from_elsewhere(plain_project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.ncu-rep").write_bytes(report_of(KERNEL))
    async with editor(plain_project) as one:
        one.open(NAME)
        await one.shown(NAME, static)
        await one.execute("gpadvisor.server.importProfile", (tmp_path / "elsewhere" / "far.ncu-rep").as_uri())
        await one.shown(NAME, measured)


@asking
async def test_the_master_switch(one: Editor) -> None:
    assert await one.lenses(NAME)
    assert await one.execute("gpadvisor.server.toggleAnnotations") is False
    assert not await one.lenses(NAME)
    assert not await one.hints(NAME)
    await one.until(lambda: not plain(one.own["gpadvisor/heat"][-1])["lines"])
    assert measured(one.diagnostics(NAME))
    assert await one.execute("gpadvisor.server.toggleAnnotations") is True
    assert await one.lenses(NAME)
    await one.until(lambda: plain(one.own["gpadvisor/heat"][-1])["lines"])


async def test_rules_can_be_switched_off(project: Path) -> None:
    """By code, name and group; what names others leaves it as it is."""
    off: tuple[dict[str, object], ...] = (
        {"severity": {"GPA102": "off"}},
        {"severity": {"strength-reduction": "off"}},
        {"rules": {"ignore": ["GPA1"]}},
        {"rules.select": ["GPA2"]},
    )
    on: tuple[dict[str, object], ...] = (
        {"rules": {"ignore": ["GPA2"]}},
        {"rules.select": ["GPA1"]},
        {"severity": {"GPA202": "off"}},
    )

    def is_told(found: list[lsp.Diagnostic]) -> bool:
        return any(each.code == "GPA102" for each in found)

    async with editor(project, settings=off[0]) as one:

        def leading() -> int:
            return sum(not each.message.startswith("Part of ") for each in one.diagnostics(NAME))

        one.open(NAME)
        said = one.own.setdefault("gpadvisor/status", [])
        await one.until(lambda: said and plain(said[-1])["profile"] and plain(said[-1])["state"] == "idle")
        assert not is_told(one.diagnostics(NAME))
        assert plain(said[-1])["findings"] == leading()
        for switched_on, switched_off in zip(on, off[1:], strict=True):
            change_settings(one, switched_on)
            await one.shown(NAME, is_told)
            await one.until(lambda: plain(said[-1])["findings"] == leading())
            change_settings(one, switched_off)
            await one.shown(NAME, lambda found: not is_told(found))
            await one.until(lambda: plain(said[-1])["findings"] == leading())


@asking
async def test_a_changed_setting_takes_effect(one: Editor) -> None:
    def are_hints(found: list[lsp.Diagnostic]) -> bool:
        kinds = [each.severity for each in found if each.code == "GPA102"]
        return bool(kinds) and set(kinds) == {lsp.DiagnosticSeverity.Hint}

    before = [each.severity for each in one.diagnostics(NAME)]
    assert not are_hints(one.diagnostics(NAME))
    change_settings(one, {"severity": {"GPA102": "hint"}})
    await one.shown(NAME, are_hints)
    change_settings(one, {})
    await one.shown(NAME, lambda found: [each.severity for each in found] == before)


async def test_wrong_settings_cost_themselves_alone(project: Path) -> None:
    async with editor(project, settings={"report": {"maxPerFile": -1}, "stale": "wipe"}) as one:
        one.open(NAME)
        await one.shown(NAME, measured)
        texts = [each.message for each in one.client.messages]
        assert any("report.maxPerFile" in text for text in texts)
        assert any("gpadvisor.stale" in text for text in texts)


async def test_documents_that_are_no_files(project: Path) -> None:
    async with editor(project) as one:
        item = lsp.TextDocumentItem(uri="untitled:Untitled-1", language_id="cuda-cpp", version=1, text="x")
        one.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        document = lsp.TextDocumentIdentifier(item.uri)
        assert (
            await one.client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(0, 0))) is None
        )
        one.open(NAME)
        await one.shown(NAME, measured)
        assert {each.uri for each in one.published} == {one.uri(NAME)}


async def test_two_folders_have_their_own_settings(tmp_path: Path) -> None:
    first = make_project(tmp_path / "first", KERNEL, report=report_of(KERNEL))
    second = make_project(tmp_path / "second", KERNEL, report=report_of(KERNEL))
    async with editor(first, folders=[first, second]) as one:
        answers = {
            folder.as_uri(): {"severity": {"GPA102": severity}}
            for folder, severity in ((first, "information"), (second, "warning"))
        }
        one.client.get_configuration = lambda **where: answers.get(where["scope_uri"], {})
        one.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        other = Editor.uri.__get__(type("At", (), {"folder": second})())
        one.open(NAME)
        item = lsp.TextDocumentItem(other(NAME), "cuda-cpp", 1, (second / NAME).read_text())
        one.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

        def severity(found: Sequence[lsp.Diagnostic]) -> lsp.DiagnosticSeverity | None:
            return next((each.severity for each in found if each.code == "GPA102" and measured([each])), None)

        await one.until(
            lambda: severity(one.client.diagnostics.get(other(NAME), ())) is lsp.DiagnosticSeverity.Warning
        )
        await one.shown(NAME, lambda found: severity(found) is lsp.DiagnosticSeverity.Information)


@pytest.mark.parametrize(("name", "elsewhere"), [("vscode", False), ("neovim", False), ("vscode", True)])
async def test_a_file_that_is_in_no_open_folder(project: Path, name: str, elsewhere: bool) -> None:
    """A profile beside it and the settings count, whether another folder is open or none is.

    For a single file Neovim finds no root, and sends none.
    """
    (project.parent / "other").mkdir()
    settings = {"severity": {"GPA102": "warning", "GPA202": "off"}}
    folders = [project.parent / "other"] if elsewhere else []
    async with editor(project, name, settings=settings, folders=folders) as one:
        one.open(NAME)
        found = await one.shown(NAME, measured)
        severities = {each.code: each.severity for each in found}
        assert severities["GPA102"] is lsp.DiagnosticSeverity.Warning
        assert "GPA202" not in severities


async def test_closing_keeps_findings_in_the_text_on_disk(project: Path) -> None:
    async with editor(project, settings={"run": "manual"}) as one:
        one.open(NAME)
        before = await one.shown(NAME, measured)
        one.edit(NAME, "\n\n", lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)))
        first = before[0].range.start.line
        await one.shown(NAME, lambda found: bool(found) and found[0].range.start.line == first + 2)
        one.close(NAME)
        await one.shown(NAME, lambda found: bool(found) and found[0].range.start.line == first)
        assert one.published[-1].version is None


async def test_the_users_own_profile_command(plain_project: Path, tmp_path: Path) -> None:
    """A stand-in for a profiler: it writes the report that a profiler would have written."""
    (tmp_path / "taken.ncu-rep").write_bytes(report_of(KERNEL))
    command = ["cp", str(tmp_path / "taken.ncu-rep"), "${profile}.ncu-rep"]
    async with editor(plain_project, settings={"profile": {"command": command}}) as one:
        one.open(NAME)
        await one.shown(NAME, static)
        said = await one.execute("gpadvisor.server.profile", one.uri(NAME))
        assert said.endswith(".ncu-rep is shown")
        await one.shown(NAME, measured)
    failing = {"profile": {"command": ["sh", "-c", "echo no GPU here >&2; exit 3"], "onSave": True}}
    async with editor(plain_project, settings=failing) as one:
        one.open(NAME)
        with pytest.raises(JsonRpcException, match="ended with status 3: no GPU here"):
            await one.execute("gpadvisor.server.profile", one.uri(NAME))
        one.save(NAME)
        await one.until(lambda: any("no GPU here" in each.message for each in one.client.messages))


@pytest.mark.slow
async def test_models_where_the_launch_is_known_or_the_user_asks(plain_project: Path) -> None:
    async with editor(plain_project, settings={"analysis": {"model": "manual"}}) as one:
        one.open(NAME)
        await one.shown(NAME, static)
        with pytest.raises(JsonRpcException, match="no launch is known"):
            await one.execute("gpadvisor.server.modelFile", one.uri(NAME))
    launch = KERNELS[KERNEL].launch
    (plain_project / "gpadvisor.toml").write_text(
        f"[launches.{KERNELS[KERNEL].entry}]\ngrid = [4, 4]\nblock = {list(launch.block)}\n"
        "[launches.other]\ngrid = 1\nblock = 32\n",
        encoding="utf-8",
    )
    async with editor(plain_project) as one:
        one.open(NAME)
        found = await one.shown(NAME, lambda all_: any("[modelled" in each.message for each in all_))
        severities = {each.severity for each in found if "[modelled" in each.message}
        assert lsp.DiagnosticSeverity.Warning not in severities, "nobody measured it"
        (first, *_) = await one.lenses(NAME)
        assert "modelled, not measured" in first.command.title


async def test_a_saved_header_is_looked_at_through_its_users(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", "lattice_energy")
    (header,) = (path.name for path in project.glob("*.cuh"))
    async with editor(project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        await one.status("idle")
        one.open(header)
        seen = len(one.own["gpadvisor/status"])
        one.edit(header, one.texts[header] + "// more\n")
        one.save(header)
        await one.until(
            lambda: "busy" in [plain(each)["state"] for each in one.own["gpadvisor/status"][seen:]]
        )
        await one.status("idle")
