# SPDX-License-Identifier: Apache-2.0
"""A code section as flat arrays for the inner loop, one row per 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpadvisor.errors import UsageError
from gpadvisor.machine import code_form
from gpadvisor.machine.timing import Timing
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.machine import WARP, MachineModel
from gpadvisor.model.program import Function, Program
from gpadvisor.simulator.addresses import branch_predicate, is_uniform
from gpadvisor.simulator.by_data import Loaded, follow_loaded
from gpadvisor.simulator.caches import INTERLEAVED, THROUGH_L1, THROUGH_L2
from gpadvisor.simulator.configuration import (
    ASSUMED_HIT_RATE,
    BY_DATA_L1_HITS,
    BY_DATA_L2_HITS,
    SimulationConfig,
)
from gpadvisor.simulator.control import (
    Decision,
    decisions,
    guarded_access,
    indirect_targets,
    is_conditional,
    jumps,
)
from gpadvisor.simulator.lowered import Lowered, LoweredFlow, empty_code, empty_slice
from gpadvisor.simulator.meanings import NOT_KNOWN, REGISTER, TRUE, Meaning, Op
from gpadvisor.simulator.parameters import constant_words
from gpadvisor.simulator.pointers import pointer_words
from gpadvisor.simulator.resources import Use, use_of
from gpadvisor.simulator.slices import Relevance, SectionGraph, relevance
from gpadvisor.simulator.unrolling import lines_of_loops


def lower(
    program: Program, kernel: Function, machine: MachineModel, timing: Timing, config: SimulationConfig
) -> Lowered:
    """Lower the section of a kernel, with the functions in it."""
    functions = tuple(function for function in program.functions if function.section == kernel.section)
    constants = constant_words(program.arch, config)
    pointers = {}
    if not config.arguments:
        pointers = pointer_words(functions, constants, code_form(program.arch).parameters_at)
        constants |= pointers
    graph = SectionGraph(functions)
    followed = relevance(graph, constants.get, addresses=True)
    loaded = follow_loaded(graph, followed, config.block)
    lowering = _Lowering(functions, followed, loaded, config)
    if pointers:
        lowering.note(f"pointers among the parameters ({len(pointers) // 2}) are aligned as allocations are")
    for line in sorted(
        set(config.loop_trips) - {line for function in functions for line in lines_of_loops(function)}
    ):
        lowering.note(f"line {line}, for which iterations are told, has no loop in the machine code")
    for function in functions:
        first = function.start // INSTRUCTION_BYTES
        like_branches = jumps(function)
        for index, decision in decisions(program, function, config).items():
            lowering.decide(first + index, decision)
        for index, instruction in enumerate(function.instructions):
            if first + index in loaded.guards:
                lowering.decide(first + index, guarded_access(function, index, config))
            lowering.add(first + index, instruction, use_of(instruction, timing, machine), machine)
            if instruction.info.opclass is OpcodeClass.MEMORY_BARRIER:
                lowering.code.fence[first + index] = fence_cycles(instruction, timing)
            if index in like_branches:
                lowering.code.flow[first + index] = LoweredFlow.BRANCH
                lowering.code.conditional[first + index] = is_conditional(instruction)
            if instruction.info.opclass is OpcodeClass.INDIRECT_BRANCH:
                lowering.list_targets(first + index, indirect_targets(function, index))
        lowering.rates(function)
    if not functions:
        raise UsageError(f"kernel {kernel.name} has no code to simulate")
    return lowering.finish(kernel.start // INSTRUCTION_BYTES)


_WRITTEN_THROUGH: Final = frozenset({OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
"""Accesses that go to L2 whatever L1 holds: on an H100 stores to local memory, too."""
_L1_PASSED_BY: Final = frozenset({"STRONG", "MMIO", "BYPASS"})
"""Of loads that ask for what other SMs have stored meanwhile, and of copies that leave L1 alone."""
_FLOWS: Final = {
    OpcodeClass.BRANCH: LoweredFlow.BRANCH,
    OpcodeClass.INDIRECT_BRANCH: LoweredFlow.INDIRECT,
    OpcodeClass.CALL: LoweredFlow.CALL,
    OpcodeClass.RETURN: LoweredFlow.RETURN,
    OpcodeClass.EXIT: LoweredFlow.EXIT,
    OpcodeClass.BARRIER: LoweredFlow.BARRIER,
    OpcodeClass.MEMORY_BARRIER: LoweredFlow.FENCE,
    OpcodeClass.SLEEP: LoweredFlow.SLEEP,
}
_FLOWS_BY_OPCODE: Final = {
    "BSSY": LoweredFlow.MARK,
    "BSYNC": LoweredFlow.CONVERGE,
    "BREAK": LoweredFlow.BREAK,
    "LDGDEPBAR": LoweredFlow.ASYNC_GROUP,
    "SYNCS": LoweredFlow.TRY_WAIT,
}
_NOT_MODELLED: Final = {
    OpcodeClass.CLUSTER_BARRIER: "cluster barriers are passed without waiting",
}


class _Lowering:
    """Fills the arrays."""

    def __init__(
        self, functions: Sequence[Function], followed: Relevance, loaded: Loaded, config: SimulationConfig
    ) -> None:
        self._functions = tuple(functions)
        self._followed = followed
        self._loaded = loaded
        self._config = config
        count = max((f.start // INSTRUCTION_BYTES + len(f.instructions) for f in functions), default=0) + 1
        self._count = count
        registers = sorted(followed.registers)
        words = [register for register in registers if (register >> 8) % 2 == 0]
        predicates = [register for register in registers if (register >> 8) % 2 == 1]
        self._slot = {word: index for index, word in enumerate(words)}
        self._flag = {predicate: position for position, predicate in enumerate(predicates)}
        self.code = empty_code(count)
        widest = max((len(m.results) for m in followed.meanings.values()), default=1)
        kills = max((len(self._killed(place)) for place in followed.meanings), default=1)
        self.slice = empty_slice(count, max(2, widest, kills))
        self._registers: list[int] = []
        self._listed: list[int] = []
        self._decisions: dict[int, Decision] = {}
        self._notes: dict[str, None] = {}
        self._unknown: dict[str, int] = {}
        self._instructions: dict[int, Instruction] = {}

    def _killed(self, place: int) -> list[int]:
        return [self._slot[register] for register in self._followed.written[place] if register in self._slot]

    # ---- one instruction ----

    def add(self, place: int, instruction: Instruction, use: Use, machine: MachineModel) -> None:
        """Lower one instruction."""
        code, control = self.code, instruction.control
        self._instructions[place] = instruction
        flow = _flow_of(instruction)
        if flow is LoweredFlow.BARRIER and int(instruction.pc) in self._config.passed_barriers:
            flow = LoweredFlow.PLAIN
        code.flow[place] = flow
        if instruction.target is not None:
            code.target[place] = instruction.target // INSTRUCTION_BYTES
        if flow is LoweredFlow.RETURN and instruction.uses:
            code.target[place] = self._slot.get(int(instruction.uses[-1]) - 1, -1)
        code.conditional[place] = flow is not LoweredFlow.BRANCH or is_conditional(instruction)
        guard = (TRUE, False) if instruction.guard is None else (
            int(instruction.guard.register), instruction.guard.negated)  # fmt: skip
        code.guard[place], code.guard_negated[place] = self._predicate(guard[0]), guard[1]
        second = branch_predicate(instruction) or (TRUE, False)
        code.second[place], code.second_negated[place] = self._predicate(second[0]), second[1]
        code.stall[place] = max(1, control.stall_cycles)
        code.yields[place] = not control.yield_flag and control.stall_cycles < 12
        code.wait_mask[place] = control.wait_mask
        code.write_barrier[place] = -1 if control.write_barrier is None else control.write_barrier
        code.read_barrier[place] = -1 if control.read_barrier is None else control.read_barrier
        code.unit[place], code.interval[place] = use.unit, use.interval
        code.access[place], code.latency[place], code.long[place] = use.access, use.latency, use.long
        code.width[place] = instruction.width_bytes or 4
        code.operation[place] = use.operation
        self._barriers(place, instruction, flow)
        self._fixed(place, instruction, machine)
        self._address(place, instruction)
        self._meaning(place, instruction)
        code.defs[place] = self._range(instruction.defs)
        code.uses[place] = self._range(instruction.uses)
        self._remark(instruction)

    def _predicate(self, which: int) -> int:
        return -1 if which == TRUE else self._flag.get(which, -3)

    def _range(self, registers: Sequence[int]) -> tuple[int, int]:
        start = len(self._registers)
        self._registers.extend(int(register) for register in registers)
        return start, len(self._registers)

    def _barriers(self, place: int, instruction: Instruction, flow: LoweredFlow) -> None:
        code = self.code
        first = instruction.operands.partition(",")[0].strip()
        if flow in {LoweredFlow.MARK, LoweredFlow.CONVERGE, LoweredFlow.BREAK}:
            digits = first.split()[-1].lstrip("B") if first else ""
            code.barrier[place] = int(digits) & 15 if digits.isdecimal() else 0
        elif flow in {LoweredFlow.BARRIER, LoweredFlow.ARRIVE}:
            parts = instruction.operand_texts
            numbers = [int(part, 16) for part in parts if part.startswith("0x")]
            code.barrier[place] = numbers[0] & 15 if numbers else 0
            code.barrier_warps[place] = numbers[1] // WARP if len(numbers) > 1 else 0
        elif instruction.partial_wait is not None:
            code.barrier[place] = instruction.partial_wait.barrier
            code.keep[place] = instruction.partial_wait.keep
        elif flow is LoweredFlow.SLEEP and first.startswith("0x"):
            code.fence[place] = min(int(first, 16), 1 << 20)

    def _fixed(self, place: int, instruction: Instruction, machine: MachineModel) -> None:
        if instruction.info.variable_latency or not instruction.defs:
            return
        row = machine.latency(instruction.opcode, instruction.modifiers)
        if row is not None:
            self.code.fixed[place] = min(row.min_cycles, 64), min(row.max_cycles, 64)

    def _address(self, place: int, instruction: Instruction) -> None:
        code, config = self.code, self._config
        base = self._followed.bases.get(place)
        if base is not None:
            registers, offset = base
            slots = [self._slot[register] for register, _ in registers]
            code.base[place] = [*slots, -1, -1][:2]
            code.base_shift[place] = [*(shift for _, shift in registers), 0, 0][:2]
            code.base_offset[place] = offset
            code.followed[place] = True
            code.by_data[place] = self._loaded.addresses.get(place, 0)
        pc = int(instruction.pc)
        sectors = config.sectors_per_request_at.get(pc, config.sectors_per_request)
        ways = config.bank_conflict_ways_at.get(pc, config.bank_conflict_ways)
        code.sectors[place] = -1.0 if sectors is None else max(0.0, sectors)
        code.ways[place] = -1.0 if ways is None else max(1.0, ways)

    def rates(self, function: Function) -> None:
        """Hit rates of a function's accesses."""
        config = self._config
        first = function.start // INSTRUCTION_BYTES
        for index, instruction in enumerate(function.instructions):
            local = instruction.info.space is MemorySpace.LOCAL
            entry = function.lines[index]
            line = -1 if entry is None else entry.location.line
            l1, l2 = (
                config.l1_hit_rate_at.get(line, config.local_hit_rate if local else config.l1_hit_rate),
                config.l2_hit_rate_at.get(line, 1.0 if local else config.l2_hit_rate),
            )
            through_l2 = instruction.info.opclass in _WRITTEN_THROUGH
            if local:
                self.code.looked_up[first + index] = INTERLEAVED
            elif l1 is None and l2 is None:
                l2_alone = through_l2 or not _L1_PASSED_BY.isdisjoint(instruction.modifiers)
                self.code.looked_up[first + index] = THROUGH_L2 if l2_alone else THROUGH_L1
            by_data = first + index in self._loaded.addresses
            l1 = 0.0 if through_l2 else l1
            self.code.l1_hit[first + index] = _assumed(BY_DATA_L1_HITS, by_data=by_data) if l1 is None else l1
            self.code.l2_hit[first + index] = _assumed(BY_DATA_L2_HITS, by_data=by_data) if l2 is None else l2

    def _meaning(self, place: int, instruction: Instruction) -> None:
        meaning = self._followed.meanings.get(place)
        if meaning is None:
            return
        out = self.slice
        out.op[place] = meaning.op
        out.mode[place], out.table[place], out.signed[place] = meaning.mode, meaning.table, meaning.signed
        out.drawn[place] = self._loaded.draws.get(place, 0)
        out.guard[place], out.guard_negated[place] = self.code.guard[place], self.code.guard_negated[place]
        for k, source in enumerate(meaning.sources[:4]):
            slot = self._slot.get(source.value, -1) if source.kind == REGISTER else source.value
            out.source_kind[place, k] = NOT_KNOWN if slot == -1 and source.kind == REGISTER else source.kind
            out.source_value[place, k] = slot
            out.source_how[place, k] = source.how
        for k, (which, negated) in enumerate(meaning.predicates[:3]):
            out.read[place, k], out.read_negated[place, k] = self._predicate(which), negated
        if meaning.op == 1:
            self._kill(place, instruction)
        else:
            self._results(place, instruction, meaning)

    def _results(self, place: int, instruction: Instruction, meaning: Meaning) -> None:
        out = self.slice
        for k, result in enumerate(meaning.results):
            out.result[place, k] = self._slot.get(result, -1)
        for k, flag in enumerate(meaning.flags[:8]):
            out.flag[place, k] = self._flag.get(flag, -1)
        written = [*meaning.results, *(flag for flag in meaning.flags if flag >= 0)]
        out.uniform[place] = any(is_uniform(register) for register in written if register >= 0)
        if set(self._followed.written[place]) - set(written):  # more than is followed
            out.op[place] = Op.UNKNOWN
            self._kill(place, instruction)

    def _kill(self, place: int, instruction: Instruction) -> None:
        out = self.slice
        out.result[place] = -1
        out.flag[place] = -1
        for k, slot in enumerate(self._killed(place)):
            out.result[place, k] = slot
        flags = [self._flag[int(register)] for register in instruction.defs if int(register) in self._flag]
        for k, flag in enumerate(flags[:8]):
            out.flag[place, k] = flag
        out.uniform[place] = any(is_uniform(int(register)) for register in instruction.defs)

    def _remark(self, instruction: Instruction) -> None:
        if not instruction.info.known:
            self._unknown[instruction.opcode] = self._unknown.get(instruction.opcode, 0) + 1
        note = _NOT_MODELLED.get(instruction.info.opclass)
        if note is not None:
            self._notes[note] = None
        if instruction.info.opclass is OpcodeClass.CALL and instruction.target is None:
            self._notes["calls into other sections or through pointers return at once"] = None
        if instruction.info.opclass is OpcodeClass.ASYNC_COPY and instruction.opcode != "LDGSTS":
            self._notes["bulk copies take one memory latency, whatever their size"] = None

    # ---- the rest ----

    def note(self, text: str) -> None:
        """Something that is taken for granted."""
        self._notes[text] = None

    def decide(self, place: int, decision: Decision) -> None:
        """What to do where the condition is not known."""
        self.code.rule[place] = decision.rule
        self.code.taken[place] = decision.taken
        self.code.trips[place] = decision.trips
        self.code.counter[place] = len(self._decisions)
        self._decisions[place] = decision

    def list_targets(self, place: int, targets: Sequence[int]) -> None:
        """Where an indirect branch may go."""
        self.code.targets[place] = len(self._listed), len(self._listed) + len(targets)
        self._listed.extend(targets)
        self._notes["targets of indirect branches are drawn evenly from those in the code"] = None

    def finish(self, entry: int) -> Lowered:
        """The finished arrays."""
        code = self.code._replace(
            registers=np.array(self._registers or [0], dtype=np.int32),
            listed=np.array(self._listed or [0], dtype=np.int32),
        )
        return Lowered(
            code=code,
            slice=self.slice,
            entry=entry,
            functions=self._functions,
            instructions=self._instructions,
            decisions=self._decisions,
            slots=max(1, len(self._slot)),
            flags=max(1, len(self._flag)),
            counters=max(1, len(self._decisions)),
            notes=tuple(self._notes),
            unknown=self._unknown,
        )


