# SPDX-License-Identifier: Apache-2.0
"""The calling-context tree of one or more kernels, from the host's way to the launch down to lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import CallFrame, Evidence, KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.report.names import base_name, template_name
from gpadvisor.views.tree.graph import call_edges
from gpadvisor.views.tree.measured import (
    INSTRUCTIONS,
    SAMPLES,
    TIME,
    Measured,
    available,
    costs,
    measure,
)
from gpadvisor.views.tree.model import CallTree, Floats, RowKind, TreeColumn, TreeKernel, TreeRow
from gpadvisor.views.tree.reconstruct import MAX_NODES, Arrival, ContextPlace, Contexts, reconstruct
from gpadvisor.views.tree.rows import RowsBuilder, summed
from gpadvisor.views.tree.scopes import Structure, structure

_INTERPRETER: Final = re.compile(r"(?:lib)?python[\d.]*(?:\.so.*|\.dll|\.exe)?$", re.IGNORECASE)


class LaunchWay(NamedTuple):
    """The host's way to some launches of a kernel."""

    frames: tuple[TreeRow, ...]  # outermost first
    part: float  # of the kernel's time
    launches: int | None = None  # None: one of which nothing is known of others


class OtherWork(NamedTuple):
    """What a traced run has of kernels that were not profiled, and of copies."""

    frames: tuple[TreeRow, ...]
    row: TreeRow
    time_share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContextKernel:
    """A kernel that is to be in the tree."""

    context: KernelContext
    name: str  # demangled
    time_share: float | None  # of the GPU time of the file, or of the traced run
    ways: tuple[LaunchWay, ...] = ()  # to its launches; none: that of the profiled one


def checked(kernel: ContextKernel) -> ContextKernel:
    """A kernel that can be in a tree.

    Raises:
        ProfileMismatchError: it has no code, or neither samples nor counts.
    """
    profile = kernel.context.profile
    if profile is None or not (profile.total_samples or _counts(profile)):
        raise ProfileMismatchError(
            f"{kernel.name} has neither samples nor executed counts: profile with --section SourceCounters, "
            "or --set full"
        )
    if not kernel.context.program.functions:
        raise ProfileMismatchError(
            f"{kernel.name}: its machine code could not be had, so nothing is known of calls"
        )
    return kernel


def call_tree(
    kernels: Sequence[ContextKernel],
    columns: Sequence[str] | None = None,
    other_work: Sequence[OtherWork] = (),
) -> CallTree:
    """The tree of some kernels from the top down.

    Args:
        kernels: those of `checked`.
        columns: names of `columns_of`; all of them where None.
        other_work: what else the GPU did.
    """
    tree_columns = columns_of(kernels)
    chosen = [tree_columns[name] for name in (tree_columns if columns is None else columns)]
    made = _Made(RowsBuilder(), [])
    _add_others(made, other_work, chosen)
    facts = tuple(_KernelRows(made, kernel, chosen).add() for kernel in kernels)
    spent = np.zeros((len(made.rows.rows), len(chosen)))
    for row, amounts in made.spent:
        np.add.at(spent, np.array(row, dtype=np.int64), amounts)
    return replace(summed(made.rows, spent, tuple(chosen)), kernels=facts)


def columns_of(kernels: Sequence[ContextKernel]) -> dict[str, TreeColumn]:
    """What can be asked for, by name."""
    profiles = [kernel.context.profile for kernel in kernels if kernel.context.profile is not None]
    return available(profiles, timed=all(kernel.time_share is not None for kernel in kernels))


def _counts(profile: KernelProfile) -> bool:
    return profile.counts is not None and bool(profile.counts.warps.any())


class _Made(NamedTuple):
    """A tree that is being made: rows, and what is spent in some of them themselves."""

    rows: RowsBuilder
    spent: list[tuple[Sequence[int], Floats]]


def _add_others(made: _Made, other_work: Sequence[OtherWork], columns: Sequence[TreeColumn]) -> None:
    for work in other_work:
        top = 0
        for frame in work.frames:
            top = made.rows.add(top, frame)
        amounts = [work.time_share if column.name == TIME else 0.0 for column in columns]
        made.spent.append(([made.rows.add(top, work.row)], np.array([amounts])))


