# SPDX-License-Identifier: Apache-2.0
"""Parts of a CUDA source that only the host runs, and without which its device code still compiles.

Nothing is cut that could be part of device code: functions with an execution space, an unknown macro that may
stand for one, ``constexpr``; members of a class (the whole class goes); preprocessor directives. What is cut
becomes blanks, so that every line and column stays.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_MASKED: Final = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|R"(?P<raw>[^()\s\\]{0,16})\(.*?\)(?P=raw)"'
    r"|\"(?:[^\"\\\n]|\\.)*\"|(?<!\w)'(?:[^'\\\n]|\\.)*'",
    re.DOTALL,
)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#[ \t]*(?P<name>\w*)(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_DEVICE: Final = re.compile(r"\b__(?:global|device|constant|shared|managed|grid_constant)__\b")
_COMPILE_TIME: Final = re.compile(r"\b(?:constexpr|consteval)\b")
# A macro that may stand for an execution space, such as CUTLASS_HOST_DEVICE.
_MACRO: Final = re.compile(
    r"\b(?=[A-Z_0-9]*(?:DEV|GLOBAL|KERNEL|GPU|CUDA|HOST|INLINE|FUNC|HD\b|CONSTEXPR))[A-Z_][A-Z_0-9]{2,}\b"
)
_SCOPE: Final = re.compile(r"\bnamespace\b[^()]*$|\bextern\s*(?:\"\"\s*)?$")
_CLASS: Final = re.compile(
    r"\b(?:class|struct|union|enum)\b(?!.*(?:\)|\bconst|\bnoexcept|\boverride|=)\s*$)", re.DOTALL
)
_CONTROL: Final = re.compile(r"(?:else|do|try|if|for|while|switch|catch|case|default)\b|\w+\s*:(?!:)|$")
_CONTINUES: Final = re.compile(r"\s*(?:[;,.)\](=*/+\-<>?:&|%^!{]|else\b|catch\b)")
_TEMPLATE: Final = re.compile(r"\s*template\s*<")
_REFERENCE: Final = re.compile(r"(?<![\w:.>])(?P<name>(?:::)?\w+(?:::\w+)*)\s*<(?P<rest>[^;{}]{1,400})")


class PartKind(Enum):
    """What a pair of braces holds."""

    SCOPE = "scope"  # namespace, extern "C"
    CLASS = "class"
    FUNCTION = "function"
    CONTROL = "control"
    LIST = "list"  # an initializer, a lambda's body, the condition of nothing


@dataclass(slots=True, eq=False)
class _Block:
    """A pair of braces."""

    start: int  # of what it holds
    end: int
    head: int  # where what stands before its brace begins
    kind: PartKind
    parent: _Block | None
    ends: list[int] = field(default_factory=list)  # offsets behind each statement in it

    def statement(self, offset: int) -> tuple[int, int]:
        """The statement of this block that an offset is in."""
        index = bisect.bisect_right(self.ends, offset)
        first = self.ends[index - 1] if index else self.start
        return first, self.ends[index] if index < len(self.ends) else self.end


class HostParts:
    """A source with what of it may be cut."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._code, self._masked, self._directives = _mask(text)
        self._root = _Block(0, len(text), 0, PartKind.SCOPE, None)
        self._blocks = _blocks(self._masked, self._root)
        self._starts = [block.start for block in self._blocks]
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._cut: dict[tuple[int, int], str] = {}  # what stays of each part: kernels that it instantiates
        self._settled: frozenset[tuple[int, int]] = frozenset()  # parts that were cut before, and did not do

    def cut_at(self, errors: Collection[tuple[int, int | None]]) -> bool:
        """Cut what each error (line, column; from 1) is in; False where one is in what may be device code."""
        self._settled = frozenset(self._cut)
        places = [offset for error in errors for offset in self._offsets(*error) or [-1]]
        return all([self._cut_one(offset) for offset in dict.fromkeys(places)])  # noqa: C419  # each of them

    def cut_functions(self) -> tuple[str, ...]:
        """Cut every host function; gives the templates with arguments that they launch."""
        kernels: dict[str, None] = {}
        for block in self._blocks:
            if block.kind is not PartKind.FUNCTION or block.parent is None or self._is_device(block):
                continue
            if block.parent.kind in {PartKind.SCOPE, PartKind.CLASS}:
                if _TEMPLATE.match(self._head(block)) is None:
                    kernels.update(dict.fromkeys(_launched(self._masked[block.start : block.end])))
                self._add(block.parent.statement(block.start), keep=False)
        return tuple(kernels)

    @property
    def device_text(self) -> str:
        """The text with blanks in place of what was cut, preprocessor directives excepted."""
        pieces, index = [], 0
        for (start, end), replacement in sorted(self._cut.items()):
            blank = self._blank(start, end)
            first = blank.partition("\n")[0]
            pieces += [self.text[index:start], replacement.ljust(len(first)), blank[len(first) :]]
            index = end
        return "".join([*pieces, self.text[index:]])

    def _blank(self, start: int, end: int) -> str:
        pieces, index = [], start
        for begun, over in self._directives:
            if start <= begun and over <= end:
                pieces += [_NOT_NEWLINE.sub(" ", self.text[index:begun]), self.text[begun:over]]
                index = over
        return "".join([*pieces, _NOT_NEWLINE.sub(" ", self.text[index:end])])

    @property
    def lines_cut(self) -> int:
        """How many lines of code were cut."""
        return sum(
            bool(line.strip()) for start, end in self._cut for line in self._masked[start:end].splitlines()
        )

    def _offsets(self, line: int, column: int | None) -> list[int]:
        """Where an error may be: at its column, else in each statement of its line."""
        if not 0 < line <= len(self._lines):
            return []
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.text)
        if column is not None and start + column <= end:
            return [start + column - 1]
        code = [match.start() for match in re.finditer(r"(?:^|(?<=[\s;{}]))[^\s;{}]", self._code[start:end])]
        statements: dict[tuple[int, int], int] = {}
        for offset in code:
            statements.setdefault(self._innermost(start + offset).statement(start + offset), start + offset)
        return list(statements.values())

    def _innermost(self, offset: int) -> _Block:
        index = bisect.bisect_right(self._starts, offset)
        block: _Block | None = self._blocks[index - 1] if index else None
        while block is not None and not block.start <= offset < block.end:
            block = block.parent
        return block or self._root

    def _cut_one(self, offset: int) -> bool:
        """Cut the smallest part around an offset that still stands, or say that none may go."""
        if offset < 0:
            return False
        chain = list(_above(self._innermost(offset)))  # from the inside out
        if any(self._is_device(block) for block in chain):
            return False
        for block in chain:
            part = block.statement(offset)
            if block.kind is PartKind.LIST or (
                block.kind is PartKind.CLASS and not self._is_function(part, block)
            ):
                continue
            if block.kind in {PartKind.SCOPE, PartKind.CLASS} and self._may_be_device(part):
                return False
            if self._add(part, keep=block.kind in {PartKind.FUNCTION, PartKind.CONTROL}):
                return True
        return False

    def _is_function(self, part: tuple[int, int], block: _Block) -> bool:
        """Whether a member of a class is a function with a body: the class is as large without it."""
        inside = [
            contained
            for contained in self._blocks
            if contained.parent is block and part[0] <= contained.start < part[1]
        ]
        return (
            len(inside) == 1
            and inside[0].kind is PartKind.FUNCTION
            and "virtual" not in self._head(inside[0])
        )

    def _may_be_device(self, part: tuple[int, int]) -> bool:
        """Whether a declaration has device code or data in it."""
        text = self._masked[part[0] : part[1]]
        return bool(_DEVICE.search(text) or _MACRO.search(re.split(r"[({=]", text, maxsplit=1)[0]))

    def _is_device(self, block: _Block) -> bool:
        """Whether a block is the body of something that may run on the device."""
        if block.kind not in {PartKind.FUNCTION, PartKind.LIST}:
            return False
        head = self._head(block)
        if block.kind is PartKind.LIST:
            return _DEVICE.search(head) is not None
        names = head.partition("(")[0]
        return bool(_DEVICE.search(head) or _COMPILE_TIME.search(names) or _MACRO.search(names))

    def _head(self, block: _Block) -> str:
        return self._masked[block.head : block.start - 1]

    def _add(self, part: tuple[int, int], *, keep: bool) -> bool:
        """Cut a part; False where it was cut before with all that it instantiates, and that did not do."""
        start, end = part
        start += len(code := self._masked[start:end]) - len(code.lstrip())
        if start >= end:
            return False
        around = [span for span in self._cut if span[0] <= start and end <= span[1]]
        if any(span not in self._settled for span in around):
            return True  # for another error beside this one
        if any(self._cut[span] == ";" or span != (start, end) for span in around):
            return False
        again = (start, end) in self._cut
        self._cut = {
            span: replacement
            for span, replacement in self._cut.items()
            if not (start <= span[0] and span[1] <= end)
        }
        kernels = _launched(code) if keep and not again else []
        self._cut[start, end] = "".join(f"(void)&{name};" for name in kernels) or ";"
        return True


