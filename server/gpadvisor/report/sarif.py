# SPDX-License-Identifier: Apache-2.0
"""The SARIF 2.1.0 report, for code scanning services and editors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gpadvisor import __version__
from gpadvisor.model.advice import Advice, CodeRef, Estimate, Hotspot, KernelAdvice, Suggestion
from gpadvisor.model.figures import won
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Evidence
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.jsonformat import number
from gpadvisor.report.names import short_name
from gpadvisor.report.page import Page
from gpadvisor.report.sarif_places import SarifPlaces
from gpadvisor.report.style import Style
from gpadvisor.report.words import CATEGORY_WORDS, cleaned, percent, plural

SARIF_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
WARNING_SPEEDUP: Final = 1.05
"""A measured suggestion that gives the run this at its low end is a warning; all else is a note or less."""
_NAME: Final = 80
_SHOWN_HOTSPOTS: Final = 5

Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMetadata:
    """What a viewer shows about one rule."""

    code: str  # "GPA201"
    slug: str
    name: str
    summary: str  # one sentence
    help_markdown: str
    help_uri: str | None = None


def render_sarif(
    advice: Advice,
    *,
    rules: Sequence[RuleMetadata] = (),
    root: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """One SARIF log with one run: a result for each suggestion, a notification for each problem.

    Args:
        advice: What to report.
        rules: Descriptions of the rules; a code without one is described by its own name.
        root: Folder that file addresses are relative to; files elsewhere get absolute addresses.
        sources: Texts of source files by the path that the advice names: snippets and stable fingerprints.
    """
    advice = cleaned(advice)
    local = {match.report_path: match.local_path for match in advice.sources if match.local_path}
    page = Page(width=10_000, style=Style(enabled=False), top=None, sources=dict(sources or {}), local=local)
    places = SarifPlaces(page=page, root=root, fallback=advice.path)
    descriptors = _descriptors(advice, rules)
    index = {str(descriptor["id"]): position for position, descriptor in enumerate(descriptors)}
    fingerprints = Fingerprints(page)
    results = [
        _result(places, kernel, suggestion, index[suggestion.code], fingerprints)
        for kernel in advice.kernels
        for suggestion in kernel.suggestions
    ]
    run = {
        "tool": {"driver": {"name": "gpadvisor", "version": __version__, "rules": descriptors}},
        "automationDetails": {"id": f"gpadvisor/{'+'.join(_architectures(advice))}/"},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {
            SarifPlaces.BASE: {
                "description": {"text": "Folder that relative addresses of sources start from."}
            }
        },
        "artifacts": [_input(places, advice)],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _notifications(advice)}],
        "results": results,
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def message(text: str) -> Object:
    """A message in which nothing is taken for a placeholder or a link (SARIF sections 3.11.5 and 3.11.6)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _architectures(advice: Advice) -> list[str]:
    return sorted({kernel.device.arch for kernel in advice.kernels})


def _input(places: SarifPlaces, advice: Advice) -> Object:
    artifact: Object = {"location": places.artifact(advice.path), "roles": ["analysisTarget"]}
    if advice.sha256:
        artifact["hashes"] = {"sha-256": advice.sha256}
    return artifact


def _descriptors(advice: Advice, rules: Sequence[RuleMetadata]) -> list[Object]:
    known = {rule.code: rule for rule in rules}
    used = {s.code: s for kernel in advice.kernels for s in kernel.suggestions}
    found = []
    for code in sorted({*known, *used}):
        rule = known.get(code)
        if rule is None:
            suggestion = used[code]
            rule = RuleMetadata(
                code=code,
                slug=suggestion.slug,
                name=suggestion.name,
                summary=f"{suggestion.name} ({CATEGORY_WORDS[suggestion.category]}).",
                help_markdown=f"Run `gpadvisor explain {code}`.",
            )
        found.append(_descriptor(rule))
    return found


def _descriptor(rule: RuleMetadata) -> Object:
    descriptor: Object = {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.summary, "markdown": rule.help_markdown},
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["performance", "cuda"]},
    }
    if rule.help_uri:
        descriptor["helpUri"] = rule.help_uri
    return descriptor


def level(suggestion: Suggestion) -> str:
    """``warning`` for a measured gain of the run that is likely, ``none`` for what only the code shows."""
    if suggestion.evidence is Evidence.STATIC:
        return "none"
    estimate = suggestion.program_speedup or suggestion.speedup
    likely = estimate is not None and math.isfinite(estimate.low) and estimate.low >= WARNING_SPEEDUP
    return "warning" if likely and suggestion.evidence is Evidence.MEASURED else "note"


def _result(
    places: SarifPlaces,
    kernel: KernelAdvice,
    suggestion: Suggestion,
    rule_index: int,
    fingerprints: Fingerprints,
) -> Object:
    primary = _primary(suggestion)
    result: Object = {
        "ruleId": suggestion.code,
        "ruleIndex": rule_index,
        "level": level(suggestion),
        "kind": "informational" if suggestion.evidence is Evidence.STATIC else "fail",
        "message": message(_sentence(kernel, suggestion)),
        "locations": [places.location(primary, function=kernel.name)],
        "partialFingerprints": {"gpadvisor/v1": fingerprints.of(kernel, suggestion, primary)},
        "properties": _properties(kernel, suggestion),
    }
    rank = _rank(suggestion.program_speedup or suggestion.speedup)
    if rank is not None:
        result["rank"] = rank
    flows = [flow for hotspot in suggestion.hotspots[:_SHOWN_HOTSPOTS] if (flow := _flow(places, hotspot))]
    if flows:
        result["codeFlows"] = flows
    related = _related(places, kernel, suggestion)
    if related:
        result["relatedLocations"] = related
    result["suppressions"] = _suppressions(places, suggestion)
    return result


