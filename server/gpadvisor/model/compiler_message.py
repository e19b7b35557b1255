# SPDX-License-Identifier: Apache-2.0
"""What a compiler complained about, as values: one for each error, with its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerMessage:
    """One error of nvcc, of the host's preprocessor, of NVRTC or of ptxas."""

    message: str  # without the place, one line
    file: str | None = None  # absolute; None where the error is of no file, as those of ptxas
    line: int | None = None  # from 1
    column: int | None = (
        None  # from 1; None where the compiler tells only the column after macros are replaced
    )
    missing_header: str | None = None  # its name as the source includes it, where that is the error
    included_at: tuple[str, int] | None = None
    """File and line in the compiled source through which a header came that the error is in, where known."""
