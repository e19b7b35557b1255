# SPDX-License-Identifier: Apache-2.0
"""What host code of a traced run leaves idle, in SARIF: results at lines, notifications of what has none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from gpadvisor.model.advice import Advice, Estimate
from gpadvisor.model.timeline import RunFinding
from gpadvisor.report.run_findings import fingerprint, sentence, source_line, speedup_json
from gpadvisor.report.sarif_places import SarifPlaces

UNPLACED: Final = "no_place"
"""Identity of the notification of a suggestion without a place."""
Object: TypeAlias = dict[str, Any]


def message(text: str) -> Object:
    """A message in which nothing is taken for a placeholder or a link (SARIF sections 3.11.5 and 3.11.6)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def rank(estimate: Estimate | None) -> float | None:
    """Percent of the run's time that is expected to go; of the kernel's where its part is not known."""
    if estimate is None or not math.isfinite(estimate.expected) or estimate.expected <= 0:
        return None
    return round(min(100.0, max(0.0, 100.0 * (1.0 - 1.0 / estimate.expected))), 2)


def host_code(
    advice: Advice, places: SarifPlaces, rules: Mapping[str, int]
) -> tuple[list[Object], list[Object]]:
    """Results and notifications; ``rules`` has the position of each code."""
    results, notices, occurrences = list[Object](), list[Object](), Counter[str]()
    for finding in advice.run_findings:
        digest, key = fingerprint(finding, occurrences)
        occurrences[key] += 1
        line = source_line(finding)
        outside = places.placement.repository is not None
        if line is None or (outside and places.placement.below(line.file) is None):
            notices.append(_without_line(finding))
        else:
            results.append(_of_run(finding, rules[finding.code], digest, places.location(line)))
    return results, notices


def _of_run(finding: RunFinding, rule: int, digest: str, place: Object) -> Object:
    """What host code leaves idle, at its line; never a warning, as its low end is what may be needed."""
    result: Object = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": "note",
        "kind": "fail",
        "message": message(sentence(finding)),
        "locations": [place],
        "partialFingerprints": {"gpadvisor/v1": digest},
        "properties": {
            "category": "host code",
            "calls": finding.calls,
            "speedup": speedup_json(finding.speedup),
            "equation": finding.speedup.equation,
        },
        "suppressions": [],
    }
    percentage = rank(finding.speedup)
    return result if percentage is None else {**result, "rank": percentage}


def _without_line(finding: RunFinding) -> Object:
    text = f"{finding.code} has no place here: {sentence(finding)}"
    return {"level": "note", "message": message(text), "descriptor": {"id": UNPLACED}}
