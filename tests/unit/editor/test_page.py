# SPDX-License-Identifier: Apache-2.0
"""What the page shows of a file is what the other outputs say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import ROOT

from gpadvisor.cli import main
from gpadvisor.editor.contents.page import PageContents, page_contents
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.compare import compare_inputs
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.report.comparison import render_comparison_json
from gpadvisor.report.jsonformat import render_json

pytestmark = pytest.mark.usefixtures("reads_here")

DEMO = ROOT / "server" / "gpadvisor" / "cli" / "data" / "demo"


def _contents(*, sources: bool = True) -> PageContents:
    request = Request(settings=Settings(), root=DEMO.parent)
    return page_contents(DEMO, request, lambda _: None, Cache(None), sources=sources)


@pytest.fixture(scope="module")
def contents() -> PageContents:
    return _contents()


def _document(contents: PageContents) -> Any:
    return json.loads(json.dumps(contents.document, allow_nan=False))


def test_the_advice_is_that_of_the_json(contents: PageContents) -> None:
    assert _document(contents)["advice"] == json.loads(render_json(contents.advice))


def test_no_sample_is_lost(contents: PageContents) -> None:
    document = _document(contents)
    for kernel, advice in zip(document["kernels"], document["advice"]["kernels"], strict=True):
        code, samples = kernel["code"], advice["samples"]
        blame = code["blame"]
        assert sum(blame["samples"]) == samples["total"] > 0
        rows = len(code["address"])
        assert {len(code[name]) for name in ("text", "file", "line")} == {rows}
        assert all(-1 <= row < rows for row in (*blame["row"], *blame["cause"]))
        by = {True: 0, False: 0}
        for row, cause, count in zip(blame["row"], blame["cause"], blame["samples"], strict=True):
            if row >= 0 and cause >= 0:
                by[row == cause] += count
        assert by == {True: samples["self"], False: samples["blamed"]}


def test_lines_have_their_text(contents: PageContents) -> None:
    document = _document(contents)
    (file,) = (one for one in document["files"] if one["text"] is not None)
    number = document["files"].index(file)
    code = document["kernels"][0]["code"]
    lines = {line for at, line in zip(code["file"], code["line"], strict=True) if at == number}
    assert lines
    assert max(lines) <= len(file["text"].splitlines())


def test_sources_can_stay_at_home(contents: PageContents) -> None:
    source = next(one["text"] for one in _document(contents)["files"] if one["text"] is not None)
    assert source.splitlines()[-2] in json.dumps(_document(contents)).replace("\\n", "\n")
    assert not [one for one in _document(_contents(sources=False))["files"] if one["text"] is not None]


def test_view_writes_the_page_that_advise_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPADVISOR_CACHE", "")
    assert main(["view", "demo", "--no-open"]) == 0
    assert "wrote demo.html" in capsys.readouterr().err
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert main(["advise", "demo", "--format", "html"]) == 0
    assert capsys.readouterr().out == page
    data = re.search(r'id="gpadvisor-data">([^<]*)<', page)
    assert data is not None
    assert json.loads(data[1])["schema"] == "gpadvisor.page/1"


def test_a_page_is_of_one_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "demo", "demo", "--format", "html"]) == 2
    assert "one input" in capsys.readouterr().err


def test_an_earlier_profile_stands_beside_it_as_compare_has_it() -> None:
    request = Request(settings=Settings(), root=DEMO.parent)
    made = page_contents(DEMO, request, lambda _: None, Cache(None), before=(DEMO, request))
    document = _document(made)
    compared = document["compared"]
    expected = json.loads(
        render_comparison_json(compare_inputs(DEMO, request, DEMO, request, lambda _: None))
    )
    assert compared["before"] == DEMO.name
    for kernel, known in zip(compared["kernels"], expected["kernels"], strict=True):
        assert {name: kernel[name] for name in known if name != "lines"} == {
            name: value for name, value in known.items() if name != "lines"
        }
        advice = document["advice"]["kernels"][kernel["kernel"]]
        assert advice["name"] == kernel["after"]
        told = [one["code"] for one in advice["suggestions"] if one["speedup"] is not None]
        assert [one["code"] for one in kernel["predictions"]] == told
        assert kernel["lines"], "it has a line table"
        for line, of in zip(kernel["lines"], known["lines"], strict=True):
            assert of.items() <= line.items()
            file, number = line["place"]
            text = document["files"][file]["text"]
            assert number == line["after"]["line"]
            assert text is None or line["text"] == text.splitlines()[number - 1].strip()
        assert {at for line in kernel["lines"] for at in line["predicted"]} == set(range(len(told)))


def test_without_sources_compared_lines_have_no_text() -> None:
    request = Request(settings=Settings(), root=DEMO.parent)
    made = page_contents(DEMO, request, lambda _: None, Cache(None), sources=False, before=(DEMO, request))
    compared = _document(made)["compared"]
    assert {line["text"] for kernel in compared["kernels"] for line in kernel["lines"]} == {None}


def test_parts_of_the_kernel_and_turned_contexts_are_those_of_the_commands(
    contents: PageContents, capsys: pytest.CaptureFixture[str]
) -> None:
    (kernel,) = _document(contents)["kernels"]
    for name, region in (("regions", "loop"), ("lines", "line")):
        assert main(["roofline", str(DEMO), "--region", region, "--format", "json"]) == 0
        (printed,) = json.loads(capsys.readouterr().out)["kernels"]
        assert kernel["roofline"][name] == printed["regions"]
        assert sum(one["samples"] for one in printed["regions"]) == sum(
            one["samples"] for one in kernel["roofline"]["regions"]
        )
    shown = {"top-down": kernel["tree"]["rows"], **kernel["tree"]["turned"]}
    assert set(shown) == {"top-down", "bottom-up", "flat"}
    for view, rows in shown.items():
        assert main(["tree", str(DEMO), "--view", view, "--format", "json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert [row["name"] for row in rows] == [row["name"] for row in printed["rows"]]
        assert rows == printed["rows"]
