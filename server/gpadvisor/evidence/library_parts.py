# SPDX-License-Identifier: Apache-2.0
"""Parts of expanded library math beside its core: a sine's polynomial, and the way around a rare path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from gpadvisor.model.instruction import Instruction, OpcodeClass, RegisterFile, register_file
from gpadvisor.model.program import Function

_WINDOW: Final = 64
_AWAY: Final = 24
"""Instructions in front of a rare path in which its region of reconvergence begins."""
_REGION: Final = frozenset({"BSSY", "BSYNC"})
_NEAR: Final = 16
"""Instructions around a chain in which the rest of its operation stands."""
_OF_REGION: Final = frozenset(
    {"FSETP", "FSEL", "FADD", "FMUL", "FFMA", "FRND", "LOP3", "MOV", "BRA", "BSYNC"}
)
_LEADING: Final = ("-0.4999999701976776123", "-0.16666662693023681641")
"""First coefficients of the polynomials of cosine and sine, between which the quadrant selects."""
_STEPS: Final = frozenset(
    {"FSEL", "FFMA", "FMUL", "FADD", "MOV", "IMAD", "HFMA2", "LOP3", "R2P", "IADD3", "VIADD", "IADD", "SEL"}
    | {"ISETP"}
)
"""Opcodes of a polynomial; some of them move its constants or test the quadrant."""


def around(function: Function, rare: int) -> frozenset[int]:
    """What leads around a rare path: its branch with the test, and the barrier of reconvergence."""
    instructions, first = function.instructions, max(rare - _AWAY, 0)
    begin = next(
        (index for index in range(rare - 1, first - 1, -1) if instructions[index].opcode == "BSSY"), None
    )
    found = set() if begin is None else {begin}
    last = min(rare + 2 * _WINDOW, len(instructions))
    if begin is not None:
        end = next((index for index in range(rare, last) if instructions[index].opcode in _REGION), None)
        found |= {end} if end is not None and instructions[end].opcode == "BSYNC" else set()
    for index in range(rare - 1, first if begin is None else begin, -1):
        branch = instructions[index]
        if branch.info.opclass is OpcodeClass.BRANCH and branch.guard is not None:
            tests = function.reaching.definitions(index, branch.guard.register)
            return frozenset({*found, index, *(test for test in tests if first <= test < index)})
    return frozenset(found)


_SCALED: Final = ("1.175494350822287508e-38", "8388608", "16777216", "-23", "-24")
"""What a denormal argument of a logarithm is found by and scaled with."""
_INFINITE: Final = ("0x7f800000", "+INF", "-INF")
_OF_RESULTS: Final = ("FMUL", "FADD", "FFMA", "FSEL", "LOP3")
SPECIAL_CASES: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    "logf": (_SCALED + _INFINITE, 0),
    "log2f": (_SCALED + _INFINITE, 4),
    "powf": (_SCALED + _INFINITE, 3),
    "expf": ((), 1),
    "tanhf": ((), 6),
}
"""By kind, the numbers in what stands beside the chain, and the steps from its end to the result."""


def special_cases(function: Function, kind: str, chain: frozenset[int]) -> frozenset[int]:
    """What stands beside the chain of a logarithm, a power, an exponential, and goes with it.

    That is the scaling of denormal arguments before it, the choice of the result for zero and infinity behind
    it, the last steps to its result, and of ``powf`` the region for special bases and exponents.
    """
    numbers, steps = SPECIAL_CASES[kind]
    code, first, last = function.instructions, min(chain), max(chain)
    near = range(max(first - _NEAR, 0), min(last + _NEAR, len(code)))
    found = {i for i in near if not set(numbers).isdisjoint(code[i].operand_texts)}
    for select in [i for i in found if code[i].opcode == "FSEL"]:
        predicates = (used for used in code[select].uses if register_file(used) is RegisterFile.PREDICATE)
        for predicate in predicates:
            found.update(i for i in function.reaching.definitions(select, predicate) if i in near)
    reached = {register for index in chain for register in code[index].defs}
    for index in range(last + 1, min(last + _NEAR, len(code))):
        if steps and code[index].opcode in _OF_RESULTS and reached.intersection(code[index].uses):
            found.add(index)
            reached.update(code[index].defs)
            steps -= 1
    argument = {
        writer for register in code[first].uses for writer in function.reaching.definitions(first, register)
    }
    found |= _behind(function, max(found, default=last), near.start, chain | argument)
    return frozenset(found - chain) | (_region(function, last) if kind == "powf" else frozenset())


def _region(function: Function, first: int) -> frozenset[int]:
    """The rest of a region behind an instruction, without what computes addresses in it."""
    code = function.instructions
    end = next(
        (i for i in range(first + 1, min(first + _WINDOW, len(code))) if code[i].opcode in _REGION), None
    )
    if end is None or code[end].opcode != "BSYNC":
        return frozenset()
    return frozenset(i for i in range(first + 1, end + 1) if code[i].opcode in _OF_REGION)


def polynomials(function: Function, selects: Collection[int], taken: Collection[int]) -> list[frozenset[int]]:
    """The polynomials of sine and cosine, from the reduced argument to the sign of the quadrant.

    Args:
        function: the code.
        selects: its instructions with the opcode FSEL.
        taken: the reductions of the argument and their rare paths, where a polynomial begins.
    """
    found = []
    for select in selects:
        if any(number in function.instructions[select].operands for number in _LEADING):
            sign = _sign(function, select)
            if sign is not None:
                found.append(_behind(function, sign, select - _WINDOW, taken))
        elif _takes_either_sign(function.instructions[select]):
            whole = _behind(function, select, select - _WINDOW, taken)
            if all(any(number in function.instructions[i].operands for i in whole) for number in _LEADING):
                found.append(whole)  # of sincosf(): both polynomials, between whose values it selects
    return found


def _takes_either_sign(select: Instruction) -> bool:
    value, negated = (operand.removesuffix(".reuse") for operand in select.operand_texts[1:3])
    return negated == f"-{value}"


def _sign(function: Function, select: int) -> int | None:
    """The conditional change of the result's sign."""
    reached = set(function.instructions[select].defs)
    for index in range(select + 1, min(select + _WINDOW, len(function.instructions))):
        instruction = function.instructions[index]
        if instruction.opcode in {"FFMA", "FADD"} and reached.intersection(instruction.uses):
            if instruction.guard is not None and _negates(instruction):
                return index
            reached.update(instruction.defs)
    return None


def _negates(instruction: Instruction) -> bool:
    operands = instruction.operand_texts
    return operands[2:] == ["-1", "RZ"] or (instruction.opcode == "FADD" and "RZ" in "".join(operands[1:]))


def _behind(function: Function, end: int, first: int, taken: Collection[int]) -> frozenset[int]:
    """What an instruction's value is made of, back to what is taken."""
    found, waiting = {end}, [end]
    while waiting:
        index = waiting.pop()
        for register in function.instructions[index].uses:
            for writer in function.reaching.definitions(index, register):
                steps = function.instructions[writer].opcode in _STEPS
                if steps and first <= writer < end and writer not in found and writer not in taken:
                    found.add(writer)
                    waiting.append(writer)
    return frozenset(found)
