# SPDX-License-Identifier: Apache-2.0
"""The values of the view: rows of a tree with what each column has for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.kind import Kind

Floats = NDArray[np.float64]
"""A column, or several beside each other: one row for each row of a tree or for each instruction."""
NO_ROW: Final = -1


class TreeView(Kind):
    """From where the tree is looked at."""

    TOP_DOWN = "top-down"  # who calls what
    BOTTOM_UP = "bottom-up"  # each function, below it who calls it
    FLAT = "flat"  # each function with its loops and lines, whoever calls it


class RowKind(Kind):
    """What a row stands for; the words that programs read."""

    RUN = "run"  # everything
    HOST = "host"  # a function of the host, on the way to a launch
    COPY = "copy"  # what else than a kernel a device does
    PYTHON = "python"  # the same, of Python
    KERNEL = "kernel"
    FUNCTION = "function"  # of the device, that is called
    INLINED = "inlined"  # of the device, that was inlined
    CIRCLE = "circle"  # functions that call each other in circles
    LOOP = "loop"
    LINE = "line"
    CALL = "call"  # a call instruction without a line
    UNKNOWN_CALLER = "unknown caller"  # above functions that nothing known calls
    FURTHER = "further contexts"  # above functions whose further callers are not told apart
    OUTSIDE = "outside"  # code that is not in the program


PROCEDURES: Final = frozenset(
    {RowKind.KERNEL, RowKind.COPY, RowKind.FUNCTION, RowKind.INLINED, RowKind.OUTSIDE}
)
"""Where code has its cost: their own costs add up to the whole."""
WITHIN: Final = frozenset({RowKind.LOOP, RowKind.LINE, RowKind.CALL})
"""Parts of a procedure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    """What a row stands for."""

    kind: RowKind
    name: str
    location: SourceLocation | None = None  # of a procedure its first line, of one inlined where that is
    pc: int | None = None  # of a function of the host its address in the module
    module: str | None = None  # of a function of the host
    calls: float | None = None  # executed calls that lead here, of a kernel launches; None: not counted
    possible: bool = False  # called through a register: one of the functions that may have been meant
    names: tuple[str, ...] = ()  # of several instantiations of a template, or of the functions of a circle


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeColumn:
    """Something counted for each instruction, which adds up."""

    name: str  # as formulas have it
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeKernel:
    """A kernel in the tree."""

    name: str
    device: str
    time_share: float | None  # of the GPU time of the file
    weights: str  # what calls are weighted by
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallTree:
    """Rows with their own cost and that of all below them; the first row is the whole run."""

    view: TreeView
    columns: tuple[TreeColumn, ...]
    rows: tuple[TreeRow, ...]
    parents: tuple[int, ...]  # of each row its parent, which is before it; NO_ROW of the first
    exclusive: Floats  # rows by columns: of a procedure or loop, all its code without what it calls
    inclusive: Floats  # with all that is called
    kernels: tuple[TreeKernel, ...] = ()

    @property
    def stacked(self) -> Floats:
        """What a row has of its parent: in no row less than in all that are directly below it together."""
        return self.inclusive if self.view is TreeView.TOP_DOWN else self.exclusive