def _assumed(rate: float, *, by_data: bool) -> float:
    return rate if by_data else ASSUMED_HIT_RATE


def _flow_of(instruction: Instruction) -> LoweredFlow:
    opclass = instruction.info.opclass
    if instruction.partial_wait is not None:
        return LoweredFlow.PARTIAL_WAIT
    if opclass is OpcodeClass.NOP:
        return (
            LoweredFlow.EXIT
            if instruction.opcode == "BPT" and "TRAP" in instruction.modifiers
            else LoweredFlow.PLAIN
        )
    by_opcode = _FLOWS_BY_OPCODE.get(instruction.opcode)
    if by_opcode is LoweredFlow.TRY_WAIT and "TRYWAIT" not in instruction.modifiers:
        return LoweredFlow.PLAIN
    if by_opcode is not None:
        return by_opcode
    if opclass is OpcodeClass.BARRIER and "ARV" in instruction.modifiers:
        return LoweredFlow.ARRIVE
    if opclass is OpcodeClass.DEPENDENCY_BARRIER and instruction.opcode == "WARPGROUP":
        return LoweredFlow.MATRIX_WAIT
    if instruction.opcode == "ERRBAR":
        return LoweredFlow.PLAIN
    return _FLOWS.get(opclass, LoweredFlow.PLAIN)


def fence_cycles(instruction: Instruction, timing: Timing) -> int:
    """How long a fence takes when nothing is outstanding."""
    if any(scope in instruction.modifiers for scope in ("SYS", "ALL.SYS")):
        return timing.fence_system_cycles
    return timing.fence_block_cycles if "CTA" in instruction.modifiers else timing.fence_gpu_cycles
