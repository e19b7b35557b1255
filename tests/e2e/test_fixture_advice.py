# SPDX-License-Identifier: Apache-2.0
"""What is planted in our kernels is found in their machine code before, at its line, and not after."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.kernels import KERNELS, Which

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]

STATIC = [name for name, kernel in KERNELS.items() if kernel.static]


@pytest.fixture
def advise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("GPADVISOR_CACHE", "")

    def run(name: str, which: Which) -> dict[str, Any]:
        code = main(["advise", str(KERNELS[name].source(which)), "--format", "json"])
        output = capsys.readouterr()
        assert code == 0, output.err
        answer: dict[str, Any] = json.loads(output.out)
        return answer

    return run


def _found(answer: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [entry for kernel in answer["kernels"] for entry in kernel["suggestions"] if entry["code"] == code]


@pytest.mark.parametrize("name", STATIC)
def test_the_planted_pattern_is_found(name: str, advise: Any) -> None:
    kernel = KERNELS[name]
    (entry,) = _found(advise(name, "before"), kernel.plants)
    assert entry["evidence"] == "static"
    assert entry["speedup"] is None
    if kernel.wording is not None:
        has, lacks = kernel.wording
        said = f"{entry['title']} {entry['advice']}" if "title" in entry else entry["advice"]
        assert has in said
        assert lacks not in said


@pytest.mark.parametrize("name", STATIC)
def test_it_is_gone_once_the_advice_is_followed(name: str, advise: Any) -> None:
    assert not _found(advise(name, "after"), KERNELS[name].plants)


@pytest.mark.parametrize("name", ["thermal_stencil", "tensor_permute", "kmeans_assign", "cross_section"])
def test_a_hotspot_stands_on_a_planted_line(name: str, advise: Any) -> None:
    kernel = KERNELS[name]
    (entry,) = _found(advise(name, "before"), kernel.plants)
    lines = {
        place["line"]
        for hotspot in entry["hotspots"]
        for place in (hotspot["def"], hotspot["use"])
        if place is not None and place["file"].endswith("before.cu")
    }
    assert lines & {kernel.planted_line("def"), kernel.planted_line("use")}
