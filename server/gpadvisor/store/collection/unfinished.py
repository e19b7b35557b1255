# SPDX-License-Identifier: Apache-2.0
"""What a collection says of itself: what was not finished, dropped or failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    KernelProfile,
)
from gpadvisor.store.collection.notes import TIMELINE, sentences
from gpadvisor.store.collection.process import Process
from gpadvisor.store.collection.samples import (
    undelivered,
)

RERUN: Final = "collect again"


def collection_problems(processes: Sequence[Process], kernels: Sequence[KernelProfile]) -> list[Problem]:
    """What concerns the whole collection: what its processes say of themselves, and what has no place."""
    problems = [Problem(ProblemCode.COLLECTION_LIMITED, text) for text in sentences(processes)]
    problems += unfinished(processes)
    missing = [number for process in processes for number in undelivered(process).values()]
    if missing:
        problems.append(
            Problem(
                ProblemCode.INCONSISTENT_REPORT,
                f"CUPTI counted {sum(map(abs, missing))} samples differently than it delivered them, in"
                f" {len(missing)} contexts: shares of the kernels there are uncertain by as many",
            )
        )
    outside = sum(totals.non_user for process in processes for totals in process.totals.values())
    if outside:
        problems.append(
            Problem(
                ProblemCode.EXTERNAL_SAMPLES,
                f"{outside} samples lie in kernels of the driver's own, of which CUPTI tells nothing",
            )
        )
    failed = sum(len(process.failed) for process in processes)
    if failed:
        problems.append(
            Problem(ProblemCode.FAILED_LAUNCH, f"launches that failed and are left out: {failed}")
        )
    if any(process.late for process in processes):
        problems.append(
            Problem(
                ProblemCode.COLLECTION_LIMITED,
                "the collection began when CUDA was in use already: modules loaded before are unseen",
            )
        )
    if not kernels:
        problems.append(
            Problem(ProblemCode.NO_SAMPLES, f"no kernel was launched in the collected processes; {RERUN}")
        )
    return problems


def unfinished(processes: Sequence[Process]) -> list[Problem]:
    """Files that their process did not end, or that were cut or damaged afterwards."""
    problems: list[Problem] = []
    for process in processes:
        header, damage = process.header, process.damage
        if not header.finished and not process.forked:
            rest = "the samples still on the GPU are not"
            if process.mode == TIMELINE:
                rest = "what CUPTI still held of the timeline is not"
            problems.append(
                Problem(
                    ProblemCode.UNFINISHED_COLLECTION,
                    f"process {header.process} was killed, crashed or left by _exit: what it had delivered"
                    f" until then is here, {rest}",
                )
            )
        if damage.cut_bytes or damage.segments:
            problems.append(
                Problem(
                    ProblemCode.UNFINISHED_COLLECTION,
                    f"the file of process {header.process} is damaged: {damage.cut_bytes} bytes are missing"
                    f" at its end, {damage.segments} parts cannot be read to their end; the rest is used",
                )
            )
        if process.unknown_records:
            problems.append(
                Problem(
                    ProblemCode.UNFINISHED_COLLECTION,
                    f"the file of process {header.process} has {process.unknown_records} records of a kind"
                    " that is not known here, left out; read it with the gpadvisor that collected it",
                )
            )
        if header.lost_records:
            problems.append(
                Problem(
                    ProblemCode.UNFINISHED_COLLECTION,
                    f"process {header.process} could not write {header.lost_records} records:"
                    " the disk was full, or memory short",
                )
            )
    return problems
