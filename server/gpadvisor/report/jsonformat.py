# SPDX-License-Identifier: Apache-2.0
"""The JSON report; ``advice.schema.json`` says the type, unit and nullability of every field."""

from __future__ import annotations

import json
import math
from typing import Final, TypeAlias

from gpadvisor import __version__
from gpadvisor.model.advice import (
    Advice,
    CodeRef,
    Estimate,
    Group,
    Hotspot,
    KernelAdvice,
    LaunchSummary,
    Occupancy,
    RuleComparison,
    SampleSummary,
    Scope,
    ScopeSummary,
    StallSummary,
    Suggestion,
)
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Device, Launch
from gpadvisor.model.timeline import RunPart
from gpadvisor.report.run_findings import finding_json

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

ADVICE_SCHEMA: Final = "gpadvisor.advice/1"
"""Value of ``schema``; the number changes when a field changes its meaning or goes away."""


def render_json(advice: Advice) -> str:
    """The whole advice as one JSON document: ASCII, no NaN, the same bytes for the same value."""
    return json.dumps(advice_json(advice), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def advice_json(advice: Advice) -> dict[str, Json]:
    """What `render_json` writes, as values."""
    return {
        "schema": ADVICE_SCHEMA,
        "tool": {"name": "gpadvisor", "version": __version__},
        "profile": {
            "path": text(advice.path),
            "sha256": advice.sha256,
            "collector": optional(advice.collector),
            "collector_version": optional(advice.collector_version),
        },
        "kernels": [_kernel(kernel) for kernel in advice.kernels],
        "launches": [_launch_summary(summary) for summary in advice.launches],
        "sources": [
            {
                "report_path": text(match.report_path),
                "local_path": optional(match.local_path),
                "method": match.how,
            }
            for match in advice.sources
        ],
        "problems": [_problem(problem) for problem in advice.problems],
        "run_findings": [finding_json(finding) for finding in advice.run_findings],
    }


def text(value: str) -> str:
    """A string that any UTF-8 reader takes: a lone surrogate of a damaged name is replaced."""
    return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value


def optional(value: str | None) -> str | None:
    """The same for a string that may be unknown."""
    return None if value is None else text(value)


def number(value: float | None) -> float | None:
    """A finite number with nine digits, which is more than any of them means; else None."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.9g}")


def _kernel(kernel: KernelAdvice) -> Json:
    return {
        "name": text(kernel.name),
        "mangled": text(kernel.mangled),
        "evidence": kernel.evidence.value,
        "evidence_reason": text(kernel.evidence_reason),
        "limited_by": optional(kernel.limited_by or None),
        "verdict": text(kernel.verdict),
        "device": _device(kernel.device),
        "launch": None if kernel.launch is None else _launch(kernel.launch, kernel),
        "merged_launches": kernel.merged_launches,
        "registers_per_thread": kernel.registers_per_thread,
        "shared_bytes": kernel.shared_bytes,
        "duration_ns": number(kernel.duration_ns),
        "time_share": number(kernel.time_share),
        "run": None if kernel.in_run is None else _run(kernel.in_run),
        "slowest_rank": None
        if kernel.slowest is None
        else {"name": text(kernel.slowest.name), "time_share": number(kernel.slowest.time_share)},
        "occupancy": _occupancy(kernel.occupancy),
        "utilisations": [
            {"name": use.name, "percent": number(use.percent), "metric": text(use.metric)}
            for use in kernel.utilisations
        ],
        "samples": _samples(kernel.samples),
        "stalls": [_stall(stall) for stall in kernel.stalls],
        "single_dependency_coverage": {
            "before": number(kernel.coverage.before),
            "after": number(kernel.coverage.after),
        },
        "scopes": [_scope_summary(scope) for scope in kernel.scopes],
        "suggestions": [_suggestion(suggestion) for suggestion in kernel.suggestions],
        "notes": [_suggestion(note) for note in kernel.notes],
        "hidden_suggestions": kernel.hidden,
        "groups": [_group(group) for group in kernel.groups],
        "rejected": [{"code": r.code, "reason": text(r.reason)} for r in kernel.rejected],
        "rules": [_rule(comparison) for comparison in kernel.rules],
        "problems": [_problem(problem) for problem in kernel.problems],
    }


def _device(device: Device) -> Json:
    return {
        "name": optional(device.name),
        "arch": device.arch,
        "sms": device.sms,
        "clock_hz": number(device.clock_hz),
        "schedulers_per_sm": device.schedulers_per_sm,
        "max_warps_per_sm": device.max_warps_per_sm,
        "registers_per_sm": device.registers_per_sm,
        "shared_bytes_per_sm": device.shared_bytes_per_sm,
        "l2_bytes": device.l2_bytes,
    }


def _launch(launch: Launch, kernel: KernelAdvice | None = None) -> Json:
    shared_parts = [b for b in (launch.static_shared_bytes, launch.dynamic_shared_bytes) if b is not None]
    shared = sum(shared_parts) if shared_parts else None
    registers = launch.registers_per_thread
    if kernel is not None:  # the cubin may say what the report left out
        registers = kernel.registers_per_thread if registers is None else registers
        shared = kernel.shared_bytes if shared is None else shared
    return {
        "index": launch.index,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cluster": None if launch.cluster is None else list(launch.cluster),
        "registers_per_thread": registers,
        "shared_bytes": shared,
        "static_shared_bytes": launch.static_shared_bytes,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "driver_shared_bytes": launch.driver_shared_bytes,
        "carveout_shared_bytes": launch.carveout_shared_bytes,
        "context": launch.context,
        "stream": launch.stream,
        "failed": launch.failed,
    }


def _launch_summary(summary: LaunchSummary) -> Json:
    return {
        "kernel": text(summary.launch.demangled),
        "mangled": text(summary.launch.kernel),
        "duration_ns": number(summary.launch.duration_ns),
        "analysed": summary.analysed,
        "launch": _launch(summary.launch),
    }


def _occupancy(occupancy: Occupancy) -> Json:
    return {
        "theoretical": number(occupancy.theoretical),
        "achieved": number(occupancy.achieved),
        "limiter": occupancy.limiter,
        "blocks_per_sm": occupancy.blocks_per_sm,
        "warps_per_sm": occupancy.warps_per_sm,
        "limits": [{"resource": name, "blocks_per_sm": blocks} for name, blocks in occupancy.limits],
    }


def _samples(samples: SampleSummary) -> Json:
    return {
        "total": samples.total,
        "latency": samples.latency,
        "active": samples.active,
        "blamed": samples.blamed,
        "self": samples.self,
        "unattributed": samples.unattributed,
        "external": samples.external,
        "after_exit": samples.after_exit,
        "truncated": samples.truncated,
        "expected": number(samples.expected),
    }


def _stall(stall: StallSummary) -> Json:
    return {
        "reason": text(stall.reason),
        "plain": text(stall.plain),
        "samples": stall.samples,
        "latency": stall.latency,
        "blamed": stall.blamed,
        "self": stall.self,
        "unattributed": stall.unattributed,
        "blamed_latency": stall.blamed_latency,
        "self_latency": stall.self_latency,
        "unattributed_latency": stall.unattributed_latency,
    }


def _scope(scope: Scope) -> dict[str, Json]:
    return {"kind": scope.kind.value, "name": text(scope.name), **_location(scope.location)}


def _location(location: SourceLocation | None) -> dict[str, Json]:
    if location is None:
        return {"file": None, "line": None}
    return {"file": text(location.file), "line": location.line}


def _run(part: RunPart) -> Json:
    return {
        "trace": text(part.trace),
        "span_ns": part.span_ns,
        "busy_ns": part.busy_ns,
        "launches": part.time.launches,
        "same_grid": part.time.shape is not None,
        "alone_ns": part.time.alone_ns,
        "shared_ns": number(part.time.shared_ns),
        "union_ns": part.time.union_ns,
    }


def _scope_summary(summary: ScopeSummary) -> Json:
    return {
        **_scope(summary.scope),
        "samples": summary.samples,
        "latency": summary.latency,
        "caused": summary.caused,
        "executed_warps": summary.executed_warps,
        "dominant_reason": optional(summary.dominant_reason),
    }


def _suggestion(suggestion: Suggestion) -> Json:
    suppressed = suggestion.suppressed
    return {
        "code": suggestion.code,
        "slug": suggestion.slug,
        "name": suggestion.name,
        "title": text(suggestion.title),
        "category": suggestion.category.value,
        "evidence": suggestion.evidence.value,
        "importance": number(suggestion.importance),
        "matched": {"samples": suggestion.matched_samples, "latency": suggestion.matched_latency},
        "speedup": _speedup(suggestion.speedup),
        "program_speedup": _speedup(suggestion.program_speedup),
        "slowest_rank_speedup": _speedup(suggestion.slowest_speedup),
        "equation": None if suggestion.speedup is None else text(suggestion.speedup.equation),
        "scope": _scope(suggestion.scope),
        "cure": optional(suggestion.cure or None),
        "advice": text(suggestion.advice),
        "next_limit": optional(suggestion.next_limit or None),
        "instead_of": optional(suggestion.instead_of or None),
        "hotspots": [_hotspot(hotspot) for hotspot in suggestion.hotspots],
        "suppressed": None
        if suppressed is None
        else {**_location(suppressed.location), "reason": text(suppressed.reason)},
    }


def _speedup(estimate: Estimate | None) -> Json:
    if estimate is None:
        return None
    return {
        "low": number(estimate.low),
        "expected": number(estimate.expected),
        "high": number(estimate.high),
        "paper": number(estimate.paper),
        "reason": text(estimate.reason),
        "cap": None
        if estimate.cap is None
        else {
            "limit": text(estimate.cap.limit),
            "speedup": number(estimate.cap.speedup),
            "before": number(estimate.cap.before),
            "reason": text(estimate.cap.reason),
        },
    }


def _hotspot(hotspot: Hotspot) -> Json:
    return {
        "reason": text(hotspot.reason),
        "class": hotspot.dependency_class.value,
        "samples": hotspot.samples,
        "latency": hotspot.latency,
        "importance": number(hotspot.importance),
        "speedup": number(hotspot.speedup),
        "distance_instructions": hotspot.distance_instructions,
        "def": _code(hotspot.definition),
        "use": _code(hotspot.use),
    }


def _code(code: CodeRef | None) -> Json:
    if code is None:
        return None
    return {
        "pc": int(code.pc),
        "function": text(code.function),
        "opcode": text(code.opcode),
        "text": text(code.text),
        **_location(code.location),
        "inline": [
            {"function": optional(frame.function), **_location(frame.call_site)} for frame in code.inline
        ],
    }


def _group(group: Group) -> Json:
    return {
        "suggestions": list(group.suggestions),
        "samples": group.samples,
        "shared_samples": group.shared_samples,
        "speedup": _speedup(group.speedup),
        "equation": text(group.speedup.equation),
    }


def _rule(comparison: RuleComparison) -> Json:
    rule = comparison.rule
    return {
        "identifier": text(rule.identifier),
        "name": text(rule.name),
        "section": optional(rule.section),
        "kind": text(rule.kind),
        "message": text(rule.message),
        "title": optional(rule.title),
        "estimated_speedup": number(rule.estimated_speedup),
        "speedup_scope": optional(rule.speedup_scope),
        "agreement": comparison.agreement,
        "ours": list(comparison.ours),
        "explanation": text(comparison.explanation),
    }


def _problem(problem: Problem) -> Json:
    return {"code": problem.code.value, "message": text(problem.message)}
