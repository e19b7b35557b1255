# SPDX-License-Identifier: Apache-2.0
"""What kernels are written in, as far as words differ, and a term with its form in each language."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.model.kind import Kind


class Language(Kind):
    """A language that kernels are written in."""

    CUDA = "cuda"  # C++
    FORTRAN = "fortran"
    JULIA = "julia"
    PYTHON = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What a change asks for, as each language writes it; values of the kernel go into ``{braces}``."""

    cuda: str
    fortran: str
    julia: str
    python: str

    def of(self, language: Language, **values: object) -> str:
        """The term in a language, with the values that it takes."""
        written: str = getattr(self, language.value)
        return written.format(**values)
