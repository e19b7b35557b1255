# SPDX-License-Identifier: Apache-2.0
"""Reaching definitions and scoreboards of random programs against a walk over every path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.assembly import function_of

from gpadvisor.analyzer.scoreboards import Link, outstanding_at
from gpadvisor.model.instruction import Guard, RegisterFile, register
from gpadvisor.model.program import Function

R0 = register(RegisterFile.GPR, 0)

GUARDS = st.sampled_from(["", "", "@P0 ", "@!P0 ", "@P1 "])


@st.composite
def programs(draw: st.DrawFn, bodies: st.SearchStrategy[str]) -> Function:
    """Lines with labels, guarded branches among them, and an EXIT."""
    count = draw(st.integers(2, 14))
    lines = []
    for at in range(count):
        branch = draw(st.integers(0, 3)) == 0
        body = f"{draw(GUARDS)}BRA l{draw(st.integers(0, count))}" if branch else draw(bodies)
        lines.append(f"l{at}: {body}")
    lines.append(f"l{count}: EXIT")
    return function_of("\n".join(lines))


def before(function: Function, index: int) -> list[int]:
    """Instructions that may run right before one."""
    block = function.blocks[function.block_of[index]]
    if index > block.start:
        return [index - 1]
    return [function.blocks[source].end - 1 for source in block.predecessors]


def walked(function: Function, use: int) -> set[int]:
    """Definitions of R0 met on backward paths until their guards cover the use: GPA IV, word by word."""
    found: set[int] = set()
    guard = function.instructions[use].guard
    pending: list[tuple[int, frozenset[Guard | None]]] = [(one, frozenset()) for one in before(function, use)]
    seen = set()
    while pending:
        state = pending.pop()
        if state in seen:
            continue
        seen.add(state)
        index, union = state
        instruction = function.instructions[index]
        if R0 in instruction.defs:
            found.add(index)
            union |= {instruction.guard}
            complete = any(one is not None and Guard(one.register, not one.negated) in union for one in union)
            if None in union or complete or guard in union:
                continue
        pending.extend((one, union) for one in before(function, index))
    return found


WRITES = st.builds(
    "{}{}".format, GUARDS, st.sampled_from(["MOV R0, R1", "MOV R2, R1", "IADD3 R3, R0, R2, RZ"])
)


@given(programs(WRITES), st.data())
def test_reaching_definitions(function: Function, data: st.DataObject) -> None:
    use = data.draw(st.integers(0, len(function.instructions) - 1))
    assert set(function.reaching.definitions(use, R0)) == walked(function, use)


SCOREBOARDS = st.sampled_from(
    [
        "LDG.E R0, [R2.64] | W0",
        "LDG.E R1, [R2.64] | W1",
        "STG.E [R2.64], R0 | R1",
        "MOV R4, R0 | ?0",
        "MOV R4, R1 | ?1",
        "MOV R4, R1 | ?01",
        "MOV R5, R6",
    ]
)


def waited(function: Function, use: int, scoreboard: int) -> set[tuple[int, Link]]:
    """Setters of a scoreboard met on backward paths until an instruction waits for it."""
    found: set[tuple[int, Link]] = set()
    pending = before(function, use)
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        control = function.instructions[index].control
        if control.write_barrier == scoreboard:
            found.add((index, Link.WRITE))
        if control.read_barrier == scoreboard:
            found.add((index, Link.READ))
        if scoreboard not in control.waits:
            pending.extend(before(function, index))
    return found


@given(programs(SCOREBOARDS))
def test_outstanding_operations(function: Function) -> None:
    uses = range(len(function.instructions))
    found = outstanding_at(function, uses)
    assert found.complete
    for use in uses:
        for scoreboard in function.instructions[use].control.waits:
            have = {
                (one.producer, one.link)
                for one in found.outstanding.get(use, ())
                if one.scoreboard == scoreboard
            }
            assert have == waited(function, use, scoreboard)
