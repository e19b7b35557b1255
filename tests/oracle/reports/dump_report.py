# SPDX-License-Identifier: Apache-2.0
"""Print what NVIDIA's ncu_report module reads from a report, as JSON; run in a process of its own."""

from __future__ import annotations

import json
import sys
from typing import Any

import ncu_report


def value_of(metric: Any, index: int | None = None) -> Any:
    arguments = () if index is None else (index,)
    kind = metric.kind() if index is None else metric.kind(index)
    if kind == ncu_report.IMetric.ValueKind_STRING:
        return metric.as_string(*arguments)
    if kind in (ncu_report.IMetric.ValueKind_UINT32, ncu_report.IMetric.ValueKind_UINT64):
        return metric.as_uint64(*arguments)
    if kind in (ncu_report.IMetric.ValueKind_FLOAT, ncu_report.IMetric.ValueKind_DOUBLE):
        return repr(metric.as_double(*arguments))
    return None


def metric_of(metric: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"value": value_of(metric) if metric.has_value() else None}
    if metric.num_instances() and metric.has_correlation_ids():
        ids = metric.correlation_ids()
        found["ids"] = [value_of(ids, index) for index in range(metric.num_instances())]
        found["values"] = [value_of(metric, index) for index in range(metric.num_instances())]
    return found


def action_of(action: Any) -> dict[str, Any]:
    return {
        "mangled": action.name(ncu_report.IAction.NameBase_MANGLED),
        "function": action.name(ncu_report.IAction.NameBase_FUNCTION),
        "demangled": action.name(ncu_report.IAction.NameBase_DEMANGLED),
        "metrics": {name: metric_of(action.metric_by_name(name)) for name in action.metric_names()},
        "rules": action.rule_results_as_dicts(),
        "files": dict(action.source_files().items()),
    }


def main(path: str) -> None:
    context = ncu_report.load_report(path)
    actions = [
        action_of(action) for index in range(context.num_ranges()) for action in context.range_by_idx(index)
    ]
    json.dump(actions, sys.stdout, default=int)


if __name__ == "__main__":
    main(sys.argv[1])
