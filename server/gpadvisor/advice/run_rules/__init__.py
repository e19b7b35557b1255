# SPDX-License-Identifier: Apache-2.0
"""What host code does that leaves a GPU idle: rules on the timeline of a whole run, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpadvisor.advice.run_rules import copy_overlap, needless_wait, small_launches
from gpadvisor.advice.run_rules.facts import RunFacts, RunRule
from gpadvisor.model.timeline import RunFinding, RunRelated, Timeline

RUN_RULES: Final[tuple[RunRule, ...]] = (needless_wait.RULE, copy_overlap.RULE, small_launches.RULE)
BY_CODE: Final[Mapping[str, RunRule]] = {rule.code: rule for rule in RUN_RULES}


def run_findings(timeline: Timeline) -> tuple[RunFinding, ...]:
    """What is worth telling of a run, what gives most first; each as if it were changed alone."""
    facts = RunFacts(timeline)
    findings = [
        RunFinding(
            code=rule.code,
            slug=rule.slug,
            name=rule.name,
            title=match.title,
            advice=match.advice,
            place=facts.place(match.place),
            calls=match.calls,
            speedup=speedup,
            related=tuple(
                RunRelated(place=place, message=message)
                for number, message in match.related
                if (place := facts.place(number)) is not None
            ),
        )
        for rule in RUN_RULES
        for match in rule.match(facts)
        if (speedup := facts.worth(match)) is not None
    ]
    return tuple(
        sorted(findings, key=lambda finding: (-finding.speedup.expected, finding.code, finding.title))
    )
