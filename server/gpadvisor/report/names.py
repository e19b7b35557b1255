# SPDX-License-Identifier: Apache-2.0
"""Kernel names short enough to read: what a template of ten lines is called, not how it was made."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from gpadvisor.report.words import ELLIPSIS, Keep, cells, shorten

_MAX_PARSED: Final = 16_384
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSING: Final = frozenset(_OPENING.values())
_OPERATOR: Final = re.compile(r"\boperator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?)")


def short_name(demangled: str, width: int) -> str:
    """The demangled name in at most ``width`` cells.

    It loses, as far as needed and in this order: the return type, the parameters, nested template
    arguments, all template arguments, the namespaces; then it is cut in the middle.
    """
    if cells(demangled) <= width or len(demangled) > _MAX_PARSED:
        return shorten(demangled, width, Keep.BOTH)
    shortest = demangled
    for shortest in _candidates(demangled):
        if cells(shortest) <= width:
            return shortest
    return shorten(shortest, width, Keep.BOTH)


def core_name(demangled: str) -> str:
    """The name without return type and parameters, which demanglers write differently."""
    if len(demangled) > _MAX_PARSED:
        return demangled
    return _without_parameters(_without_return_type(demangled))


def base_name(demangled: str) -> str:
    """The name without return type, parameters, template arguments and namespaces."""
    if len(demangled) > _MAX_PARSED:
        return demangled
    name = _without_namespaces(_without_parameters(_without_return_type(demangled)))
    depths = _depths(name)
    cut = next((i for i, char in enumerate(name) if char == "<" and depths[i] == 1), len(name))
    return name[:cut].strip() or name


def template_name(demangled: str) -> str:
    """What all instantiations of a template share: the name with template arguments and parameters left out.

    The name itself where it has no template arguments: overloads are functions of their own.
    """
    if "<" not in demangled or len(demangled) > _MAX_PARSED:
        return demangled
    core = core_name(demangled)
    name = _without_template_arguments(core, 1)
    return demangled if name == core else name


def parameters(demangled: str) -> tuple[str, ...] | None:
    """The types in the parameter list; None of a name without one."""
    start = _parameters_at(demangled) if len(demangled) <= _MAX_PARSED else len(demangled)
    if start == len(demangled):
        return None
    depths = _depths(demangled)
    end = next((i for i in range(start, len(demangled)) if demangled[i] == ")" and depths[i] == 1), None)
    if end is None:
        return None
    cuts = [start, *(i for i in range(start, end) if demangled[i] == "," and depths[i] == 1), end]
    result = tuple(demangled[a + 1 : b].strip() for a, b in itertools.pairwise(cuts))
    return () if result in {("",), ("void",)} else result


def _candidates(name: str) -> Iterator[str]:
    name = _without_return_type(name)
    yield name
    name = _without_parameters(name)
    yield name
    yield _without_template_arguments(name, 2)
    name = _without_template_arguments(name, 1)
    yield name
    yield _without_namespaces(name)


def _depths(name: str) -> list[int]:
    """Nesting depth at each character, brackets counted with what they enclose; operators are letters."""
    plain = {index for match in _OPERATOR.finditer(name) for index in range(*match.span())}
    depths: list[int] = []
    stack: list[str] = []
    for index, char in enumerate(name):
        if index not in plain and char in _OPENING:
            stack.append(_OPENING[char])
            depths.append(len(stack))
            continue
        depths.append(len(stack))
        if index not in plain and char in _CLOSING and stack and stack[-1] == char:
            stack.pop()
    return depths


def _without_return_type(name: str) -> str:
    head = name[: _parameters_at(name)]
    depths = _depths(head)
    end = next((match.start() for match in _OPERATOR.finditer(head)), len(head))
    cut = max((i for i in range(end) if head[i] == " " and depths[i] == 0), default=-1)
    return name[cut + 1 :]


def _parameters_at(name: str) -> int:
    """Where the parameter list begins; the length of the name where there is none."""
    depths = _depths(name)
    starts = [i for i, char in enumerate(name) if char == "(" and depths[i] == 1]
    for start in reversed(starts):
        if start > 0 and not name.startswith("(anonymous namespace)", start):
            return start
    return len(name)


def _without_parameters(name: str) -> str:
    return name[: _parameters_at(name)] or name


def _without_template_arguments(name: str, depth: int) -> str:
    """Template argument lists at bracket depth ``depth`` reduced to ``<...>``."""
    depths = _depths(name)
    result: list[str] = []
    index = 0
    while index < len(name):
        result.append(name[index])
        if name[index] != "<" or depths[index] != depth:
            index += 1
            continue
        end = next((i for i in range(index, len(name)) if name[i] == ">" and depths[i] == depth), len(name))
        if end - index > len(ELLIPSIS) + 1:
            result.append(f"{ELLIPSIS}>")
            index = end + 1
        else:
            index += 1
    return "".join(result)


def _without_namespaces(name: str) -> str:
    depths = _depths(name)
    cuts = [i for i in range(len(name) - 2) if name[i : i + 2] == "::" and depths[i] == 0]
    return name[cuts[-1] + 2 :] if cuts else name
