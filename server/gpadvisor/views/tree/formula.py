# SPDX-License-Identifier: Apache-2.0
"""Metrics as formulas over columns, as in a spreadsheet: parsed here, never run as code."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import UsageError

Floats = NDArray[np.float64]

MAX_LENGTH: Final = 1000
"""Letters of a formula: some hundred operations, more than anybody writes."""
_MAX_DEPTH: Final = 50
"""Of brackets and signs within each other."""
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>[-+*/^(),]))"
)
_BINARY: Final[Mapping[str, Callable[[Floats, Floats], Floats]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.float_power,
    "min": np.minimum,
    "max": np.maximum,
}
_POWER: Final = 3
_PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "^": _POWER}
_FUNCTIONS: Final = ("min", "max")


class _Step(NamedTuple):
    """One step of a formula in postfix form: a number, a column, or an operation on the last results."""

    kind: str  # "number", "column", "negate", or the operation
    number: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Formula:
    """A metric: a column, or what is computed from some."""

    title: str
    text: str
    steps: tuple[_Step, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, each once."""
        return tuple(dict.fromkeys(step.name for step in self.steps if step.kind == "column"))

    @property
    def is_additive(self) -> bool:
        """Whether its values at parts add up to its value at the whole: a sum of columns times numbers."""
        stack: list[tuple[bool, bool]] = []  # whether it is a number; whether it adds up
        for step in self.steps:
            if step.kind in {"number", "column"}:
                stack.append((step.kind == "number", step.kind == "column"))
            elif step.kind != "negate":
                (right, right_adds), (left, left_adds) = stack.pop(), stack.pop()
                if step.kind in "+-":
                    adds = left_adds and right_adds
                else:
                    adds = (step.kind in "*/" and left_adds and right) or (
                        step.kind == "*" and left and right_adds
                    )
                stack.append((left and right, adds))
        return stack[0][1]

    def evaluate(self, columns: Mapping[str, Floats]) -> Floats:
        """Its value at each row, not a number where there is none, such as of a division by zero."""
        stack: list[Floats] = []
        length = len(next(iter(columns.values())))
        with np.errstate(all="ignore"):
            for step in self.steps:
                if step.kind == "number":
                    stack.append(np.full(length, step.number))
                elif step.kind == "column":
                    stack.append(columns[step.name])
                elif step.kind == "negate":
                    stack.append(-stack.pop())
                else:
                    right, left = stack.pop(), stack.pop()
                    stack.append(_BINARY[step.kind](left, right))
        return np.where(np.isfinite(stack[0]), stack[0], np.nan)


def parse_formula(text: str, column_names: Collection[str] | None = None) -> Formula:
    """Read ``FORMULA`` or ``TITLE = FORMULA`` of columns, numbers, ``+ - * / ^``, brackets, min and max.

    Raises:
        UsageError: it is no formula, or names a column that is not in ``known``.
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"a metric of {len(text):,} letters; a formula has at most {MAX_LENGTH:,}")
    title, titled, after = text.partition("=")
    formula = (after if titled else text).strip()
    parser = _FormulaParser(formula)
    steps = parser.whole()
    result = Formula((title.strip() if titled else "") or formula, formula, tuple(steps))
    if not result.columns:
        raise UsageError(f"metric '{text}' names no column, so it is the same everywhere")
    unknown = [] if column_names is None else [name for name in result.columns if name not in column_names]
    if unknown and column_names is not None:
        raise UsageError(
            f"metric '{text}': there is no column {unknown[0]}; there are {', '.join(column_names)}"
        )
    return result


class _FormulaParser:
    """Precedence climbing over tokens, into postfix steps."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self._steps: list[_Step] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._wrong(f"'{text[position:].strip()[0]}' is no part of a formula")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()

    def whole(self) -> list[_Step]:
        self._expression(1, 0)
        if self._at < len(self._tokens):
            raise self._wrong(f"'{self._tokens[self._at][1]}' where it should end")
        return self._steps

    def _wrong(self, why: str) -> UsageError:
        return UsageError(
            f"metric '{self._text}': {why}; a formula has columns, numbers, + - * / ^, brackets, "
            "min(a, b) and max(a, b)"
        )

    def _next(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise self._wrong(f"'{sign}' is missing")
        self._at += 1

    def _expression(self, least: int, depth: int) -> None:
        """Operators that bind at least as strongly as ``least``; powers bind to the right."""
        self._operand(depth)
        while (strength := _PRECEDENCE.get(self._next(), 0)) >= least:
            sign = self._next()
            self._at += 1
            self._expression(strength if strength == _POWER else strength + 1, depth + 1)
            self._steps.append(_Step(sign))

    def _operand(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise self._wrong(f"more than {_MAX_DEPTH} brackets and signs within each other")
        if self._at == len(self._tokens):
            raise self._wrong("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            self._steps.append(_Step("number", number=float(text)))
        elif kind == "name" and text in _FUNCTIONS and self._next() == "(":
            self._take("(")
            self._expression(1, depth + 1)
            self._take(",")
            self._expression(1, depth + 1)
            self._take(")")
            self._steps.append(_Step(text))
        elif kind == "name":
            self._steps.append(_Step("column", name=text))
        elif text == "(":
            self._expression(1, depth + 1)
            self._take(")")
        elif text in "+-":
            self._expression(_PRECEDENCE["*"], depth + 1)
            if text == "-":
                self._steps.append(_Step("negate"))
        else:
            raise self._wrong(f"'{text}' stands where a value should")
