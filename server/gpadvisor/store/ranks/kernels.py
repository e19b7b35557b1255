# SPDX-License-Identifier: Apache-2.0
"""The kernels of many profiles by number, and the little of each that is no table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import Evidence
from gpadvisor.model.stalls import StallClass

Key: TypeAlias = tuple[str | None, str, str, str | None, str, int | None]
"""Binary, mangled name, architecture, device, evidence and sampling interval in cycles."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MAX_REASONS: Final = 255  # what the reason column of the samples can number


@dataclass(slots=True)
class SummedKernel:
    """What the launches of one kernel have between them."""

    key: Key
    demangled: str
    sections: set[str] = field(default_factory=set)
    reasons: dict[str, list[str]] = field(default_factory=dict)  # name, class and words, by name
    pc_metrics: Counter[str] = field(default_factory=Counter)  # how many launches have each
    problems: dict[str, tuple[str, int]] = field(default_factory=dict)  # message and launches, by code


@dataclass(slots=True)
class Kernels:
    """All kernels."""

    found: list[SummedKernel] = field(default_factory=list)
    failed: int = 0  # launches
    _numbers: dict[Key, int] = field(default_factory=dict)

    def copy(self) -> Kernels:
        """Another one, which can be thrown away."""
        return deepcopy(self)

    def number(self, key: tuple[Any, ...], demangled: str) -> int:
        """The number of a kernel.

        Raises:
            ValueError: no kernel is like that.
        """
        binary, kernel, arch, device, evidence, interval = key
        if not isinstance(kernel, str) or not isinstance(arch, str) or not isinstance(demangled, str):
            raise ProfileFormatError("it has a launch without a kernel's name or an architecture")
        if binary is not None and not _DIGEST.fullmatch(binary):
            raise ProfileFormatError("it has a launch whose binary is no digest")
        kernel_key: Key = (binary, kernel, arch, device, Evidence(evidence).value, interval)
        if kernel_key not in self._numbers:
            self._numbers[kernel_key] = len(self.found)
            self.found.append(SummedKernel(kernel_key, demangled))
        entry = self.found[self._numbers[kernel_key]]
        entry.demangled = min(entry.demangled, demangled)
        return self._numbers[kernel_key]

    def note(
        self,
        number: int,
        sections: Sequence[str],
        reasons: Sequence[Sequence[str]],
        pc_metrics: Mapping[str, int],
        problems: Sequence[tuple[str, str, int]],
    ) -> None:
        """Add what some launches have; of messages of one kind the first in the alphabet is kept.

        Raises:
            ProfileFormatError: there are more stall reasons than one table holds.
        """
        kernel = self.found[number]
        kernel.sections.update(map(str, sections))
        for name, stall_class, plain in reasons:
            kernel.reasons[str(name)] = min(
                kernel.reasons.get(str(name), [str(name), StallClass(stall_class).value, str(plain)]),
                [str(name), StallClass(stall_class).value, str(plain)],
            )
        if len(kernel.reasons) > _MAX_REASONS:
            raise ProfileFormatError(f"it brings a kernel to more than {_MAX_REASONS} stall reasons")
        kernel.pc_metrics.update(pc_metrics)
        for code, message, count in problems:
            before, had = kernel.problems.get(ProblemCode(code).value, (str(message), 0))
            kernel.problems[code] = (min(before, str(message)), had + count)

    def vocabulary(self, number: int, column: str) -> set[str]:
        """The names that a column of a kernel's rows may have."""
        kernel = self.found[number]
        return set(kernel.reasons) if column == "reason" else kernel.sections
