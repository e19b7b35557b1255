# SPDX-License-Identifier: Apache-2.0
"""Loop unrolling in words: the loop, and what lets loads of several passes be in flight together."""

from __future__ import annotations

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import lacks_warps
from gpadvisor.estimators.unrolling import Outlook
from gpadvisor.estimators.utilisation import ISSUE, measured_loads
from gpadvisor.evidence.held_passes import Held, is_stepped_by_launch
from gpadvisor.evidence.loops import LoopFacts, loop_facts
from gpadvisor.evidence.measured import registers_per_thread
from gpadvisor.evidence.queries import line_text, location_text
from gpadvisor.evidence.rolled_loops import UNROLL
from gpadvisor.model.advice import Region
from gpadvisor.model.ids import LoopId
from gpadvisor.model.program import Function


def place_of(context: KernelContext, region: Region) -> str:
    """The loop of a region, by its line where there is one."""
    scope = region.scope
    if scope.location is not None:
        return f"the loop at {location_text(scope.location)}"
    if scope.function is None or scope.loop is None:
        return "the loop"
    function = context.program.functions[scope.function]
    header = function.blocks[function.loops[scope.loop].header]
    return f"the loop at 0x{function.instructions[header.start].pc:x}"


def advice_of(context: KernelContext, region: Region, outlook: Outlook) -> str:
    """The change for one loop, and what stands in its way where that is most of it."""
    if region.scope.function is None or region.scope.loop is None:
        return f"Unroll the loop{terms.UNROLLED.of(context.language, times=UNROLL)}."
    function = context.program.functions[region.scope.function]
    facts = loop_facts(function, region.scope.loop)
    where = place_of(context, region)
    if outlook.held is not None:
        text = _loads_first(context, function, facts, outlook.held, where)
    else:
        text = _unroll(context, facts, where, signed=_signed(context, function, region.scope.loop))
    if outlook.store is not None and outlook.share >= constants.MAJORITY:
        place = line_text(function, outlook.store)
        restrict = terms.MARK_POINTERS.of(context.language, too=", too,")
        text = f"{text[:-1]}; {restrict}, so that loads may pass the store at {place}."
    if outlook.share < constants.MAJORITY and outlook.reasons:
        text += f" Little may come of it: {outlook.reasons[0]}."
    return text


def _loads_first(context: KernelContext, function: Function, facts: LoopFacts, held: Held, where: str) -> str:
    """The change that the compiler cannot make, as it moves no load over a store or a branch."""
    passes = UNROLL * facts.copies if lacks_warps(context) else UNROLL
    passes = min(passes, facts.trips or passes)
    place = line_text(function, held.index)
    if held.is_store:
        first, obstacle = "before it stores", f"the store of the pass before at {place}, to the same array"
    else:
        stays = terms.STAYS_FIRST.of(context.language)
        first, obstacle = f"before it uses them{stays}", f"the branch of the pass before at {place}"
    return (
        f"Load what {passes} passes of {where} need into an array of registers {first}: unrolled as it is, "
        f"each pass loads behind {obstacle}."
    )


def _unroll(context: KernelContext, facts: LoopFacts, where: str, *, signed: str) -> str:
    language = context.language
    unrolled = terms.UNROLLED.of(language, times=UNROLL)
    if facts.copies > 1 and lacks_warps(context):
        further = terms.UNROLLED_FURTHER.of(language, times=UNROLL * facts.copies, now=facts.copies)
        return (
            f"Unroll {where} further{further}{_room(context)}, so that more loads are in flight: the grid "
            "gives an SM no other warps that would fill their wait."
        )
    if facts.copies > 1:
        return (
            f"Start loads of {where} earlier if nothing they need is in the way: it is unrolled "
            f"{facts.copies} times already."
        )
    if facts.trips is not None and facts.trips <= 32:
        return f"Unroll {where} completely{terms.UNROLLED_ALL.of(language)}: it runs {facts.trips} passes."
    if _issues_all_the_time(context):
        return (
            f"Unroll {where}{unrolled}, so that it counts, steps its addresses and jumps "
            "once for several passes: the schedulers are at their limit."
        )
    return f"Unroll {where}{unrolled}, so that the loads of several passes are in flight together{signed}."


def _signed(context: KernelContext, function: Function, loop: LoopId) -> str:
    stepped = is_stepped_by_launch(function, loop, context.program.form)
    return terms.SIGNED_STEP.of(context.language) if stepped else ""


def _room(context: KernelContext) -> str:
    """The launch bounds without which the compiler orders loads for as many threads as an SM has room for."""
    facts = context.program.facts.get(context.kernel)
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    sm = context.machine.sm
    if context.profile is None or registers is None or (facts is not None and facts.min_blocks_per_sm):
        return ""
    if registers > sm.registers.value // sm.max_threads.value:
        return ""  # it has taken more than would let the most threads be there
    launch, sms = context.profile.launch, context.profile.device.sms
    blocks = -(-launch.blocks // sms) if sms else 1
    bounds = terms.LAUNCH_BOUNDS_OF.of(context.language, bounds=f"{launch.threads_per_block}, {blocks}")
    return f" with {bounds}"


def _issues_all_the_time(context: KernelContext) -> bool:
    full = busiest_after(measured_loads(context), ())
    return full is not None and full.unit.name == ISSUE and full.unit.percent >= constants.HIGH_PERCENT
