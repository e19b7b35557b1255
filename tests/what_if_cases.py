# SPDX-License-Identifier: Apache-2.0
"""Cases that hold the model and the page's together: ``python -m tests.what_if_cases`` writes them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Final

from gpadvisor.views.potential.model import ModelInputs
from gpadvisor.views.potential.what_if import InputChange, what_if

FILE: Final = Path(__file__).with_name("what_if_cases.json")
_CASES: Final = 60


def case(inputs: ModelInputs, cycles: float, change: InputChange) -> dict[str, Any]:
    """Inputs with what the model says of them."""
    found = what_if(inputs, cycles, change)
    parts = asdict(found.parts)
    benefits = {benefit.name.lower(): value for benefit, value in parts.pop("benefits").items()}
    return {
        "inputs": asdict(inputs),
        "cycles": cycles,
        "change": asdict(change),
        "speedup": found.speedup,
        "parts": {**parts, "benefits": benefits},
    }


def cases() -> list[dict[str, Any]]:
    """Spread over the branches of the model: bound by issue, pipe, memory latency, bandwidth, or nothing."""
    random = Random(14)

    def some(low: float, high: float, *, none: float = 0.0) -> float:
        return 0.0 if random.random() < none else float(f"{low * (high / low) ** random.random():.6g}")

    return [
        case(
            ModelInputs(
                issue_width=random.choice((1.0, 2.0, 4.0)),
                instructions=some(1e4, 1e7),
                loads=some(1e2, 1e6, none=0.2),
                requests=some(1e2, 1e6),
                stall_cycles=some(1, 15),
                resident_warps=some(1, 64),
                mlp=some(1, 16),
                latency=some(30, 900, none=0.2),
                l1_latency=some(20, 60),
                request_cycles=some(0.1, 40, none=0.1),
                request_in_l1=random.random() < 0.5,
                pipe_cycles=some(1e3, 1e6),
                pipe="LSU pipe",
                serial_cycles=some(1e2, 1e6, none=0.5),
                essential_cycles=some(1e2, 1e6),
                data_cycles=some(1e2, 1e6, none=0.1),
            ),
            some(1e5, 1e8),
            InputChange(
                warps=some(0.25, 4), in_flight=some(0.5, 8), transactions=some(0.05, 2), clock=some(0.5, 1.5),
                bandwidth=some(0.5, 3),
            )
            if number
            else InputChange(),
        )
        for number in range(_CASES)
    ]  # fmt: skip


if __name__ == "__main__":
    lines = ",\n".join(map(json.dumps, cases()))
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
