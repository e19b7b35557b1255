# SPDX-License-Identifier: Apache-2.0
"""The sentences of findings and causes: what the hardware does, then the share, then the range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpadvisor.editor.show.words import clean, plural, reason_words, shorten
from gpadvisor.model.advice import Estimate, KernelAdvice
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.figures import short_percent
from gpadvisor.model.instruction import Instruction, OpcodeClass

_MODIFIERS: Final = 2
_OPCODES: Final = 3
_OPCODE_LETTERS: Final = 40
_CLASS_WORDS: Final = {
    DependencyClass.GLOBAL_MEMORY: "global memory",
    DependencyClass.LOCAL_MEMORY: "local memory",
    DependencyClass.CONSTANT_MEMORY: "constant memory",
    DependencyClass.TEXTURE: "texture",
    DependencyClass.SHARED_MEMORY: "shared memory",
    DependencyClass.ARITHMETIC: "arithmetic",
    DependencyClass.WRITE_AFTER_READ: "write after read",
    DependencyClass.SCHEDULE: "fixed latency",
    DependencyClass.SYNCHRONIZATION: "barrier",
    DependencyClass.MEMORY_BARRIER: "fence",
    DependencyClass.STORE_IN_FLIGHT: "stores in flight",
    DependencyClass.ASYNC_COPY: "asynchronous copy",
    DependencyClass.TENSOR: "tensor core",
}
_VERBS: Final = {
    OpcodeClass.LOAD: "loads it",
    OpcodeClass.ATOMIC: "updates it",
    OpcodeClass.REDUCTION: "updates it",
    OpcodeClass.STORE: "stores it",
    OpcodeClass.ASYNC_COPY: "copies it",
    OpcodeClass.CONVERSION: "converts it",
    OpcodeClass.BARRIER: "is the barrier",
    OpcodeClass.CLUSTER_BARRIER: "is the barrier",
    OpcodeClass.MBARRIER: "is the barrier",
    OpcodeClass.MEMORY_BARRIER: "is the fence",
    OpcodeClass.SHUFFLE: "exchanges it",
    OpcodeClass.CALL: "is the call",
}
_BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER, OpcodeClass.MBARRIER})


def opcode(instruction: Instruction) -> str:
    """The mnemonic with its first modifiers: ``LDG.E.64``."""
    # A snapshot carries its disassembly, which anybody can have written.
    return clean(".".join((instruction.opcode, *instruction.modifiers[:_MODIFIERS])))[:_OPCODE_LETTERS]


def opcodes(names: Iterable[str]) -> str:
    """The first few different mnemonics."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _OPCODES} more" if len(distinct) > _OPCODES else ""
    return ", ".join(distinct[:_OPCODES]) + more


def resource(definition: Instruction, use: Instruction, kind: DependencyClass) -> str:
    """What links the two: the class of the dependency, and the scoreboard where the use waits for one."""
    control = definition.control
    read = kind is DependencyClass.WRITE_AFTER_READ
    scoreboard = control.read_barrier if read else control.write_barrier
    words = _CLASS_WORDS.get(kind, "")
    if scoreboard is not None and scoreboard in use.control.waits:
        return f"{words}, scoreboard B{scoreboard}" if words else f"scoreboard B{scoreboard}"
    return words


def cause_words(
    definition: Instruction, use: Instruction, kind: DependencyClass, distance: int | None
) -> str:
    """At the cause: ``LDG.E loads it here, 26 instructions before FFMA (global memory, scoreboard B0)``."""
    if kind is DependencyClass.SYNCHRONIZATION:
        if definition.info.opclass in _BARRIERS:
            return f"{opcode(definition)} here waits for the slower warps"
        return f"{opcode(definition)} here is what the slower warps are at (barrier)"
    if kind is DependencyClass.QUEUE:
        return f"{opcode(definition)} here fills the queue or pipe that {opcode(use)} waits for"
    verb = _VERBS.get(definition.info.opclass, "computes it")
    linked = resource(definition, use, kind)
    apart = "" if distance is None else f", {plural(distance, 'instruction')} before {opcode(use)}"
    return f"{opcode(definition)} {verb} here{apart}" + (f" ({linked})" if linked else "")


