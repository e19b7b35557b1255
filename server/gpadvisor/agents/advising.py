# SPDX-License-Identifier: Apache-2.0
"""Kernels and their advice: `list_kernels`, `advise`, `simulate`, `why`, `explain`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from gpadvisor.agents.answers import NAME, TEXT, Answer, Json, number, short
from gpadvisor.agents.request import ToolCall
from gpadvisor.files import cache_folder
from gpadvisor.model.advice import Advice, KernelAdvice, LaunchSummary
from gpadvisor.pipeline.advise import AdvisedFile, advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.stall_pages import explain
from gpadvisor.report.entries import NumberedSuggestion, cause, families, primary
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.page import make_page
from gpadvisor.report.why import render_why

_WIDTH: Final = 100


def advised(call: ToolCall, name: str = "file", *, model: bool = False) -> AdvisedFile:
    """The advice on an input, as the command line makes it.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    request = call.request(name, model=model)
    return advise_file(call.path(name), request, call.progress, Cache(cache_folder()))


def list_kernels(call: ToolCall) -> Answer:
    """Kernels by time."""
    advice = advised(call).advice
    return Answer(
        items=[_kernel(kernel) for kernel in advice.kernels],
        evidence=_evidence(advice),
        source=_collector(advice),
        verify=call.command("advise", str(call.path()), "--format", "json"),
        skipped=[
            *(
                f"launch {summary.launch.index} of {summary.launch.demangled}"
                for summary in _not_analysed(advice)
            ),
            *(problem.message for problem in advice.problems),
        ],
    )


def _not_analysed(advice: Advice) -> list[LaunchSummary]:
    return [launch for launch in advice.launches if not launch.analysed]


def _kernel(kernel: KernelAdvice) -> Json:
    launch = kernel.launch
    return {
        "kernel": short(kernel.name, NAME),
        "time_share": number(kernel.time_share),
        "duration_ns": number(kernel.duration_ns),
        "grid": "" if launch is None else "x".join(map(str, launch.grid)),
        "block": "" if launch is None else "x".join(map(str, launch.block)),
        "device": short(kernel.device.name or kernel.device.arch, NAME),
        "samples": kernel.samples.total,
        "limited_by": short(kernel.limited_by, NAME),
        "verdict": short(kernel.verdict, TEXT // 2),
        "suggestions": len(kernel.suggestions),
        "evidence": kernel.evidence.value,
        "source": short(kernel.evidence_reason, NAME),
    }


def advise(call: ToolCall) -> Answer:
    """Suggestions by what they gain."""
    return _suggestions(call, advised(call), call.command("advise", str(call.path()), "--format", "json"))


def simulate(call: ToolCall) -> Answer:
    """The same of a simulated run."""
    words = ("advise", str(call.path()), "--model", *call.launch_words(), "--format", "json")
    return _suggestions(call, advised(call, model=True), call.command(*words))


def _suggestions(call: ToolCall, file: AdvisedFile, verify: list[str]) -> Answer:
    advice = file.advice
    page = make_page(advice, width=_WIDTH, color=False, sources=file.texts)
    fingerprints = Fingerprints(page)
    entries = [entry for family in families(advice) for entry in family.entries]
    return Answer(
        items=[_suggestion(call, entry, fingerprints) for entry in entries],
        evidence=_evidence(advice),
        source=_collector(advice),
        verify=verify,
        skipped=list(_left_out(advice)),
    )


def _suggestion(call: ToolCall, entry: NumberedSuggestion, fingerprints: Fingerprints) -> Json:
    suggestion, kernel = entry.suggestion, entry.kernel
    location, code, estimate = primary(suggestion), cause(suggestion), suggestion.speedup
    of_run = suggestion.program_speedup
    options = [] if kernel.evidence.value != "modelled" else ["--model", *call.launch_words()]
    return {
        "number": entry.number,
        "code": suggestion.code,
        "name": suggestion.name,
        "kernel": short(kernel.name, NAME),
        "change": short(suggestion.cure or suggestion.advice, TEXT),
        "cause": short(suggestion.title, TEXT // 2),
        "file": "" if location is None else short(location.file, TEXT // 2),
        "line": None if location is None else location.line,
        "instruction": "" if code is None else short(f"{code.pc:#06x} {code.text}", NAME),
        "low": None if estimate is None else number(estimate.low),
        "expected": None if estimate is None else number(estimate.expected),
        "high": None if estimate is None else number(estimate.high),
        "paper": None if estimate is None else number(estimate.paper),
        "whole_run": None if of_run is None else number(of_run.expected),
        "samples": suggestion.matched_samples,
        "share": number(suggestion.importance),
        "limited_by_then": short(suggestion.next_limit, NAME),
        "fingerprint": fingerprints.of(kernel, suggestion, location)[:16],
        "evidence": suggestion.evidence.value,
        "source": short(f"{estimate.equation}; {estimate.reason}", TEXT // 2)
        if estimate
        else short(f"{kernel.evidence_reason}; no estimate", TEXT // 2),
        "verify": shlex.join(call.command("why", str(call.path()), str(entry.number), *options)),
    }


def _left_out(advice: Advice) -> Iterator[str]:
    """What nothing is suggested for, and what could not be read."""
    for kernel in advice.kernels:
        if kernel.hidden:
            yield f"{kernel.hidden} smaller findings of {short(kernel.name, 40)}: gpadvisor advise --all"
        yield from (problem.message for problem in kernel.problems)
        if not kernel.suggestions:
            yield f"{short(kernel.name, 40)}: {kernel.verdict}"
    yield from (problem.message for problem in advice.problems)
    for kernel in advice.kernels:
        yield from (f"{rejection.code}: {rejection.reason}" for rejection in kernel.rejected)


def _evidence(advice: Advice) -> str:
    return ", ".join(dict.fromkeys(kernel.evidence.value for kernel in advice.kernels)) or "none"


def _collector(advice: Advice) -> str:
    if advice.collector is None:
        return "the machine code"
    return f"{advice.collector} {advice.collector_version or ''}".strip()


def why(call: ToolCall) -> Answer:
    """One estimate in full."""
    file, number_or_code = advised(call), call.text("suggestion")
    text = render_why(file.advice, number_or_code, width=_WIDTH, sources=file.texts)
    return _lines(
        text,
        _evidence(file.advice),
        _collector(file.advice),
        call.command("why", str(call.path()), number_or_code),
    )


def explain_name(call: ToolCall) -> Answer:
    """A page."""
    name = call.text("name")
    text = explain(name)
    return _lines(text, "documentation", "the page of the rule or reason", ["gpadvisor", "explain", name])


def _lines(text: str, evidence: str, source: str, verify: list[str]) -> Answer:
    return Answer(
        items=[{"text": short(line.rstrip(), TEXT)} for line in text.splitlines() if line.strip()],
        evidence=evidence,
        source=source,
        verify=verify,
    )