class _KernelRows:
    """Puts one kernel's contexts into the tree."""

    def __init__(self, made: _Made, kernel: ContextKernel, columns: Sequence[TreeColumn]) -> None:
        profile = kernel.context.profile
        if profile is None:
            raise ProfileMismatchError(f"{kernel.name} has no run")
        self._rows, self._spent = made
        self._kernel, self._profile = kernel, profile
        self._program: Program = kernel.context.program
        # What contexts are split and ordered by, beside what is shown.
        names = list(dict.fromkeys((SAMPLES, INSTRUCTIONS, *(column.name for column in columns))))
        self._at = {name: index for index, name in enumerate(names)}
        self._shown = [self._at[column.name] for column in columns]
        self._measured: Measured = measure(self._program, profile, names, kernel.time_share)
        self._counted = _counts(profile)
        self._scopes: list[dict[int, Sequence[int]]] = []  # of each place: rows of its functions' scopes
        self._structures: dict[int, _Costed] = {}
        self._way = 1.0  # the part of the way to launches that is being added
        self._cut = False

    def add(self) -> TreeKernel:
        kernel = self._kernel
        functions = self._program.functions
        root = next(
            (function for function in functions if function.name == kernel.context.kernel), functions[0]
        )
        structures = [self._structure(function) for function in functions]
        spent = costs(self._measured, self._at)
        contexts = reconstruct(
            [float(spent[slice(*self._span(function.id))].sum()) for function in functions],
            call_edges(
                self._program,
                self._measured.starts,
                self._measured.values[:, self._at[INSTRUCTIONS if self._counted else SAMPLES]],
                counted=self._counted,
            ),
            root.id,
            counted=self._counted,
            sizes=[len(costed.structure.parents) for costed in structures],
        )
        whole_way = LaunchWay(tuple(host_path(self._profile.call_stack)), 1.0)
        for position, way in enumerate(kernel.ways or (whole_way,)):
            top = 0
            for frame in way.frames:
                top = self._rows.add(top, frame)
            top = self._procedure(top, RowKind.KERNEL, kernel.name, _first_line(root), calls=way.launches)
            self._way = way.part
            if position and len(self._rows.rows) > MAX_NODES:
                self._spend([top], self._whole[None])
                self._cut = True
            else:
                self._add_within(contexts, root, top)
        return TreeKernel(
            name=kernel.name,
            device=self._profile.device.name or self._profile.device.arch,
            time_share=kernel.time_share,
            weights="executed calls" if self._counted else "samples of calls",
            notes=tuple(self._notes(contexts)),
        )

    def _add_within(self, contexts: Contexts, root: Function, top: int) -> None:
        """What is below a kernel's row."""
        self._scopes.clear()
        self._spend([top], self._measured.itself[None, self._shown])
        for place in contexts.places:
            self._add_place(contexts, place, root, top)
        for name, amounts in (
            ("code outside of the cubin", self._measured.outside),
            ("code that was not analysed", self._measured.elsewhere),
        ):
            if amounts[self._shown].any():
                outside = self._rows.add(top, TreeRow(kind=RowKind.OUTSIDE, name=name))
                self._spend([outside], amounts[None, self._shown])

    def _spend(self, rows: Sequence[int], amounts: Floats) -> None:
        """Amounts of all launches, of which this way to them has its part."""
        self._spent.append((rows, amounts * self._way))

    @property
    def _whole(self) -> Floats:
        measured = self._measured
        whole: Floats = measured.itself + measured.outside + measured.elsewhere + measured.values.sum(axis=0)
        shown: Floats = whole[self._shown]
        return shown

    def _span(self, function: int) -> tuple[int, int]:
        return self._measured.starts[function], self._measured.starts[function + 1]

    def _structure(self, function: Function) -> _Costed:
        """The scopes of a function with what is spent in each itself."""
        start, end = self._span(function.id)
        values = self._measured.values[start:end]
        called = [call.index for call in function.calls]
        asked = np.union1d(np.flatnonzero(values.any(axis=1)), np.array(called, dtype=np.int64)).tolist()
        tree_structure = structure(function, asked)
        spent = np.zeros((len(tree_structure.parents), len(self._shown)))
        np.add.at(spent, np.array(tree_structure.scope_of, dtype=np.int64), values[asked][:, self._shown])
        costed = _Costed(tree_structure, dict(zip(asked, tree_structure.scope_of, strict=True)), spent)
        self._structures[function.id] = costed
        return costed

    def _procedure(
        self,
        parent: int,
        kind: RowKind,
        name: str,
        location: SourceLocation | None,
        *,
        calls: float | None = None,
        possible: bool = False,
    ) -> int:
        row = TreeRow(kind=kind, name=name, location=location, calls=calls, possible=possible)
        return self._rows.add(parent, row, (template_name(name), None if location is None else location.file))

    def _add_place(self, contexts: Contexts, place: ContextPlace, root: Function, top: int) -> None:
        functions = self._program.functions
        above, calls, possible = top, None, False
        if place.arrival in {Arrival.UNKNOWN, Arrival.FURTHER}:
            kind = RowKind.UNKNOWN_CALLER if place.arrival is Arrival.UNKNOWN else RowKind.FURTHER
            above = self._rows.add(top, TreeRow(kind=kind, name=kind.value))
        elif place.parent is not None and place.edge is not None:
            edge, caller = contexts.edges[place.edge], contexts.places[place.parent]
            site = self._structures[edge.caller].scope_of[edge.site]
            above = self._scopes[place.parent][edge.caller][site]
            weight = edge.weight * caller.factor * self._way
            calls, possible = weight if self._counted else None, edge.possible
        if len(place.members) > 1 and root.id not in place.members:
            names = tuple(sorted(functions[member].demangled for member in place.members))
            circle = TreeRow(
                kind=RowKind.CIRCLE,
                name=", ".join(base_name(name) for name in names),
                calls=calls,
                possible=possible,
                names=names,
            )
            above, calls, possible = self._rows.add(above, circle), None, False
        made = {}
        for member in place.members:
            function, row = functions[member], top
            if member != root.id:
                row = self._procedure(
                    above,
                    RowKind.FUNCTION,
                    function.demangled,
                    _first_line(function),
                    calls=calls,
                    possible=possible,
                )
            made[member] = self._add_scopes(row, self._structures[member], place.factor)
        self._scopes.append(made)

    def _add_scopes(self, row: int, of: _Costed, factor: float) -> Sequence[int]:
        rows = [row]
        for parent, scope in zip(of.structure.parents[1:], of.structure.scopes, strict=True):
            tree_row = TreeRow(kind=scope.kind, name=scope.name, location=scope.location, pc=scope.pc)
            rows.append(self._rows.add(rows[parent], tree_row))
        self._spend(rows, of.spent * factor)
        return rows

    def _notes(self, contexts: Contexts) -> Iterator[str]:
        if self._profile.evidence is Evidence.MODELLED:
            yield "modelled: samples and counts are of a simulated run"
        entries = {place.arrival for place in contexts.places}
        if Arrival.UNKNOWN in entries:
            yield "functions below 'unknown caller' cost something, and no call of them was found"
        if Arrival.FURTHER in entries:
            yield "more contexts than fit: the cheapest are by function, below 'further contexts'"
        if any(edge.possible and edge.weight > 0 for edge in contexts.edges):
            yield "calls through registers: which function they reach is possible, not known"
        if any(len(place.members) > 1 for place in contexts.places):
            yield "functions that call each other in circles are one place, their calls not told apart"
        if self._cut:
            yield "more ways to launches than fit: what is within the kernel is below the costliest of them"
        if len(self._kernel.ways) > 1:
            yield "launches on several ways: what was measured in the kernel is divided among them by time"
        if self._profile.sampling.truncated:
            yield "samples cover only the first part of the run"


