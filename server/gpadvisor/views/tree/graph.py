# SPDX-License-Identifier: Apache-2.0
"""The call graph of a kernel's functions, with how often each call was made (section 6.3, step 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpadvisor.model.program import Function, FunctionKind, Program
from gpadvisor.views.tree.model import Floats
from gpadvisor.views.tree.reconstruct import CallEdge


def call_edges(program: Program, starts: Sequence[int], weights: Floats, *, counted: bool) -> list[CallEdge]:
    """The calls of a program.

    Calls through a register are possible calls of each function that they may reach. They share what was
    counted of its entries beyond its direct calls; without counts each weighs one.

    Args:
        program: its functions.
        starts: row of the first instruction of each.
        weights: executions of each instruction, else its samples.
        counted: whether they are executions.
    """
    direct = [
        CallEdge(function.id, call.index, call.callee, float(weights[starts[function.id] + call.index]))
        for function in program.functions
        for call in function.calls
        if call.callee is not None
    ]
    return [*direct, *_possible(program, starts, weights, direct, counted=counted)]


def _possible(
    program: Program, starts: Sequence[int], weights: Floats, direct: Sequence[CallEdge], *, counted: bool
) -> Iterator[CallEdge]:
    sites = [
        (function.id, call.index, float(weights[starts[function.id] + call.index]))
        for function in program.functions
        for call in function.calls
        if call.callee is None and call.symbol is None
    ]
    if not sites:
        return
    total = sum(weight for _, _, weight in sites)
    for function in _targets(program, {edge.callee for edge in direct}):
        entered = sum(edge.weight for edge in direct if edge.callee == function.id)
        remainder = max(0.0, float(weights[starts[function.id]]) - entered)
        for caller, index, weight in sites:
            share = weight / total if total else 0.0
            yield CallEdge(caller, index, function.id, remainder * share if counted else 1.0, possible=True)


def _targets(program: Program, called: set[int]) -> Iterator[Function]:
    """What a call through a register may reach: what has its address taken, and what no other call names."""
    for function in program.functions:
        reached = function.id in program.address_taken or function.id not in called
        if reached and function.kind is FunctionKind.DEVICE and function.instructions:
            yield function
