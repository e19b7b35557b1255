# SPDX-License-Identifier: Apache-2.0
"""Laws of the blamer on random programs and samples: nothing is lost, and order is of no matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.assembly import function_of, model, profile_of, program_of
from tests.blame_rows import assert_conserved, rows

from gpadvisor.blamer import DEFAULT_RULES, GPA2021, PAPER, BlameRules, blame
from gpadvisor.blamer.queues import THROTTLES
from gpadvisor.model.blame import Role
from gpadvisor.model.instruction import MemorySpace
from gpadvisor.model.profile import KernelProfile, PcSamples
from gpadvisor.model.program import Program
from gpadvisor.model.stalls import KNOWN_REASONS

RULES = pytest.mark.parametrize("rules", [DEFAULT_RULES, PAPER, GPA2021], ids=lambda rules: rules.name)

LINES = st.sampled_from(
    [
        "LDG.E R0, [R2.64] | W0 S2",
        "LDG.E R1, [R4.64] | W1 R2 S1",
        "LDS R6, [R7] | S1",
        "LDS R8, [R7+0x4] | W3 S2",
        "SHFL.BFLY PT, R9, R8, 0x1, 0x1f | W4 ?3",
        "STG.E [R2.64], R0 | R5 ?0 S2",
        "LDC R10, c[0x0][R11] | W1",
        "LDGSTS.E [R12], [R2.64] | R2",
        "LDGDEPBAR | W0",
        "DEPBAR.LE SB0, 0x1",
        "MUFU.RCP R13, R1 | W4 ?1",
        "FADD R14, R0, R6 | ?03 S4",
        "@P0 FADD R14, R8, R13 | ?4 S5",
        "@!P0 IADD3 R2, R2, R9, RZ | ?25 S4",
        "ISETP.GE.AND P0, PT, R2, R1, PT | ?1 S13",
        "BAR.SYNC.DEFER_BLOCKING 0x0 | S5",
        "MEMBAR.SC.GPU",
        "RED.E.ADD.STRONG.GPU [R2.64], R14",
        "CALL.ABS.NOINC R20",
        "@P1 EXIT | S5",
        "EXIT | S5",
        "NOP",
    ]
)
REASONS = st.sampled_from([*sorted(KNOWN_REASONS), "a_reason_of_tomorrow"])


@st.composite
def kernels(draw: st.DrawFn) -> tuple[Program, KernelProfile]:
    """A function of up to sixteen lines, with samples on it, behind it and outside."""
    count = draw(st.integers(1, 16))
    lines = []
    for at in range(count):
        branch = draw(st.integers(0, 5)) == 0
        guard = draw(st.sampled_from(["", "@P0 ", "@!P1 "]))
        lines.append(
            f"l{at}: " + (f"{guard}BRA l{draw(st.integers(0, count - 1))}" if branch else draw(LINES))
        )
    stalls = st.integers(1, 2000).flatmap(lambda total: st.tuples(st.just(total), st.integers(0, total)))
    samples = draw(st.dictionaries(st.tuples(st.integers(0, count + 1), REASONS), stalls, max_size=25))
    external = draw(st.dictionaries(st.tuples(st.just(1 << 40), REASONS), stalls, max_size=3))
    counts = draw(st.none() | st.dictionaries(st.integers(0, count - 1), st.integers(0, 50), max_size=8))
    reasons = draw(st.permutations([*sorted(KNOWN_REASONS), "a_reason_of_tomorrow"]))
    program = program_of(function_of("\n".join(lines)))
    return program, profile_of(samples, counts=counts, external=external, reasons=reasons)


@RULES
@given(kernel=kernels())
def test_nothing_is_lost(rules: BlameRules, kernel: tuple[Program, KernelProfile]) -> None:
    program, profile = kernel
    result = blame(program, profile, model(), rules)
    assert_conserved(program, profile, result)
    assert result.total_samples == profile.total_samples
    assert result.latency_samples == profile.latency_samples


@given(kernel=kernels())
def test_a_dependency_stall_is_never_its_own_cause_and_no_other_is_without_one(
    kernel: tuple[Program, KernelProfile],
) -> None:
    program, profile = kernel
    result = blame(program, profile, model())
    own = result.rows.role == Role.SELF.value
    for index, reason in enumerate(result.reasons):
        mine = result.rows.reason == index
        if reason.stall_class.is_dependency:
            assert not (mine & own).any(), reason
        elif reason.stall_class in THROTTLES:
            assert not (mine & (result.rows.role == Role.UNATTRIBUTED.value)).any(), reason
        else:
            assert (own[mine]).all(), reason


@RULES
@given(kernel=kernels(), data=st.data())
def test_the_order_of_samples_is_of_no_matter(
    rules: BlameRules, kernel: tuple[Program, KernelProfile], data: st.DataObject
) -> None:
    program, profile = kernel
    table = profile.samples
    order = data.draw(st.permutations(range(len(table.pc))))
    shuffled = PcSamples(
        section=table.section[order],
        pc=table.pc[order],
        reason=table.reason[order],
        total=table.total[order],
        latency=table.latency[order],
    )
    first = blame(program, profile, model(), rules)
    second = blame(program, replace(profile, samples=shuffled), model(), rules)
    assert rows(first) == rows(second)
    assert first.edges == second.edges
    assert first.coverage == second.coverage


@given(kernel=kernels())
def test_scoreboard_stalls_come_from_what_sets_a_waited_scoreboard(
    kernel: tuple[Program, KernelProfile],
) -> None:
    program, profile = kernel
    result = blame(program, profile, model())
    code = program.functions[0].instructions
    for row in rows(result):
        if row.role != "blamed" or row.use is None or not row.reason.endswith("_scoreboard"):
            continue
        assert row.definition is not None
        source, use = code[row.definition], code[row.use]
        # A warp held by DEPBAR is sampled one instruction behind it.
        held = [place for place in code[max(row.use - 1, 0) : row.use] if place.opcode == "DEPBAR"]
        waited = set[int]()
        for place in (*held, use):
            waited.update(place.control.waits)
            if place.partial_wait is not None:
                waited.add(place.partial_wait.barrier)
        set_by_source = {source.control.write_barrier, source.control.read_barrier}
        if waited:
            in_order = source.info.queue is not None or source.opcode == "LDGSTS"
            assert waited & set_by_source or in_order
        else:
            assert set(source.defs) & set(use.uses)


@given(kernel=kernels())
def test_throttles_come_from_what_goes_through_the_queue(kernel: tuple[Program, KernelProfile]) -> None:
    program, profile = kernel
    code = program.functions[0].instructions
    for row in rows(blame(program, profile, model())):
        if row.role != "blamed" or row.dependency != "queue":
            continue
        assert row.definition is not None
        assert row.use is not None
        source, use = code[row.definition], code[row.use]
        assert row.definition != row.use
        if row.reason == "math_pipe_throttle":
            assert source.info.pipe is use.info.pipe
        elif row.reason == "lg_throttle":
            assert source.info.space in {MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.LOCAL}


@given(kernel=kernels())
def test_every_blamed_row_has_an_edge_that_is_alive(kernel: tuple[Program, KernelProfile]) -> None:
    program, profile = kernel
    result = blame(program, profile, model())
    alive = {(edge.def_index, edge.use_index) for edge in result.edges if edge.pruned_by is None}
    for row in rows(result):
        if row.role == "blamed" and row.use is not None:
            assert (row.definition, row.use) in alive
    for edge in result.edges:
        assert (edge.pruned_by is None) == (edge.prune_detail is None)