def _mask(text: str) -> tuple[str, str, list[tuple[int, int]]]:
    """The text with blanks for comments, literals and directives; with fewer branches; where directives are.

    Of the branches of an ``#if`` that open other braces than they close, only the first is in the second.
    """
    text = _MASKED.sub(_blank_literal, text)
    directives: list[tuple[int, int]] = []
    branches: list[list[int]] = []
    hidden: list[tuple[int, int]] = []
    for match in _DIRECTIVE.finditer(text):
        directives.append(match.span())
        name = match["name"]
        if name.startswith("if"):
            branches.append([match.end()])
        elif name.startswith("el") and branches:
            branches[-1] += match.span()
        elif name == "endif" and branches:
            hidden += _unbalanced(text, [*branches.pop(), match.start()])
    text = structure = _DIRECTIVE.sub(lambda match: _NOT_NEWLINE.sub(" ", match[0]), text)
    for start, end in hidden:
        structure = structure[:start] + _NOT_NEWLINE.sub(" ", structure[start:end]) + structure[end:]
    return text, structure, directives


def _blank_literal(match: re.Match[str]) -> str:
    """A comment as blanks, a literal as an empty string of its length."""
    blank = _NOT_NEWLINE.sub(" ", match[0])
    return blank if match[0].startswith("/") else f'""{blank[2:]}'