def use_words(
    definition: Instruction,
    use: Instruction,
    kind: DependencyClass,
    distances: Sequence[int],
    share: str,
) -> str:
    """Where the warps wait: ``FFMA waits here for LDG.E, 2 instructions later: 27 % of ... (...)``."""
    if kind is DependencyClass.SYNCHRONIZATION:
        return f"{_at_barrier(definition, use)}: {share}"
    if kind is DependencyClass.QUEUE:
        return f"{opcode(use)} waits here for its turn, behind {opcode(definition)}: {share}"
    linked = resource(definition, use, kind)
    return f"{opcode(use)} waits here for {opcode(definition)}{_apart(distances)}: {share}" + (
        f" ({linked})" if linked else ""
    )


def _at_barrier(definition: Instruction, use: Instruction) -> str:
    """Who waits for whom: the sampled instruction is the barrier itself, or the one right behind it."""
    position = "at" if use.info.opclass in _BARRIERS else "before"
    what_for = "for the others to arrive" if definition.info.opclass in _BARRIERS else "for warps still at "
    slow = "" if definition.info.opclass in _BARRIERS else opcode(definition)
    return f"warps wait here, {position} {opcode(use)}, {what_for}{slow}"


def _apart(distances: Sequence[int]) -> str:
    if not distances:
        return ""
    near, far = min(distances), max(distances)
    return f", {plural(far, 'instruction')} later" if near == far else f", {near} to {far} instructions later"


def own_words(use: Instruction, reason: str, share: str, times: int) -> str:
    """A stall whose cause is the sampled instruction."""
    several = f" ({times} of them)" if times > 1 else ""
    return f"{opcode(use)} here{several}: {share} ({reason_words(reason)})"


def part_words(samples: int, total: int) -> str:
    """A share of the samples of the kernel that was named before."""
    return f"{short_percent(samples / total) if total else '0 %'} of the samples"


def share_words(samples: int, total: int, kernel: str) -> str:
    """A share with its population."""
    return f"{short_percent(samples / total) if total else '0 %'} of the samples of {clean(kernel)}"


def sampled_message(*, share: str, waited: str, waiting: str, reasons: str) -> str:
    """Where the samples are: blamed ones wait for an instruction, others are at it."""
    if waited:
        return f"{share} wait for {waited} on this line ({reasons})."
    return f"{share} are at {waiting} on this line ({reasons})."


def estimate_words(estimate: Estimate | None, lines: int, matched: str) -> str:
    """That the gain is of all lines of a suggestion together, where it has several."""
    if estimate is None or lines < 2:
        return ""
    number = "both" if lines == 2 else f"all {lines}"
    return f" The gain is of {number} lines together ({matched})."


def static_message(names: Sequence[str], details: Sequence[str]) -> str:
    """What of a pattern the machine code shows, without samples."""
    number = plural(len(names), "instruction")
    text = "; ".join(dict.fromkeys(detail for detail in details if detail))
    sentence = f": {shorten(text, 160)}" if text else ""
    where = f"{number} on this line ({opcodes(names)})"
    return f"{where}{sentence}. No gain is known, as nothing was sampled."


def folded_words(share_of_kernel: Mapping[str, str]) -> str:
    """What the other kernels that share the line have of it."""
    if not share_of_kernel:
        return ""
    parts = [f"{clean(name)} {share}".strip() for name, share in list(share_of_kernel.items())[:3]]
    more = f" and {len(share_of_kernel) - 3} more" if len(share_of_kernel) > 3 else ""
    return f" Also in {', '.join(parts)}{more}."


def trace_of(advice: KernelAdvice) -> str:
    """The name of the trace that a kernel's part of the time is of; none where no run was traced."""
    return "" if advice.in_run is None else clean(advice.in_run.trace)
