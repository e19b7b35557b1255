# SPDX-License-Identifier: Apache-2.0
"""The context tree of a database with all that was measured, of GPUs of any vendor."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Final

from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind, formula_names
from gpadvisor.store.hpctoolkit.binaries import is_gpu_module
from gpadvisor.store.hpctoolkit.database import EXECUTION, Database
from gpadvisor.store.hpctoolkit.meta import Context, Lexical, Relation

_SECONDS: Final = re.compile(r" \((?:sec|s)\)$")
_NS: Final = 1e9
_NOISE: Final = 1e-12
"""Of the whole: what differences of real numbers leave where there is nothing."""
_LEXICAL: Final = {Lexical.LOOP: PlaceKind.LOOP, Lexical.LINE: PlaceKind.LINE}


def contexts_of(database: Database) -> MeasuredContexts:
    """The tree; instructions of a line are in the line."""
    names = [name for name in _named(database) if name in database.metric_names]
    columns = [database.by_context(name, EXECUTION) for name in names]
    scales = [_NS if _SECONDS.search(name) else 1.0 for name in names]
    places: list[MeasuredPlace] = []
    exclusive: list[list[float]] = []
    place_of: dict[int, int] = {}
    for context in database.meta.contexts.values():
        parent = -1 if context.parent is None else place_of[context.parent]
        place = _place(context, database.meta.contexts, parent)
        if place is None and parent >= 0:
            place_of[context.id] = parent
        else:
            place_of[context.id] = len(places)
            places.append(place or MeasuredPlace(parent, PlaceKind.FUNCTION, "unknown"))
            exclusive.append([0.0] * len(names))
        for index, (values, scale) in enumerate(zip(columns, scales, strict=True)):
            value = values.get(context.id, 0.0) * scale
            exclusive[place_of[context.id]][index] += value
            if parent >= 0:
                exclusive[parent][index] -= value
    most = [max(values.values(), default=0.0) * scale for values, scale in zip(columns, scales, strict=True)]
    return MeasuredContexts(
        metrics=formula_names(_SECONDS.sub(" ns", name) for name in names),
        units=tuple(names),
        places=tuple(places),
        own=tuple(
            tuple(
                value if value > highest * _NOISE else 0.0 for value, highest in zip(row, most, strict=True)
            )
            for row in exclusive
        ),
    )


def _named(database: Database) -> list[str]:
    """Names of metrics that have a value with what is below, in the order of the database, each once."""
    return list(dict.fromkeys(name for name, scope in database.meta.metrics.values() if scope == EXECUTION))


def _place(context: Context, contexts: Mapping[int, Context], parent: int) -> MeasuredPlace | None:
    """None of an instruction, which belongs to what is around."""
    if context.function is not None:
        function = context.function
        launched = context.parent is not None and contexts[context.parent].is_kernel_launch
        kind = PlaceKind.INLINED if context.relation == Relation.INLINED else PlaceKind.FUNCTION
        if launched and is_gpu_module(function.module):
            kind = PlaceKind.KERNEL
        # Its placeholders are "<gpu kernel>", which elsewhere are arguments of a template.
        name = function.name.strip("<>") or "unknown"
        return MeasuredPlace(parent, kind, name, function.file, function.line)
    if context.lexical in _LEXICAL:
        if not context.line:
            return None
        name = f"{posixpath.basename(context.file)}:{context.line}"
        return MeasuredPlace(parent, _LEXICAL[Lexical(context.lexical)], name, context.file, context.line)
    if context.module and context.relation == Relation.CALL:
        name = f"{posixpath.basename(context.module)}+{context.offset:#x}"
        launched = context.parent is not None and contexts[context.parent].is_kernel_launch
        kind = PlaceKind.KERNEL if launched else PlaceKind.FUNCTION
        return None if _is_flat(context, contexts) else MeasuredPlace(parent, kind, name)
    return None


def _is_flat(context: Context, contexts: Mapping[int, Context]) -> bool:
    """Whether it is an instruction of GPU code, of whose functions nothing is known."""
    above = contexts.get(context.parent or 0)
    return is_gpu_module(context.module) and not (above is not None and above.is_kernel_launch)