def _unbalanced(text: str, edges: list[int]) -> Iterator[tuple[int, int]]:
    """All branches but the first, where one opens other braces than it closes."""
    parts = list(zip(edges[::2], edges[1::2], strict=False))
    if any(text.count("{", *part) != text.count("}", *part) for part in parts):
        yield from parts[1:]


def _blocks(masked: str, root: _Block) -> list[_Block]:
    """Pairs of braces by their start, with the ends of the statements in them."""
    blocks: list[_Block] = []
    stack: list[tuple[_Block, int]] = [(root, 0)]  # with the depth of parentheses around each
    depth = 0
    for match in re.finditer(r"[{}();]", masked):
        index, sign = match.start(), match[0]
        block, outside = stack[-1]
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth = max(depth - 1, outside)
        elif sign == ";" and depth == outside:
            block.ends.append(index + 1)
        elif sign == "{":
            head = block.ends[-1] if block.ends else block.start
            kind = PartKind.LIST if depth > outside else _kind(masked[head:index].strip(), block)
            opened = _Block(index + 1, len(masked), head, kind, block)
            blocks.append(opened)
            stack.append((opened, depth))
        elif sign == "}" and len(stack) > 1:
            stack.pop()
            block.end, depth = index, outside
            parent, around = stack[-1]
            goes_on = block.kind in {PartKind.LIST, PartKind.CLASS} or (
                block.kind is PartKind.CONTROL and _CONTINUES.match(masked, index + 1) is not None
            )
            if depth == around and not goes_on:
                parent.ends.append(index + 1)
    return blocks


def _kind(head: str, parent: _Block) -> PartKind:
    """What braces hold behind some words in a block."""
    if parent.kind in {PartKind.FUNCTION, PartKind.CONTROL, PartKind.LIST}:
        local = _CLASS.search(head) is not None and "(" not in head
        return PartKind.CONTROL if _CONTROL.match(head) else PartKind.CLASS if local else PartKind.LIST
    if _SCOPE.search(head):
        return PartKind.SCOPE
    if _CLASS.search(re.sub(r"^\s*template\s*<", "", head)):
        return PartKind.CLASS
    return PartKind.FUNCTION if ")" in head and not head.endswith("=") else PartKind.LIST


def _above(block: _Block | None) -> Iterator[_Block]:
    while block is not None:
        yield block
        block = block.parent


def _launched(code: str) -> list[str]:
    """Templates with their arguments that are launched."""
    kernels = (_instance(match) for match in _REFERENCE.finditer(code))
    return list(dict.fromkeys(name for name in kernels if name is not None))


def _instance(match: re.Match[str]) -> str | None:
    """``name<arguments>`` where a launch follows."""
    text, depth, parentheses = match["rest"], 1, 0
    for index, sign in enumerate(text):
        parentheses += (sign == "(") - (sign == ")")
        depth += 0 if parentheses else (sign == "<") - (sign == ">")
        if depth == 0:
            launched = text[index + 1 :].lstrip().startswith("<<<")
            return f"{match['name']}<{' '.join(text[:index].split())}>" if launched else None
    return None
