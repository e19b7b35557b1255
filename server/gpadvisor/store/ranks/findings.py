# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a run differ in, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.figures import percentage
from gpadvisor.model.problem import ProblemCode
from gpadvisor.store.parts import ColumnArrays, JsonObject
from gpadvisor.store.ranks.members import By, Member
from gpadvisor.store.ranks.outliers import FEWEST, SLOWER, imbalance, slow_kernels, slow_ranks

_NAMED: Final = 3


def times_by_rank(
    times: ColumnArrays, members: Sequence[Member], kernels: int, by: By
) -> tuple[list[str], NDArray[np.float64]]:
    """Names of what is compared, and the time of each kernel (row) on each of them, NaN where there is none.

    Args:
        times: ``time_ns`` of kernel ``k`` on profile ``rank``, absent where not known.
        members: the profiles, which ``rank`` numbers.
        kernels: how many there are.
        by: what the profiles are told by; of a node its ranks' times are added up.
    """
    labels, columns = _labels(members, by)
    ns = np.ma.filled(times["time_ns"], 0.0)
    had = ns > 0
    where = times["k"][had], columns[times["rank"][had]]
    matrix = np.zeros((kernels, len(labels)))
    np.add.at(matrix, where, ns[had])
    matrix[matrix == 0] = np.nan
    return labels, matrix


def slowest_rank(
    matrix: NDArray[np.float64], labels: Sequence[str], by: By
) -> tuple[str, NDArray[np.float64]] | None:
    """The rank with the most kernel time (the first of equals), and each kernel's share of it."""
    totals = np.nansum(matrix, 0)
    if len(labels) < 2 or not totals.all():
        return None
    worst = int(totals.argmax())
    return _which([worst], labels, by), np.nan_to_num(matrix[:, worst]) / totals[worst]


def findings(
    matrix: NDArray[np.float64], labels: Sequence[str], names: Sequence[str], by: By
) -> tuple[list[JsonObject], dict[int, list[JsonObject]]]:
    """Problems of the run, and of kernels by number.

    Args:
        matrix: times of kernels on ranks.
        labels: of the ranks, or of what else the profiles are told by.
        names: of the kernels.
        by: what the profiles are told by.
    """
    if len(labels) < FEWEST or not np.isfinite(matrix).any():
        return [], {}
    factors, slow = slow_ranks(matrix)
    problems = [_everywhere(factors, slow, labels, by)] if slow else []
    by_kernel: dict[int, list[JsonObject]] = {}
    for outlier in slow_kernels(matrix, factors):
        text = (
            f"{names[outlier.kernel]} takes {outlier.times:.1f}x its median on"
            f" {_which(outlier.ranks, labels, by)}{_due_to(len(names), len(outlier.ranks))}; the most is"
            f" {imbalance(matrix[outlier.kernel]):.2f}x the mean"
        )
        by_kernel.setdefault(outlier.kernel, []).append(_problem(text))
        problems.append(_problem(text))
    for kernel, values in enumerate(matrix):
        measured = values[np.isfinite(values)]
        if len(measured) >= FEWEST and kernel not in by_kernel and imbalance(values) > SLOWER:
            worst = (int(np.nanargmax(values)),)
            text = (
                f"{names[kernel]} is uneven over {_plural(len(measured), by)}: the most,"
                f" {_which(worst, labels, by)}, is {imbalance(values):.2f}x the mean"
            )
            by_kernel[kernel] = [_problem(text)]
    return problems, by_kernel


def _due_to(kernels: int, ranks: int) -> str:
    """Whether data or node is to be looked at; one kernel alone does not tell."""
    if kernels == 1:
        return ", for its data or its node: no other kernel tells which"
    they, their = ("they are", "their") if ranks > 1 else ("it is", "its")
    return f", beyond what {they} slower in everything: look at {their} data"


def _labels(members: Sequence[Member], by: By) -> tuple[list[str], NDArray[np.intp]]:
    """Names of what is compared, and which of them each profile belongs to."""
    texts = [
        member.node if by is By.NODE else member.name if by is By.NAME else str(member.rank)
        for member in members
    ]
    labels = list(dict.fromkeys(texts))
    position = {label: index for index, label in enumerate(labels)}
    return labels, np.array([position[label] for label in texts], np.intp)


def _everywhere(
    factors: NDArray[np.float64], slow: Sequence[int], labels: Sequence[str], by: By
) -> JsonObject:
    more = 100 * (float(factors[slow[0]]) / float(np.median(factors)) - 1)
    look = "node" if by is not By.NAME else "machine"
    return _problem(
        f"{_which(slow, labels, by)} {'takes' if len(slow) == 1 else 'take'}"
        f" {'' if len(slow) == 1 else 'up to '}{percentage(more)} longer in everything than the median: look"
        f" at the {look}, not at the code"
    )


def _which(which: Sequence[int], labels: Sequence[str], by: By) -> str:
    text = ", ".join(labels[index] for index in which[:_NAMED])
    if len(which) == 1:
        return f"{_word(by)} {text}"
    more = ", ..." if len(which) > _NAMED else ""
    return f"{len(which):,} of {_plural(len(labels), by)} ({text}{more})"


def _word(by: By) -> str:
    return "profile" if by is By.NAME else by.value


def _plural(number: int, by: By) -> str:
    return f"{number:,} {_word(by)}s"


def _problem(text: str) -> JsonObject:
    return {"code": ProblemCode.SLOW_RANKS.value, "message": text}
