# SPDX-License-Identifier: Apache-2.0
"""What the model says of other inputs. The page has the same equations (``vscode-client/page/model.ts``).

``tests/what_if_cases.json`` holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpadvisor.views.potential.adapted import parts
from gpadvisor.views.potential.model import CycleParts, ModelInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChange:
    """Factors of a run's inputs, each above zero."""

    warps: float = 1.0  # resident at once: occupancy
    in_flight: float = 1.0  # loads of one warp
    transactions: float = 1.0  # of a request
    clock: float = 1.0  # of the SMs; caches beyond L1 and DRAM keep theirs
    bandwidth: float = 1.0  # of the tightest level of memory, and of DRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRun:
    """The changed run."""

    parts: CycleParts
    speedup: float  # of the whole run, by the model; what it does not explain takes as long as before


def what_if(of: ModelInputs, cycles: float, change: InputChange) -> ChangedRun:
    """The model with some inputs changed; ``cycles`` were measured."""
    before, after = parts(of), parts(changed(of, change))
    overhead = max(0.0, cycles - before.execution)
    return ChangedRun(
        parts=after, speedup=(before.execution + overhead) / (after.execution / change.clock + overhead)
    )


def changed(of: ModelInputs, change: InputChange) -> ModelInputs:
    """The inputs; those in cycles are of the changed clock."""
    near = min(of.l1_latency, of.latency)
    outside = change.transactions / change.bandwidth * change.clock
    inside = change.transactions / change.bandwidth
    return replace(
        of,
        resident_warps=of.resident_warps * change.warps,
        mlp=of.mlp * change.in_flight,
        latency=near + (of.latency - near) * change.clock,
        request_cycles=of.request_cycles * (inside if of.request_in_l1 else outside),
        data_cycles=of.data_cycles * outside,
    )
