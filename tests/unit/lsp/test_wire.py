# SPDX-License-Identifier: Apache-2.0
"""Our own messages and the values between worker and server, there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpadvisor.errors import UsageError
from gpadvisor.lsp.protocol import KernelChoice, KernelsParams, KernelsResult, SassParams
from gpadvisor.lsp.wire import from_wire, to_wire
from gpadvisor.model.advice import Estimate
from gpadvisor.model.finding import EditorAnalysis, FindingPart, Place, Related
from gpadvisor.model.profile import Evidence
from gpadvisor.sandbox.codec import from_json, to_json


def test_fields_travel_in_camel_case() -> None:
    choice = KernelChoice(kernel="_Z1kv", name="k", description="", detail="", chosen=True)
    assert to_wire(KernelsResult(choices=[choice])) == {
        "choices": [{"kernel": "_Z1kv", "name": "k", "description": "", "detail": "", "chosen": True}]
    }


def test_parameters_are_checked() -> None:
    assert from_wire({"uri": "file:///a", "line": 3}, SassParams) == SassParams(uri="file:///a", line=3)
    wrong: tuple[Any, ...] = ({}, {"uri": 1}, None, [], {"uri": "a", "line": "3"}, {"uri": "a", "line": True})
    for data in wrong:
        with pytest.raises(UsageError):
            from_wire(data, SassParams)
    assert from_wire({"uri": "a", "more": 1}, KernelsParams) == KernelsParams(uri="a")


def test_analyses_survive_the_pipe() -> None:
    estimate = Estimate(
        low=1.0, expected=1.2, high=float("inf"), paper=None, equation="Eq. 2", reasons=("no",)
    )
    part = FindingPart(
        kernel="k", kernel_name="k", samples=1, importance=0.5, speedup=estimate, program_speedup=None
    )
    related = Related(place=Place(file="a.cu", line=2), message="é")
    values = (part, related, Evidence.MEASURED)
    sent = json.loads(json.dumps(to_json(values)))
    assert from_json(sent, tuple[FindingPart, Related, Evidence]) == values
    with pytest.raises(Exception, match="EditorAnalysis"):
        from_json({}, EditorAnalysis)
