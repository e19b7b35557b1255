# SPDX-License-Identifier: Apache-2.0
"""PC samples of a process: from CUPTI's rows to the groups they belong to, and to columns.

``_not_issued`` reasons are GPA's latency samples: the scheduler issued nothing in that cycle (GPA section
II-A). CUPTI's own counts (`smsp__pcsamp_sample_count`, `..._samples_data_dropped`), which it delivers among
the reasons, are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpadvisor.cubin import Cubin
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.profile import PcSamples
from gpadvisor.model.stalls import StallReason, stall_reason
from gpadvisor.store.collection.process import TOO_MANY, Process
from gpadvisor.store.ncu.sampling import NOT_ISSUED, PREFIXES
from gpadvisor.store.parts import MAX_SAMPLES

MAX_REASONS: Final = 255
CUPTI_COUNTS: Final = frozenset(("smsp__pcsamp_sample_count", "smsp__pcsamp_samples_data_dropped"))
CUPTI_COUNT: Final = -2
"""In place of a reason's number."""
ReasonsByNumber: TypeAlias = Mapping[int, Mapping[int, tuple[int, bool]]]
"""By context and CUPTI's index: the number of the reason, and whether nothing was issued."""


class SamplePlace(NamedTuple):
    """Whose samples a slice of rows holds."""

    context: int
    binary: str | None
    function: str
    correlation: int  # 0 in continuous mode


@dataclass(slots=True)
class Rows:
    """Rows of one group: function, offset in it, CUPTI's reason, count."""

    function: list[str] = field(default_factory=list)
    context: list[int] = field(default_factory=list)
    parts: list[NDArray[np.void]] = field(default_factory=list)

    def add(self, place: SamplePlace, rows: NDArray[np.void]) -> None:
        """Take rows of one function in one context."""
        self.function.append(place.function)
        self.context.append(place.context)
        self.parts.append(rows)

    def __bool__(self) -> bool:
        return bool(self.parts)


def sampled_places(process: Process) -> Iterator[tuple[SamplePlace, NDArray[np.void]]]:
    """The rows of a process by context, image, function and launch."""
    images = {module.crc: module.sha256 for module in process.modules if module.crc}
    for context, rows in process.samples:
        keys = np.stack([rows["crc"], rows["name"], rows["correlation"].astype(np.uint64)], axis=1)
        unique, index = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(index.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(index.ravel(), minlength=len(unique)))
        begin = 0
        for (crc, name, correlation), end in zip(unique.tolist(), ends.tolist(), strict=True):
            function = process.name(name) or ""
            yield SamplePlace(context, images.get(crc), function, correlation), rows[order[begin:end]]
            begin = end


def own_reasons(process: Process) -> tuple[tuple[StallReason, ...], ReasonsByNumber]:
    """The stall reasons of a process, and what each of CUPTI's indexes is, which differ by kind of GPU."""
    names: dict[str, int] = {}
    meaning: dict[int, dict[int, tuple[int, bool]]] = {}
    for context, reasons in process.reasons.items():
        numbers = meaning.setdefault(context, {})
        for index, full in sorted(reasons.items()):
            if full in CUPTI_COUNTS:
                numbers[index] = CUPTI_COUNT, False
                continue
            short = next((full.removeprefix(prefix) for prefix in PREFIXES if full.startswith(prefix)), full)
            waiting = short.endswith(NOT_ISSUED)
            name = short.removesuffix(NOT_ISSUED)
            if name in names or len(names) < MAX_REASONS:
                numbers[index] = names.setdefault(name, len(names)), waiting
    return tuple(stall_reason(name) for name in names), meaning


