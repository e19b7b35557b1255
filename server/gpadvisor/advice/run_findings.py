# SPDX-License-Identifier: Apache-2.0
"""What of a whole run is worth telling: where its host code leaves the GPU idle."""

from __future__ import annotations

from gpadvisor.estimators.run_facts import RunFacts
from gpadvisor.model.timeline import RunFinding, RunRelated, Timeline
from gpadvisor.rules import RUN_RULES


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
