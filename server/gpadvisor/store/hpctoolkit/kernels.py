# SPDX-License-Identifier: Apache-2.0
"""Kernels of a database: their instructions, the host's way to their launches, what is said of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gpadvisor.model.profile import CallFrame
from gpadvisor.store.hpctoolkit.database import EXECUTION, POINT, Database
from gpadvisor.store.hpctoolkit.meta import Context, Lexical, Relation

SectionOf: TypeAlias = Callable[[str, int], str | None]
"""The code section that an offset of a module lies in."""


@dataclass(slots=True)
class KernelContexts:
    """A kernel wherever it was launched."""

    module: str
    offset: int  # in the file
    name: str  # readable
    launches: list[Context] = field(default_factory=list)
    instructions: list[Context] = field(default_factory=list)

    def sum(self, by_context: Mapping[int, float]) -> float:
        """Of a metric over its launches."""
        return sum(by_context.get(context.id, 0.0) for context in self.launches)

    def by_instruction(self, by_context: Mapping[int, float]) -> dict[tuple[str, int], float]:
        """A metric's sum over all contexts of an instruction, by module and offset.

        What HPCToolkit divides among the callers of a function is whole again in it.
        """
        sums: dict[tuple[str, int], float] = {}
        for context in self.instructions:
            value = by_context.get(context.id)
            if value is not None:
                key = context.module, context.offset
                sums[key] = sums.get(key, 0.0) + value
        return sums


def kernel_contexts(database: Database, section_of: SectionOf) -> list[KernelContexts]:
    """The kernels in the order of the tree.

    Without the structure of a binary the instructions of a launch lie beside its kernel, in no function.
    """
    kernels: dict[tuple[str, int, str], KernelContexts] = {}
    kernel_of: dict[int, KernelContexts] = {}
    loose: dict[int, Context] = {}  # by id, in no function: the launch that they are of
    contexts = database.meta.contexts
    for context in contexts.values():
        if context.parent is None:
            continue
        launch = contexts[context.parent]
        if launch.is_kernel_launch:
            module, offset, name = _called(context)
            if not module:
                loose[context.id] = launch
                continue
            kernel = kernels.setdefault((module, offset, name), KernelContexts(module, offset, name))
            kernel.launches.append(context)
            kernel_of[context.id] = kernel
        elif context.parent in kernel_of:
            kernel_of[context.id] = kernel_of[context.parent]
        elif context.parent in loose:
            loose[context.id] = loose[context.parent]
    sampled = list(kernels.values())
    for context in contexts.values():
        if context.lexical != Lexical.INSTRUCTION or not context.module:
            continue
        of = kernel_of.get(context.id)
        if of is None and context.id in loose:
            of = _owner(context, loose[context.id], sampled, section_of)
        if of is not None:
            of.instructions.append(context)
    return sampled


def _owner(
    context: Context, launch: Context, kernels: list[KernelContexts], section_of: SectionOf
) -> KernelContexts | None:
    """The kernel of a loose instruction: that of its section, else the only one of its launch."""
    section = section_of(context.module, context.offset)
    launched = [
        kernel for kernel in kernels if any(context.parent == launch.id for context in kernel.launches)
    ]
    same = [kernel for kernel in launched if section_of(kernel.module, kernel.offset) == section]
    chosen = same or launched
    return chosen[0] if len(chosen) == 1 else None


def _called(context: Context) -> tuple[str, int, str]:
    if context.function is not None and context.function.module:
        return context.function.module, context.function.offset, context.function.name
    name = context.function.name if context.function is not None else ""
    return context.module, context.offset, name


def call_stack(database: Database, kernel: KernelContexts, metric: str) -> tuple[CallFrame, ...]:
    """The host's way to those launches of a kernel that have the most of a metric, innermost first."""
    weights = database.by_context(metric, EXECUTION)
    context = max(kernel.launches, key=lambda launch: (weights.get(launch.id, 0.0), -launch.id))
    frames: list[CallFrame] = []
    file, line, module, offset = "", 0, "", 0
    for above in _ancestors(database, context):
        if above.lexical in {Lexical.LINE, Lexical.LOOP} and not line and not above.file.startswith("["):
            file, line = above.file, above.line
        if above.lexical == Lexical.INSTRUCTION and not module:
            module, offset = above.module, above.offset
        bare = above.lexical == Lexical.INSTRUCTION and above.relation == Relation.CALL
        if (above.function is None and not bare) or above.is_kernel_launch or above.parent is None:
            continue
        function = above.function
        module_path = module or (function.module if function is not None else "")
        frames.append(
            CallFrame(
                module=module_path or None,
                address=offset or None,
                function=function.name if function is not None else None,
                file=file or None,
                line=line or None,
            )
        )
        file, line, module, offset = "", 0, "", 0
    return tuple(frames)


def _ancestors(database: Database, context: Context) -> list[Context]:
    above: list[Context] = []
    while context.parent is not None:
        context = database.meta.contexts[context.parent]
        above.append(context)
    return above


@dataclass(frozen=True, slots=True)
class LaunchNumbers:
    """Means over the launches of a kernel; None where they were not measured."""

    launches: int
    duration_ns: float | None  # of all together
    blocks: int | None
    threads: int | None
    registers: int | None
    static_shared: int | None
    dynamic_shared: int | None
    varied: bool  # some of these differ between launches


def launch_numbers(database: Database, kernel: KernelContexts) -> LaunchNumbers:
    """What the database says of the launches of a kernel."""

    def total(*names: str) -> float:
        return kernel.sum(database.by_context(database.first(names), POINT))

    launches = round(total("GKER:COUNT"))
    seconds = total("GKER (sec)", "GKER (s)")
    threads = total("GKER:BLK_THR_ACUMU")
    # Newer ones divide a launch's blocks by the size of a block: 611 for 156,250 of 256 threads.
    blocks = total("GKER:BLKS_ACUMU") or (
        total("GKER:BLKS_AVG_ACUMU") * threads / launches if launches else 0.0
    )
    sums = {
        "blocks": blocks,
        "threads": threads,
        "registers": total("GKER:THR_REG_ACUMU", "GKER:THR_SREG_ACUMU"),
        "static_shared": total("GKER:STMEM_ACUMU (B)", "GKER:STMEM_ACUMU (b)"),
        "dynamic_shared": total("GKER:DYMEM_ACUMU (B)", "GKER:DYMEM_ACUMU (b)"),
    }
    means = {name: value / launches for name, value in sums.items()} if launches else {}
    return LaunchNumbers(
        launches=launches,
        duration_ns=1e9 * seconds or None,
        blocks=round(means["blocks"]) or None if means else None,
        threads=round(means["threads"]) or None if means else None,
        registers=round(means["registers"]) or None if means else None,
        static_shared=round(means["static_shared"]) if means else None,
        dynamic_shared=round(means["dynamic_shared"]) if means else None,
        varied=any(value != int(value) for value in means.values()),
    )