def undelivered(process: Process) -> Mapping[int, int]:
    """By context, how many samples CUPTI counted and did not deliver; negative: delivered and not counted.

    ``totalSamples`` "includes samples for user modules, samples for non-user kernels and dropped samples"
    (cupti_pcsampling.h).
    """
    _, meaning = own_reasons(process)
    delivered = dict.fromkeys(process.totals, 0)
    for context, rows in process.samples:
        indexes, inverse = np.unique(rows["reason"], return_inverse=True)
        reasons = meaning.get(context, {})
        counts = [index for index, (number, waiting) in reasons.items() if number >= 0 and not waiting]
        mask = np.isin(indexes, counts)[inverse.ravel()]
        delivered[context] += int(rows["samples"][mask].sum(dtype=np.uint64))
    return {
        context: missing
        for context, totals in process.totals.items()
        if (missing := totals.total - totals.dropped - totals.non_user - delivered[context])
    }


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Samples as the profile has them."""

    sections: tuple[str, ...]
    samples: PcSamples
    lost: int  # of reasons or in functions that are not known
    beyond: int  # latency samples without a sample


def place_samples(kernel: str, rows: Rows, cubin: Cubin | None, meaning: ReasonsByNumber) -> Placed:
    """Columns of one group, the kernel's own section first.

    Raises:
        ProfileFormatError: there are more samples than a run can have.
    """
    sections: dict[str, int] = {kernel: 0}
    homes = _homes(cubin)
    columns: list[NDArray[np.uint64]] = []
    lost = 0
    for function, context, part in zip(rows.function, rows.context, rows.parts, strict=True):
        reasons = meaning.get(context, {})
        home = homes.get(function, (function, 0)) if homes else (function, 0)
        if homes and home[0] not in homes:
            lost += int(part["samples"].astype(np.uint64).sum())
            continue
        section = sections.setdefault(home[0], len(sections))
        indexes, inverse = np.unique(part["reason"], return_inverse=True)
        table = np.array([reasons.get(index, (-1, False)) for index in indexes.tolist()], np.int64).reshape(
            -1, 2
        )
        decoded = table[inverse.ravel()]
        good = decoded[:, 0] >= 0
        lost += int(part["samples"][decoded[:, 0] == -1].astype(np.uint64).sum())
        count = part["samples"][good].astype(np.uint64)
        waiting = decoded[good, 1] == 1
        columns.append(
            np.stack(
                [
                    np.full(len(count), section, np.uint64),
                    part["pc"][good] + np.uint64(home[1]),
                    decoded[good, 0].astype(np.uint64),
                    np.where(waiting, np.uint64(0), count),
                    np.where(waiting, count, np.uint64(0)),
                ],
                axis=1,
            )
        )
    samples, beyond = _columns(columns)
    return Placed(tuple(sections), samples, lost, beyond)


def _homes(cubin: Cubin | None) -> dict[str, tuple[str, int]]:
    """Where each function lies: its section, and its offset there."""
    homes: dict[str, tuple[str, int]] = {}
    for section in cubin.sections if cubin is not None else ():
        for symbol in section.symbols:
            homes.setdefault(symbol.name, (section.name, symbol.offset))
    for section in cubin.sections if cubin is not None else ():
        homes[section.name] = section.name, 0
    return homes


def _columns(parts: list[NDArray[np.uint64]]) -> tuple[PcSamples, int]:
    table = np.concatenate(parts) if parts else np.zeros((0, 5), np.uint64)
    if float(table[:, 3:].sum(dtype=np.float64)) > MAX_SAMPLES:
        raise ProfileFormatError(TOO_MANY)
    keys, index = np.unique(table[:, :3], axis=0, return_inverse=True)
    total, latency = np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)
    np.add.at(total, index.ravel(), table[:, 3])
    np.add.at(latency, index.ravel(), table[:, 4])
    bounded = np.minimum(latency, total)
    beyond = int((latency - bounded).sum())
    filled = total > 0
    samples = PcSamples(
        section=keys[filled, 0].astype(np.uint16),
        pc=keys[filled, 1].copy(),
        reason=keys[filled, 2].astype(np.uint8),
        total=total[filled],
        latency=bounded[filled],
    )
    return samples, beyond
