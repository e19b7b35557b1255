# SPDX-License-Identifier: Apache-2.0
"""What to say of loads and stores that the source keeps where they are, without samples."""

from __future__ import annotations

from gpadvisor.estimators import terms
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.kept_elements import in_register
from gpadvisor.evidence.accumulators import kept_in_memory
from gpadvisor.evidence.queries import kernel_functions, line_text
from gpadvisor.evidence.reordering import COVERING, held_loads
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import is_launched_by_library
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import capitalised
from gpadvisor.model.stalls import StallClass


def static_remedies(context: KernelContext) -> tuple[Remedy, ...]:
    """What the advice without samples asks for."""
    held, kept = held_sites(context), kept_sites(context)
    return tuple(remedy for sites, remedy in ((held, Remedy.RESTRICT), (kept, Remedy.KEEP_ELEMENT)) if sites)


def held_sites(context: KernelContext) -> tuple[StaticSite, ...]:
    """Loads in loops that are used at once, behind a store that may alias; a library has its own pointers."""
    sites = []
    for function in kernel_functions(context.program, context.kernel):
        if is_launched_by_library(function.demangled):
            continue
        for load, use, store in held_loads(function, COVERING[StallClass.MEMORY], context.program.form):
            apart = f"{use - load} instruction{'s' if use - load > 1 else ''}"
            detail = (
                f"{function.instructions[load].opcode} used {apart} later, behind the store of "
                f"{line_text(function, store)}"
            )
            sites.append(StaticSite(function=function.id, index=load, detail=detail))
    return tuple(sites)


def kept_sites(context: KernelContext) -> tuple[StaticSite, ...]:
    """Stores to an element that its loop could keep in a register, one for each line."""
    sites: dict[str, StaticSite] = {}
    for function in kernel_functions(context.program, context.kernel):
        for index in sorted(kept_in_memory(function)):
            if function.instructions[index].info.opclass is OpcodeClass.STORE:
                detail = "element written in every pass of its loop"
                site = StaticSite(function=function.id, index=index, detail=detail)
                sites.setdefault(line_text(function, index), site)
    return tuple(sites.values())


def static_advice(context: KernelContext) -> str:
    """What to do about both."""
    parts = []
    sites, static_sites = held_sites(context), kept_sites(context)
    if sites:
        first = sites[0]
        place = line_text(context.program.functions[first.function], first.index)
        parts.append(
            f"{terms.MARK_POINTERS.of(context.language, too='')}, so that the load at {place} may move ahead "
            "of the store before it; else load into a local variable before the store."
        )
    if static_sites:
        sentence = in_register(context.program.functions[static_sites[0].function], static_sites[0].index)
        parts.append(capitalised(sentence))
    return " ".join(parts)
