# SPDX-License-Identifier: Apache-2.0
"""Launches of a collection: configuration, and what it leaves in doubt."""

from __future__ import annotations

from gpadvisor.cubin import Cubin, demangle
from gpadvisor.model.figures import percent
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    Launch,
)
from gpadvisor.store.collection.executions import ExecutionGroup


def launch_of(index: int, group: ExecutionGroup, cubin: Cubin | None) -> Launch:
    """A launch of the most frequent configuration of a kernel."""
    configuration, _ = group.main_configuration()
    kernel = group.key.kernel
    facts = None if cubin is None else cubin.facts.get(kernel)
    registers, static = configuration.registers, configuration.static_shared
    if facts is not None:
        registers = facts.registers_per_thread if registers is None else registers
        static = facts.static_shared_bytes if static is None else static
    return Launch(
        index=index,
        kernel=kernel,
        demangled=demangle(kernel),
        grid=configuration.grid,
        block=configuration.block,
        cluster=configuration.cluster,
        registers_per_thread=registers,
        static_shared_bytes=static,
        dynamic_shared_bytes=configuration.dynamic_shared,
        driver_shared_bytes=None,
        carveout_shared_bytes=configuration.shared_executed,
        duration_ns=group.duration_ns,
        context=group.context or None,
        stream=group.stream,
        failed=False,
    )


def configuration_problems(group: ExecutionGroup, share: float) -> tuple[Problem, ...]:
    """What several configurations of a kernel leave in doubt."""
    problems: list[Problem] = []
    name = demangle(group.key.kernel)
    count = len(group.configurations)
    if count > 1:
        problems.append(
            Problem(
                ProblemCode.MIXED_CONFIGURATIONS,
                f"the {group.launches} launches of {name} have {count} configurations, and samples of"
                f" continuous mode belong to all of them; the one shown has {percent(share, 0)} of their"
                f" {'time' if group.duration_ns else 'number'}, so that estimates which change the launch are"
                " ranges down to no gain; serialized mode tells launches apart",
            )
        )
    if group.ambiguous:
        problems.append(
            Problem(
                ProblemCode.SOURCE_AMBIGUOUS,
                f"several loaded images have a kernel {name}, and which one a launch ran is not known",
            )
        )
    return tuple(problems)
