# SPDX-License-Identifier: Apache-2.0
"""Print the samples that NVIDIA's ncu_report reads of each kernel, one JSON line for each report named."""

from __future__ import annotations

import json
import sys
from typing import Any

import ncu_report

PREFIXES = ("smsp__pcsamp_warps_issue_stalled_", "smsp__pcsamp_warp_stall_")


def samples_of(action: Any) -> int:
    total = 0
    for name in action.metric_names():
        if name.startswith(PREFIXES) and not name.endswith("_not_issued"):
            metric = action.metric_by_name(name)
            total += sum(int(metric.as_double(index)) for index in range(metric.num_instances()))
    return total


def main(paths: list[str]) -> None:
    for path in paths:
        try:
            context = ncu_report.load_report(path)
            found = [
                [action.name(ncu_report.IAction.NameBase_MANGLED), samples_of(action)]
                for index in range(context.num_ranges())
                for action in context.range_by_idx(index)
            ]
        except Exception:  # noqa: BLE001 whatever their library says of a damaged file
            found = None
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()  # the next one may take this process along


if __name__ == "__main__":
    main(sys.argv[1:])
