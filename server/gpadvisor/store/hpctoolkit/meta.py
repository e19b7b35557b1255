# SPDX-License-Identifier: Apache-2.0
"""``meta.db``: what was measured, under which names, and the tree of calling contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gpadvisor.store.hpctoolkit.layout import DatabaseFile, fields

_GENERAL, _IDENTIFIERS, _METRICS, _CONTEXT = range(4)
_METRIC: Final = fields(("name", "<u8", 0), ("scopes", "<u8", 8), ("number", "<u2", 24))
_SCOPE_OF: Final = fields(("scope", "<u8", 0), ("value", "<u2", 8))
_ENTRY: Final = fields(
    ("size", "<u8", 0), ("children", "<u8", 8), ("context", "<u4", 16), ("name", "<u8", 24)
)
_CONTEXT_HEAD: Final = "<QQIBBBB"
_WORD: Final = 8
_CONTEXT_BYTES: Final = 32
_HAS_FUNCTION, _HAS_LINE, _HAS_POINT = 1, 2, 4
GPU_KERNEL: Final = "<gpu kernel>"


class Relation(IntEnum):
    """How a context comes from the one around."""

    LEXICAL = 0
    CALL = 1
    INLINED = 2


class Lexical(IntEnum):
    """What part of a program a context is."""

    FUNCTION = 0
    LOOP = 1
    LINE = 2
    INSTRUCTION = 3


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function as the database names it."""

    name: str
    module: str
    offset: int
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Context:
    """A place in the tree."""

    id: int
    parent: int | None  # its id; None of an entry, whose parent is the whole run
    relation: int
    lexical: int
    function: NamedFunction | None = None
    file: str = ""
    line: int = 0
    module: str = ""
    offset: int = 0

    @property
    def is_kernel_launch(self) -> bool:
        """Whether the kernels that a call launched are below."""
        return self.function is not None and self.function.name == GPU_KERNEL and not self.function.module


@dataclass(frozen=True, slots=True)
class Meta:
    """What ``meta.db`` says."""

    title: str
    identifiers: tuple[str, ...]  # kinds of identifier: NODE, RANK, THREAD
    metrics: Mapping[int, tuple[str, str]]  # by number of a value: name and scope
    contexts: Mapping[int, Context]  # parents before their children


def read_meta(file: DatabaseFile) -> Meta:
    """Read it.

    Raises:
        ProfileFormatError: it is damaged.
    """
    (title,) = file.numbers("<Q", file.section(_GENERAL))
    names, count = file.numbers("<QB", file.section(_IDENTIFIERS))
    kinds = file.rows(names, count, fields(("name", "<u8", 0)))["name"].tolist()
    return Meta(
        title=file.text(title),
        identifiers=tuple(map(file.text, kinds)),
        metrics=_metrics(file),
        contexts=_Contexts(file).read(),
    )


def _metrics(file: DatabaseFile) -> dict[int, tuple[str, str]]:
    place, count, size, instance_size = file.numbers("<QIBB", file.section(_METRICS))
    metrics: dict[int, tuple[str, str]] = {}
    for name, scopes, number in file.rows(place, count, _METRIC, size).tolist():
        for scope, value in file.rows(scopes, number, _SCOPE_OF, instance_size).tolist():
            (scope_name,) = file.numbers("<Q", scope)
            metrics[value] = file.text(name), file.text(scope_name)
    return metrics


class _Contexts:
    """Reads the tree without recursion; each block of children once."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._texts: dict[int, str] = {}
        self._functions: dict[int, NamedFunction] = {}
        self._contexts: dict[int, Context] = {}
        self._blocks: set[int] = set()
        self._pending: list[tuple[int, int, int]] = []

    def read(self) -> dict[int, Context]:
        file = self._file
        place, count, size = file.numbers("<QHB", file.section(_CONTEXT))
        for length, children, number, name in file.rows(place, count, _ENTRY, size).tolist():
            entry = NamedFunction(file.text(name), "", 0, "", 0)
            self._add(Context(number, None, Relation.LEXICAL, Lexical.FUNCTION, entry), children, length)
        while self._pending:
            self._block(*self._pending.pop())
        return self._contexts

    def _add(self, context: Context, children: int, length: int) -> None:
        if context.id in self._contexts:
            raise self._file.damaged(f"context {context.id} stands twice in its tree")
        self._contexts[context.id] = context
        if children and length:
            if children in self._blocks:
                raise self._file.damaged("its context tree has a circle")
            if children + length > len(self._file):
                raise self._file.damaged(f"the children of context {context.id} lie outside of it")
            self._blocks.add(children)
            self._pending.append((children, length, context.id))

    def _block(self, place: int, length: int, parent: int) -> None:
        end = place + length
        while place < end:
            size, children, number, flags, relation, lexical, words = self._file.numbers(_CONTEXT_HEAD, place)
            # Blocks that overlap would be read again and again.
            if len(self._contexts) * _CONTEXT_BYTES > len(self._file):
                raise self._file.damaged("its context tree overlaps")
            take = _Words(self._file, place + _CONTEXT_BYTES, words)
            context = self._context(number, parent, relation, lexical, flags, take)
            self._add(context, children, size)
            place += _CONTEXT_BYTES + _WORD * words

    def _context(
        self, number: int, parent: int, relation: int, lexical: int, flags: int, take: _Words
    ) -> Context:
        function = self._function(take.long()) if flags & _HAS_FUNCTION else None
        file, line = (self._path(take.long()), take.short()) if flags & _HAS_LINE else ("", 0)
        module, offset = (self._path(take.long()), take.long()) if flags & _HAS_POINT else ("", 0)
        return Context(number, parent, relation, lexical, function, file, line, module, offset)

    def _function(self, place: int) -> NamedFunction:
        function = self._functions.get(place)
        if function is None:
            name, module, offset, file, line = self._file.numbers("<QQQQI", place)
            function = NamedFunction(self._text(name), self._path(module), offset, self._path(file), line)
            self._functions[place] = function
        return function

    def _path(self, place: int) -> str:
        """Of a module or a file; nothing at 0."""
        return self._text(self._file.numbers("<Q", place + 8)[0]) if place else ""

    def _text(self, place: int) -> str:
        text = self._texts.get(place)
        if text is None:
            text = self._texts[place] = self._file.text(place)
        return text


class _Words:
    """The words behind a context: long ones take the next, two short ones share one."""

    def __init__(self, file: DatabaseFile, place: int, words: int) -> None:
        self._file, self._place, self._end = file, place, place + _WORD * words
        self._half: int | None = None

    def long(self) -> int:
        """The next word."""
        return int(self._file.numbers("<Q", self._next())[0])

    def short(self) -> int:
        """The next half of a word."""
        place, self._half = self._half, None
        if place is None:
            place = self._next()
            self._half = place + _WORD // 2
        return int(self._file.numbers("<I", place)[0])

    def _next(self) -> int:
        place = self._place
        self._place += _WORD
        if self._place > self._end:
            raise self._file.damaged(f"the context before {self._end} has fewer words than it says")
        return place