@dataclass(frozen=True, slots=True, eq=False)
class _Costed:
    structure: Structure
    scope_of: dict[int, int]  # by instruction index
    spent: Floats  # by scope, in it itself


def _first_line(function: Function) -> SourceLocation | None:
    entry = next((entry for entry in function.lines if entry is not None), None)
    if entry is None:
        return None
    return entry.inline[-1].call_site if entry.inline else entry.location


def host_path(stack: Sequence[CallFrame]) -> list[TreeRow]:
    """The host's way to a launch, outermost first; Python's frames in the place of its interpreter's."""
    python = [frame for frame in stack if frame.module == "python"][::-1]
    native = [frame for frame in stack if frame.module != "python"][::-1]
    interpreter = [index for index, frame in enumerate(native) if _is_interpreter(frame)]
    if python and interpreter:
        native = [*native[: interpreter[0]], *python, *native[interpreter[-1] + 1 :]]
    else:
        native = [*python, *native]
    return [
        TreeRow(
            kind=RowKind.PYTHON if frame.module == "python" else RowKind.HOST,
            name=_frame_name(frame),
            location=SourceLocation(frame.file, frame.line) if frame.file and frame.line else None,
            pc=None if frame.module == "python" else frame.address,
            module=None if frame.module == "python" else frame.module,
        )
        for frame in native
    ]


def _is_interpreter(frame: CallFrame) -> bool:
    return _INTERPRETER.fullmatch(posixpath.basename((frame.module or "").replace("\\", "/"))) is not None


def _frame_name(frame: CallFrame) -> str:
    if frame.function:
        return frame.function
    module = posixpath.basename((frame.module or "unknown module").replace("\\", "/"))
    return module if frame.address is None else f"{module}+{frame.address:#x}"
