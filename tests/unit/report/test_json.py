# SPDX-License-Identifier: Apache-2.0
"""The JSON report against its published schema, and the promises made about it."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
from tests import advice_values
from tests.schemas import published_schema

from gpadvisor.report.jsonformat import render_json

VALUES = ("measured", "suppressed", "without_lines", "static", "counted", "several", "hostile")


def document(name: str) -> Any:
    return json.loads(render_json(getattr(advice_values, name)()), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = published_schema("report", "advice")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", VALUES)
def test_output_validates(name: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(document(name))


def _objects(schema: Any) -> Any:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)


def test_schema_describes_every_field_and_allows_no_other() -> None:
    objects = list(_objects(published_schema("report", "advice")))
    assert len(objects) > 20
    for schema in objects:
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        for name, field in schema["properties"].items():
            assert field["description"].endswith("."), name
            assert {"type", "const", "enum", "anyOf", "$ref"} & set(field), name


def test_nullable_fields_say_when_they_are_null() -> None:
    for schema in _objects(published_schema("report", "advice")):
        for name, field in schema["properties"].items():
            nullable = "null" in field.get("type", ()) or {"type": "null"} in field.get("anyOf", ())
            assert ("null" in field["description"]) == nullable, name


def test_a_field_that_the_schema_does_not_know_is_refused(
    validator: jsonschema.Draft202012Validator,
) -> None:
    value = document("measured")
    value["kernels"][0]["suggestions"][0]["hotspots"][0]["def"]["column"] = 3
    assert not validator.is_valid(value)


def test_the_fields_the_users_of_the_format_rely_on() -> None:
    kernel = document("measured")["kernels"][0]
    assert kernel["launch"] | {"grid": [4096, 1, 1], "block": [256, 1, 1]} == kernel["launch"]
    assert (kernel["launch"]["index"], kernel["launch"]["shared_bytes"]) == (3, 4096)
    samples = kernel["samples"]
    assert samples["blamed"] + samples["self"] + samples["unattributed"] == samples["total"] == 12_034
    suggestion = kernel["suggestions"][1]
    assert suggestion["matched"] == {"samples": 6630, "latency": 6450}
    assert suggestion["speedup"]["paper"] == 1.62
    hotspot = suggestion["hotspots"][0]
    assert hotspot["class"] == "global_memory"
    assert hotspot["def"]["inline"] == [
        {"function": "load(const float *, int)", "file": advice_values.GATHER_FILE, "line": 10}
    ]
    assert suggestion["hotspots"][2]["def"] is None
    assert kernel["groups"][0]["suggestions"] == ["GPA201", "GPA202"]
    assert document("static")["kernels"][0]["launch"] is None
    assert document("static")["kernels"][0]["suggestions"][0]["speedup"] is None


def test_output_is_ascii_finite_and_the_same_every_time() -> None:
    first, second = (render_json(advice_values.hostile()) for _ in range(2))
    assert first == second
    assert first.isascii()
    assert all(char == "\n" or char.isprintable() for char in first)
    speedup = json.loads(first)["kernels"][0]["suggestions"][0]["speedup"]
    assert {speedup[key] for key in ("low", "expected", "high", "paper")} == {None}


def test_numbers_keep_what_they_mean() -> None:
    importance = document("measured")["kernels"][0]["suggestions"][0]["importance"]
    assert math.isclose(importance, 1_530 / 12_034, rel_tol=1e-8)
