# SPDX-License-Identifier: Apache-2.0
"""SARIF logs within what GitHub's code scanning takes, and several of them as one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

MAX_RESULTS: Final = 5_000
"""Of a run; a service shows no more, and chooses by itself."""
MAX_BYTES: Final = 10_000_000
"""Of a log that is compressed by gzip."""
_LEVELS: Final = {"error": 3, "warning": 2, "note": 1, "none": 0}

Object: TypeAlias = dict[str, Any]


def limited(log: Object, *, max_results: int = MAX_RESULTS, max_bytes: int = MAX_BYTES) -> str:
    """The text of a log; of too many results those that gain least are left out, which a note tells."""
    for run in log["runs"]:
        _keep(run, max_results)
    text = _text(log)
    if _too_large(text, max_bytes):
        for run in log["runs"]:
            for result in run["results"]:
                for part in ("codeFlows", "relatedLocations", "fixes"):
                    result.pop(part, None)
            _note(run, f"paths, related places and fixes are left out: they would exceed {max_bytes} bytes")
        text = _text(log)
    while _too_large(text, max_bytes) and any(run["results"] for run in log["runs"]):
        for run in log["runs"]:
            _keep(run, len(run["results"]) // 2)
        text = _text(log)
    return text


def joined_logs(logs: Iterable[Object]) -> str:
    """One log of several, with one run for each category: services take few runs, and each category once."""
    runs: dict[str, Object] = {}
    first: Object = {}
    for log in logs:
        first = first or log
        for run in log["runs"]:
            category = str(run["automationDetails"]["id"])
            merged_run = runs.setdefault(category, run)
            if merged_run is not run:
                _add(merged_run, run)
    return limited({**first, "runs": list(runs.values())})


def _add(run: Object, added: Object) -> None:
    rules = run["tool"]["driver"]["rules"]
    index = {rule["id"]: position for position, rule in enumerate(rules)}
    for rule in added["tool"]["driver"]["rules"]:
        if rule["id"] not in index:
            index[rule["id"]] = len(rules)
            rules.append(rule)
    run["results"] += [result | {"ruleIndex": index[result["ruleId"]]} for result in added["results"]]
    locations = [artifact["location"] for artifact in run["artifacts"]]
    run["artifacts"] += [artifact for artifact in added["artifacts"] if artifact["location"] not in locations]
    notes = "toolExecutionNotifications"
    run["invocations"][0][notes] += added["invocations"][0][notes]


def _keep(run: Object, most: int) -> None:
    results = run["results"]
    if len(results) <= most:
        return
    by_weight = sorted(
        range(len(results)),
        key=lambda index: (-_LEVELS[results[index]["level"]], -results[index].get("rank", 0.0)),
    )
    heaviest = set(by_weight[:most])
    run["results"] = [result for position, result in enumerate(results) if position in heaviest]
    _note(run, f"{len(results) - most} results that gain least are left out of {len(results)}")


def _note(run: Object, text: str) -> None:
    note = {"level": "warning", "message": {"text": text}, "descriptor": {"id": "left_out"}}
    run["invocations"][0]["toolExecutionNotifications"].append(note)


def _too_large(text: str, max_bytes: int) -> bool:
    return len(text) > max_bytes and len(gzip.compress(text.encode(), compresslevel=6)) > max_bytes


def _text(log: Object) -> str:
    return json.dumps(log, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