def _primary(suggestion: Suggestion) -> SourceLocation | None:
    """Where the cause stands: the first hotspot's def, else its use, else the scope."""
    for hotspot in suggestion.hotspots:
        for code in (hotspot.definition, hotspot.use):
            if code is not None and code.location is not None:
                return code.location
    return suggestion.scope.location


def _sentence(kernel: KernelAdvice, suggestion: Suggestion) -> str:
    """Gain, cure, cause, the change, and what that rests on."""
    share = f", {percent(suggestion.importance)} of the samples" if suggestion.matched_samples else ""
    head = f"{won(suggestion.speedup, suggestion.evidence)}: {suggestion.name}{share}: {suggestion.title}."
    device = kernel.device.name or kernel.device.arch
    rests_on = f"[{suggestion.evidence.value}, {device}, {short_name(kernel.name, _NAME)}]"
    return " ".join(part for part in (head, suggestion.advice, rests_on) if part)


def _properties(kernel: KernelAdvice, suggestion: Suggestion) -> Object:
    estimate = suggestion.speedup
    values: Object = {
        "kernel": kernel.name,
        "category": suggestion.category.value,
        "evidence": suggestion.evidence.value,
        "importance": number(suggestion.importance),
        "matchedSamples": suggestion.matched_samples,
    }
    if estimate is not None:
        values["speedup"] = {
            "low": number(estimate.low),
            "expected": number(estimate.expected),
            "high": number(estimate.high),
            "paper": number(estimate.paper),
        }
        values["equation"] = estimate.equation
        values["reason"] = estimate.reason
    return values


def _rank(estimate: Estimate | None) -> float | None:
    """Percent of the run's time that is expected to go; of the kernel's where its part is not known."""
    if estimate is None or not math.isfinite(estimate.expected) or estimate.expected <= 0:
        return None
    return round(min(100.0, max(0.0, 100.0 * (1.0 - 1.0 / estimate.expected))), 2)


def _flow(places: SarifPlaces, hotspot: Hotspot) -> Object | None:
    """From the inlined calls around the def to the def to the use."""
    definition, use = hotspot.definition, hotspot.use
    if definition is None or use is None:
        return None
    share = f"{percent(hotspot.importance)} of the samples: {hotspot.reason}"
    steps = [
        *_steps(places, definition, f"{definition.text or definition.opcode} is waited for"),
        *_steps(places, use, f"{use.text or use.opcode} waits here, {share}"),
    ]
    distance = hotspot.distance_instructions
    apart = "" if distance is None else f", {plural(distance, 'instruction')} apart"
    kind = hotspot.dependency_class.value.replace("_", " ")
    return {"message": message(f"{kind}, def to use{apart}"), "threadFlows": [{"locations": steps}]}


def _steps(places: SarifPlaces, code: CodeRef, words: str) -> Iterable[Object]:
    depth = len(code.inline)
    for nesting, frame in enumerate(reversed(code.inline)):
        text = f"{short_name(frame.function or 'code', _NAME)} is inlined here"
        call = places.location(frame.call_site, function=code.function) | {"message": message(text)}
        yield {"nestingLevel": nesting, "importance": "unimportant", "location": call}
    place = places.location(code.location, function=code.function, pc=code.pc) | {"message": message(words)}
    yield {"nestingLevel": depth, "importance": "essential", "location": place}


def _related(places: SarifPlaces, kernel: KernelAdvice, suggestion: Suggestion) -> list[Object]:
    """The scope and every end of the hotspots, each place once."""
    found: dict[SourceLocation, str] = {}
    if suggestion.scope.location is not None:
        found[suggestion.scope.location] = f"{suggestion.scope.kind.value} that this is about"
    for hotspot in suggestion.hotspots[:_SHOWN_HOTSPOTS]:
        for role, code in (("def", hotspot.definition), ("use", hotspot.use)):
            if code is not None and code.location is not None:
                words = f"{role}: {code.text or code.opcode}, {hotspot.reason}, {percent(hotspot.importance)}"
                found.setdefault(code.location, words)
    return [
        {"id": index, **places.location(location, function=kernel.name), "message": message(words)}
        for index, (location, words) in enumerate(found.items(), start=1)
    ]


def _suppressions(places: SarifPlaces, suggestion: Suggestion) -> list[Object]:
    """Empty where nothing suppresses, so that a viewer knows that it was looked for (SARIF 3.27.23)."""
    suppressed = suggestion.suppressed
    if suppressed is None:
        return []
    entry: Object = {"kind": "inSource", "location": places.location(suppressed.location)}
    if suppressed.reason:
        entry["justification"] = suppressed.reason
    return [entry]


def _notifications(advice: Advice) -> list[Object]:
    everywhere = [_notification(problem, None) for problem in advice.problems]
    return everywhere + [_notification(problem, k) for k in advice.kernels for problem in k.problems]


def _notification(problem: Problem, kernel: KernelAdvice | None) -> Object:
    where = f"{short_name(kernel.name, _NAME)}: " if kernel is not None else ""
    return {
        "level": "note",
        "message": message(where + problem.message),
        "descriptor": {"id": problem.code.value},
    }
