# SPDX-License-Identifier: Apache-2.0
"""One analysis of a pipeline's inputs, in every form that its services read, and its verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import UsageError
from gpadvisor.gate.baseline import Difference, Findings, difference
from gpadvisor.gate.baseline import joined as joined_states
from gpadvisor.gate.comment import comment_text
from gpadvisor.gate.limits import GateLimit, GateOutcome
from gpadvisor.pipeline.compare import CompareOptions, compare_files
from gpadvisor.pipeline.formats import Placing, RenderOptions
from gpadvisor.pipeline.render import Fired, Gate, Rendered, joined, render_forms
from gpadvisor.pipeline.request import Progress, Request

FILES: Final = {
    "json": "advice.json",
    "sarif": "advice.sarif",
    "codequality": "codequality.json",
    "markdown": "advice.md",
}
COMMENT: Final = "comment.md"
VERDICT: Final = "verdict.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineCheck:
    """What is looked at, and what must hold."""

    inputs: tuple[Path, ...]
    request: Request
    placing: Placing
    baseline: Findings | None = None
    gates: tuple[Gate, ...] = ()
    before: Path | None = None  # a run to compare the only input with
    limits: tuple[GateLimit, ...] = ()  # on what that may differ by


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict, why, and what services read."""

    outcome: GateOutcome
    why: tuple[str, ...]
    found: Difference | None
    state: Findings
    files: Mapping[str, str]  # texts by name of the file


def check(pipeline_check: PipelineCheck, progress: Progress) -> Checked:
    """Analyse everything once.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    if pipeline_check.before is not None and len(pipeline_check.inputs) != 1:
        raise UsageError("--before is compared with one input; give one")
    results = [_one(path, pipeline_check, progress) for path in pipeline_check.inputs]
    files = {name: joined([texts[form] for texts, _ in results], form) for form, name in FILES.items()}
    state = joined_states(result.state for _, result in results)
    changes = None if pipeline_check.baseline is None else difference(pipeline_check.baseline, state)
    failed, undecided = _judge(pipeline_check.gates, [result for _, result in results], changes)
    gates = ""
    if pipeline_check.before is not None:
        options = CompareOptions(format="markdown", rows=None, width=80, limits=pipeline_check.limits)
        compared = compare_files(
            pipeline_check.before,
            pipeline_check.request,
            pipeline_check.inputs[0],
            pipeline_check.request,
            progress,
            options,
        )
        gates = compared.text
        failed += ["two runs: a gate fails"] if compared.outcome is GateOutcome.FAIL else []
        if compared.outcome is GateOutcome.INCONCLUSIVE:
            undecided.append("two runs: a gate is inconclusive")
    outcome = GateOutcome.FAIL if failed else GateOutcome.INCONCLUSIVE if undecided else GateOutcome.PASS
    why = (*failed, *undecided)
    advice = [texts["markdown"] for texts, _ in results]
    files[COMMENT] = comment_text(outcome.value, why, changes, gates, advice)
    files[VERDICT] = json.dumps(_verdict(outcome, why, changes), indent=2) + "\n"
    return Checked(outcome=outcome, why=why, found=changes, state=state, files=files)


def _one(path: Path, pipeline_check: PipelineCheck, progress: Progress) -> tuple[dict[str, str], Rendered]:
    forms = [
        RenderOptions(format=form, width=80, color=False, use_cache=True, placing=pipeline_check.placing)
        for form in FILES
    ]
    texts, result = render_forms(path, pipeline_check.request, forms, progress)
    return dict(zip(FILES, texts, strict=True)), result


def _judge(
    gates: Sequence[Gate], results: Sequence[Rendered], changes: Difference | None
) -> tuple[list[str], list[str]]:
    """Sentences on what fails, and on what cannot be told."""
    failed, undecided = [], []
    new = (
        []
        if changes is None
        else [Fired(code=finding.rule, expected=finding.expected) for finding in changes.new]
    )
    for gate in gates:
        met = gate.met(new) if gate.new else any(gate.met(result.fired) for result in results)
        if met:
            failed.append(f"fail-on {gate.text} is met")
    if gates:
        unread = [kernel for result in results for kernel in result.unread]
        undecided += [f"the machine code of {kernel} was not read" for kernel in unread[:1]]
    if changes is not None and any(gate.new for gate in gates):
        undecided += [f"not comparable: {reason}" for reason in changes.not_comparable[:1]]
    return failed, undecided


def _verdict(outcome: GateOutcome, why: Sequence[str], changes: Difference | None) -> dict[str, object]:
    counts = {"new": None, "known": None, "fixed": None} if changes is None else {
        "new": len(changes.new), "known": len(changes.known), "fixed": len(changes.fixed),
    }  # fmt: skip
    return {"verdict": outcome.value, "why": list(why), **counts}
