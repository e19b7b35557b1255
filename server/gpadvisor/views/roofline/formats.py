# SPDX-License-Identifier: Apache-2.0
"""The roofline for programs: JSON with everything, CSV with a row for each point, ceiling, access, region."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from gpadvisor.report.words import csv_cell
from gpadvisor.views.roofline.advice import caps, follows, proposal_for
from gpadvisor.views.roofline.model import Roofline
from gpadvisor.views.roofline.shown import ShownKernel
from gpadvisor.views.roofline.words import sentences

SCHEMA: Final = "gpadvisor.roofline/1"
_COLUMNS: Final = (
    "kernel", "row", "name", "function", "file", "line", "pc", "instructions", "transactions", "intensity",
    "per_instruction", "fewest", "gips", "gips_low", "gips_high", "use", "samples", "active_lanes",
    "predicated_lanes", "source",
)  # fmt: skip


def render_json(kernels: Sequence[ShownKernel], missing: Sequence[str]) -> str:
    """Everything, by ``roofline.schema.json``; the same input gives the same bytes."""
    value = {
        "schema": SCHEMA,
        "kernels": [roofline_json(kernel) for kernel in kernels],
        "missing": list(missing),
    }
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def roofline_json(kernel: ShownKernel) -> dict[str, object]:
    """One kernel, as ``render_json`` has it."""
    roofline, first = kernel.roofline, follows(kernel.roofline, kernel.proposals)
    followed = [proposal_for(access, kernel.proposals) for access in roofline.accesses]
    return {
        **{field.name: _plain(getattr(roofline, field.name)) for field in fields(roofline)},
        "suggestions_of_accesses": [None if proposal is None else proposal.code for proposal in followed],
        "gips": roofline.height / 1e9,
        "time_share": kernel.time_share,
        "says": list(sentences(kernel)),
        "suggestion": None if first is None else first.code,
        "caps": [
            {"suggestion": cap.proposal.code, "ceiling": cap.ceiling.name, "factor": cap.ceiling.factor}
            for cap in caps(roofline, kernel.proposals)
        ],
    }


def _plain(value: object) -> object:
    """A value of this room as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def render_csv(kernels: Sequence[ShownKernel]) -> str:
    """One table, empty cells for what a row has not."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for kernel in kernels:
        for row in _rows(kernel):
            writer.writerow({key: csv_cell(value) for key, value in row.items()})
    return stream.getvalue()


def _rows(shown_kernel: ShownKernel) -> Iterator[Mapping[str, object]]:
    roofline = shown_kernel.roofline
    kernel = roofline.kernel
    for point in roofline.points:
        yield {
            "kernel": kernel,
            "row": "level",
            "name": point.level.value,
            "instructions": roofline.instructions.value,
            "transactions": point.transactions.value,
            "intensity": point.intensity,
            "gips": roofline.height / 1e9,
            "use": point.use,
            "source": point.transactions.source,
        }
    for ceiling in roofline.ceilings:
        yield {
            "kernel": kernel,
            "row": "ceiling",
            "name": ceiling.name,
            "gips": ceiling.height / 1e9,
            "use": ceiling.use,
            "source": ceiling.source,
        }
    for access in roofline.accesses:
        location = access.location
        yield {
            "kernel": kernel,
            "row": f"access to {access.space.value} memory",
            "name": access.text,
            "file": None if location is None else location.file,
            "line": None if location is None else location.line,
            "pc": access.pc,
            "instructions": access.instructions,
            "transactions": access.transactions,
            "intensity": 1 / access.per_instruction,
            "per_instruction": access.per_instruction,
            "fewest": access.fewest,
        }
    yield from _regions(roofline)
    for row in roofline.mix:
        yield {
            "kernel": kernel,
            "row": "mix",
            "name": row.name,
            "instructions": row.instructions,
            "use": row.share,
        }


def _regions(roofline: Roofline) -> Iterator[Mapping[str, object]]:
    for region in roofline.regions:
        location, height = region.location, region.height
        yield {
            "kernel": roofline.kernel,
            "row": region.kind.value,
            "name": region.loop,
            "function": region.function,
            "file": None if location is None else location.file,
            "line": None if location is None else location.line,
            "pc": region.pc,
            "instructions": region.instructions,
            "transactions": region.sectors,
            "intensity": region.instructions / region.sectors if region.sectors else None,
            "gips": None if height is None else height.expected / 1e9,
            "gips_low": None if height is None else height.low / 1e9,
            "gips_high": None if height is None else height.high / 1e9,
            "samples": region.samples,
            "active_lanes": region.active_lanes,
            "predicated_lanes": region.predicated_lanes,
        }
