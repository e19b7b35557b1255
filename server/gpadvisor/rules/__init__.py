# SPDX-License-Identifier: Apache-2.0
"""The optimizers of GPA Table II, others beyond it, notes and rules on a whole run, one file each.

The two tuples are the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpadvisor.estimators.context import Optimizer
from gpadvisor.estimators.run_facts import RunRule
from gpadvisor.rules import (
    asynchronous_copy,
    atomic_aggregation,
    block_increase,
    code_reordering,
    constant_divergence,
    conversions,
    copy_overlap,
    data_reuse,
    double_precision,
    fast_math,
    function_inlining,
    function_split,
    loop_unrolling,
    memory_transaction_reduction,
    needless_wait,
    register_reuse,
    shared_memory_saving,
    small_launches,
    strength_reduction,
    tensor_cores,
    thread_divergence,
    thread_increase,
    unit_at_limit,
    unmatched_stalls,
    warp_balance,
    wider_accesses,
)

OPTIMIZERS: Final[tuple[Optimizer, ...]] = (
    register_reuse.OPTIMIZER,
    strength_reduction.OPTIMIZER,
    function_split.OPTIMIZER,
    fast_math.OPTIMIZER,
    warp_balance.OPTIMIZER,
    memory_transaction_reduction.OPTIMIZER,
    data_reuse.OPTIMIZER,
    wider_accesses.OPTIMIZER,
    thread_divergence.OPTIMIZER,
    atomic_aggregation.OPTIMIZER,
    constant_divergence.OPTIMIZER,
    conversions.OPTIMIZER,
    double_precision.OPTIMIZER,
    loop_unrolling.OPTIMIZER,
    code_reordering.OPTIMIZER,
    function_inlining.OPTIMIZER,
    asynchronous_copy.OPTIMIZER,
    block_increase.OPTIMIZER,
    thread_increase.OPTIMIZER,
    shared_memory_saving.OPTIMIZER,
    unmatched_stalls.OPTIMIZER,
    tensor_cores.OPTIMIZER,
    unit_at_limit.OPTIMIZER,
)

RUN_RULES: Final[tuple[RunRule, ...]] = (needless_wait.RULE, copy_overlap.RULE, small_launches.RULE)

BY_CODE: Final[Mapping[str, Optimizer]] = {optimizer.code: optimizer for optimizer in OPTIMIZERS}
