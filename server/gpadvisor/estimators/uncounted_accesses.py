# SPDX-License-Identifier: Apache-2.0
"""Scattered accesses as the machine code alone shows them, and what would bring them together."""

from __future__ import annotations

from typing import Final

from gpadvisor.estimators.access_cures import cure_of_rows
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.access_shapes import Lie, access_shape
from gpadvisor.evidence.own_rows import is_row, own_rows, usual_launch, width_of_blocks
from gpadvisor.evidence.queries import kernel_function, line_text
from gpadvisor.model.advice import StaticSite

_BY_LAYOUT: Final = (
    "let what neighbouring threads access follow each other (a structure of arrays, a table by columns, or "
    "by diagonals where threads go along one), or go through shared memory: they are {distance} bytes apart"
)


def uncounted_accesses(context: KernelContext) -> tuple[tuple[StaticSite, ...], str]:
    """Accesses whose threads are each in a row of their own, one for each line, and the cure of the first."""
    function = kernel_function(context.program, context.kernel)
    if function is None:
        return (), ""
    facts, form = context.program.facts.get(context.kernel), context.program.form
    block = None if facts is None else facts.required_block
    launch = usual_launch(context.kernel, block, width_of_blocks(function))
    lines: dict[str, int] = {}
    for index in own_rows(function, form, launch):
        lines.setdefault(line_text(function, index), index)
    if not lines:
        return (), ""
    first = min(lines.values())
    shape = access_shape(function, first, form, launch)
    if shape.lie is Lie.ROWS or is_row(function, first, form, launch):
        cure = cure_of_rows(context, launch, function, first)
    else:
        cure = _BY_LAYOUT.format(distance=shape.distance)
    sites = tuple(
        StaticSite(function=function.id, index=index, detail=function.instructions[index].opcode)
        for index in lines.values()
    )
    return sites, cure
