# SPDX-License-Identifier: Apache-2.0
"""What is planted in our kernels is found in their machine code before, at its line, and not after."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from typing import Any
from unittest import mock

import pytest
from tests.kernels import KERNELS, Which

from gpadvisor.cli import main

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm, pytest.mark.usefixtures("reads_here")]


def _first_of_each_kind() -> list[Any]:
    """Kernels of each kind of finding; those after the first are for validation.

    All of them are looked at on two architectures by fixtures/test_static_findings.py, which runs no command.
    """
    found, kinds = [], set()
    for name, kernel in KERNELS.items():
        if kernel.static:
            kind = (kernel.plants, kernel.wording)
            found.append(pytest.param(name, marks=[pytest.mark.validate] if kind in kinds else []))
            kinds.add(kind)
    return found


STATIC = _first_of_each_kind()


@functools.cache
def advise(name: str, which: Which) -> Any:
    """What the command says, asked once."""
    said = io.StringIO()
    with mock.patch.dict("os.environ", GPADVISOR_CACHE=""), contextlib.redirect_stdout(said):
        assert main(["advise", str(KERNELS[name].source(which)), "--format", "json"]) == 0
    return json.loads(said.getvalue())


def _found(answer: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [entry for kernel in answer["kernels"] for entry in kernel["suggestions"] if entry["code"] == code]


@pytest.mark.parametrize("name", STATIC)
def test_the_planted_pattern_is_found(name: str) -> None:
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
def test_it_is_gone_once_the_advice_is_followed(name: str) -> None:
    assert not _found(advise(name, "after"), KERNELS[name].plants)


@pytest.mark.parametrize("name", ["thermal_stencil", "flux_faces", "kmeans_assign", "cross_section"])
def test_a_hotspot_stands_on_a_planted_line(name: str) -> None:
    kernel = KERNELS[name]
    (entry,) = _found(advise(name, "before"), kernel.plants)
    lines = {
        place["line"]
        for hotspot in entry["hotspots"]
        for place in (hotspot["def"], hotspot["use"])
        if place is not None and place["file"].endswith("before.cu")
    }
    assert lines & {kernel.planted_line("def"), kernel.planted_line("use")}


def test_divisions_that_dram_hides_are_not_told() -> None:
    """They gained nothing where they were taken out."""
    assert not _found(advise("tensor_permute", "before"), KERNELS["tensor_permute"].plants)
