# SPDX-License-Identifier: Apache-2.0
"""The SARIF 2.1.0 report, for code scanning services and editors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gpadvisor import __version__
from gpadvisor.model.advice import Advice, CodeRef, Hotspot, KernelAdvice, Suggestion
from gpadvisor.model.figures import explains, percent, won
from gpadvisor.model.fix import Fix, TextEdit
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Evidence
from gpadvisor.report.entries import primary
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.jsonformat import number
from gpadvisor.report.line_hash import line_hashes
from gpadvisor.report.names import short_name
from gpadvisor.report.page import make_page
from gpadvisor.report.placement import Repository, RepositoryPlaces
from gpadvisor.report.sarif_limits import limited
from gpadvisor.report.sarif_places import SarifPlaces
from gpadvisor.report.sarif_run import UNPLACED, host_code, message, rank
from gpadvisor.report.words import CATEGORY_WORDS, base_file, cleaned, plural

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifOptions:
    """What a service is told beside the advice."""

    repository: Repository | None = None  # None: results are placed in any file, under the name it has here
    category: str = ""  # of the alerts; a service closes those of one that are not in its next upload
    omit_suppressed: bool = False
    home: str = ""  # page of the tool
    rules: Sequence[RuleMetadata] = ()  # descriptions; a code without one is described by its own name


@dataclass(frozen=True, slots=True, kw_only=True)
class SarifSources:
    """Texts and fixes; paths are those that the advice names."""

    texts: Mapping[str, str] = field(default_factory=dict)  # to quote, as profiled
    now: Mapping[str, str] = field(default_factory=dict)  # of the files here, for hashes of lines
    fixes: Mapping[tuple[str, str], Sequence[Fix]] = field(default_factory=dict)
    """By mangled kernel and code; their edits are of texts in ``now``, in files of that name here."""


def render_sarif(
    advice: Advice, options: SarifOptions | None = None, sources: SarifSources | None = None
) -> str:
    """One SARIF log with one run: a result for each suggestion with a place, a notification for all else."""
    options, sources = options or SarifOptions(), sources or SarifSources()
    advice = cleaned(advice)
    page = make_page(advice, width=0, color=False, sources=sources.texts)
    places = SarifPlaces(placement=RepositoryPlaces(page=page, repository=options.repository))
    descriptors = _descriptors(advice, options.rules)
    index = {str(descriptor["id"]): position for position, descriptor in enumerate(descriptors)}
    writer = _Writer(places, sources, index, Fingerprints(page))
    results, notices = [], _notifications(advice)
    for kernel in advice.kernels:
        for suggestion in kernel.suggestions:
            fingerprint = writer.fingerprint(kernel, suggestion)  # also of what is left out: equal ones count
            if options.omit_suppressed and suggestion.suppressed is not None:
                continue
            place = places.placement.of(suggestion)
            if place is None:
                notices.append(_unplaced(kernel, suggestion))
            else:
                results.append(writer.result(kernel, suggestion, place, fingerprint))
    of_run, unplaced = host_code(advice, places, index)
    results += of_run
    notices += unplaced
    driver: Object = {"name": "gpadvisor", "version": __version__, "rules": descriptors}
    if options.home:
        driver["informationUri"] = options.home
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{options.category or _category(advice)}/"},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {
            SarifPlaces.BASE: {
                "description": {"text": "Folder that relative addresses of sources start from."}
            }
        },
        "artifacts": [_input(places, advice), *writer.edited()],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notices}],
        "results": results,
    }
    return limited({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _category(advice: Advice) -> str:
    return f"gpadvisor/{'+'.join(sorted({kernel.device.arch for kernel in advice.kernels}))}"


def _input(places: SarifPlaces, advice: Advice) -> Object:
    artifact: Object = {"location": places.artifact(advice.path), "roles": ["analysisTarget"]}
    if advice.sha256:
        artifact["hashes"] = {"sha-256": advice.sha256}
    return artifact


def _descriptors(advice: Advice, rules: Sequence[RuleMetadata]) -> list[Object]:
    metadatas = {rule.code: rule for rule in rules}
    used = {s.code: s for kernel in advice.kernels for s in kernel.suggestions}
    metadatas |= {
        finding.code: RuleMetadata(
            code=finding.code,
            slug=finding.slug,
            name=finding.name,
            summary=finding.name,
            help_markdown=finding.name,
        )
        for finding in advice.run_findings
        if finding.code not in metadatas
    }
    result = []
    for code in sorted({*metadatas, *used}):
        rule = metadatas.get(code)
        if rule is None:
            suggestion = used[code]
            rule = RuleMetadata(
                code=code,
                slug=suggestion.slug,
                name=suggestion.name,
                summary=f"{suggestion.name} ({CATEGORY_WORDS[suggestion.category]}).",
                help_markdown=f"Run `gpadvisor explain {code}`.",
            )
        result.append(_descriptor(rule))
    return result


def _descriptor(rule: RuleMetadata) -> Object:
    descriptor: Object = {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": rule.summary},
        "help": {
            "text": f"{rule.summary} All of it: gpadvisor explain {rule.code}",
            "markdown": rule.help_markdown,
        },
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


class _Writer:
    """Results of one run, with what they need of its files."""

    def __init__(
        self, places: SarifPlaces, sources: SarifSources, rules: Mapping[str, int], prints: Fingerprints
    ) -> None:
        self._places, self._sources, self._rules, self._prints = places, sources, rules, prints
        self._hashes: dict[str, Sequence[str]] = {}
        self._edited: dict[str, str] = {}  # texts by path

    def fingerprint(self, kernel: KernelAdvice, suggestion: Suggestion) -> str:
        """Of the advice, wherever it is shown."""
        return self._prints.of(kernel, suggestion, primary(suggestion))

    def result(
        self, kernel: KernelAdvice, suggestion: Suggestion, place: SourceLocation, fingerprint: str
    ) -> Object:
        """One suggestion at its place."""
        prints = {"gpadvisor/v1": fingerprint}
        # Of where it stands if nothing is changed: an alert that is known does not become new where it is
        # shown on a line of a change.
        if line_hash := self._line_hash(primary(suggestion)) or self._line_hash(place):
            prints["primaryLocationLineHash"] = line_hash
        result: Object = {
            "ruleId": suggestion.code,
            "ruleIndex": self._rules[suggestion.code],
            "level": level(suggestion),
            "kind": "informational" if suggestion.evidence is Evidence.STATIC else "fail",
            "message": message(sentence(kernel, suggestion)),
            "locations": [self._places.location(place, function=kernel.name)],
            "partialFingerprints": prints,
            "properties": _properties(kernel, suggestion),
        }
        percentage = rank(suggestion.program_speedup or suggestion.speedup)
        if percentage is not None:
            result["rank"] = percentage
        spots = suggestion.hotspots[:_SHOWN_HOTSPOTS]
        if flows := [flow for hotspot in spots if (flow := _flow(self._places, hotspot))]:
            result["codeFlows"] = flows
        if related := _related(self._places, kernel, suggestion):
            result["relatedLocations"] = related
        if fixes := self._sources.fixes.get((kernel.mangled, suggestion.code)):
            result["fixes"] = [self._fix(fix) for fix in fixes]
        result["suppressions"] = _suppressions(self._places, suggestion)
        return result

    def edited(self) -> list[Object]:
        """The files that fixes are of, with the hash of what they were made for."""
        return [
            {
                "location": self._places.artifact(file),
                "hashes": {"sha-256": hashlib.sha256(text.encode()).hexdigest()},
            }
            for file, text in self._edited.items()
        ]

    def _line_hash(self, location: SourceLocation | None) -> str | None:
        if location is None or location.file not in self._sources.now:
            return None
        if location.file not in self._hashes:
            self._hashes[location.file] = line_hashes(self._sources.now[location.file])
        line, hashes = self._places.placement.line(location), self._hashes[location.file]
        return None if line is None or not 1 <= line <= len(hashes) else hashes[line - 1]

    def _fix(self, fix: Fix) -> Object:
        text = self._edited.setdefault(fix.file, self._sources.now[fix.file])
        lines = text.split("\n")
        replacements = [
            {"deletedRegion": _region(edit, lines), "insertedContent": {"text": edit.new_text}}
            for edit in fix.edits
        ]
        change = {"artifactLocation": self._places.artifact(fix.file), "replacements": replacements}
        words = f"{fix.title}; {fix.reason}" if fix.reason else fix.title
        return {"description": message(words), "artifactChanges": [change]}


def _region(edit: TextEdit, lines: Sequence[str]) -> Object:
    """Columns count UTF-16 code units from 1; of the first line without a byte order mark."""

    def column(line: int, index: int) -> int:
        before = lines[line - 1][:index].removeprefix("\ufeff" if line == 1 else "")
        return len(before.encode("utf-16-le", "surrogatepass")) // 2 + 1

    return {
        "startLine": edit.start_line,
        "startColumn": column(edit.start_line, edit.start_column),
        "endLine": edit.end_line,
        "endColumn": column(edit.end_line, edit.end_column),
    }


def sentence(kernel: KernelAdvice, suggestion: Suggestion) -> str:
    """Gain, cure, cause, the change, and what that rests on."""
    told = suggestion.matched_samples and explains(suggestion.importance, suggestion.speedup)
    share = f", {percent(suggestion.importance)} of the samples" if told else ""
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


def _flow(places: SarifPlaces, hotspot: Hotspot) -> Object | None:
    """From the inlined calls around the def to the def to the use."""
    definition, use = hotspot.definition, hotspot.use
    if definition is None or use is None or definition.location is None or use.location is None:
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
    related: dict[SourceLocation, str] = {}
    if suggestion.scope.location is not None:
        related[suggestion.scope.location] = f"{suggestion.scope.kind.value} that this is about"
    for hotspot in suggestion.hotspots[:_SHOWN_HOTSPOTS]:
        for role, code in (("def", hotspot.definition), ("use", hotspot.use)):
            if code is not None and code.location is not None:
                share = f", {percent(hotspot.importance)}" if hotspot.samples else ""
                words = f"{role}: {code.text or code.opcode}, {hotspot.reason}{share}"
                related.setdefault(code.location, words)
    return [
        {"id": index, **places.location(location, function=kernel.name), "message": message(words)}
        for index, (location, words) in enumerate(related.items(), start=1)
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


def _unplaced(kernel: KernelAdvice, suggestion: Suggestion) -> Object:
    """What no line of a file of the repository shows: services refuse results without one."""
    location = primary(suggestion)
    where = (
        "no line is known"
        if location is None
        else f"{base_file(location.file)}:{location.line} is not in the repository"
    )
    text = f"{suggestion.code} has no place here, {where}: {sentence(kernel, suggestion)}"
    return {"level": "note", "message": message(text), "descriptor": {"id": UNPLACED}}


def _notification(problem: Problem, kernel: KernelAdvice | None) -> Object:
    where = f"{short_name(kernel.name, _NAME)}: " if kernel is not None else ""
    return {
        "level": "note",
        "message": message(where + problem.message),
        "descriptor": {"id": problem.code.value},
    }
