# SPDX-License-Identifier: Apache-2.0
"""The dependency graph of a profile's kernels, printed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpadvisor.blamer import DEFAULT_RULES, GPA2021
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.files import cache_folder
from gpadvisor.pipeline.analyse import analyse_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.report.blame_table import blame_rows, render_blame_csv, render_blame_json, render_blame_text

RULES: Final = {"gpadvisor": DEFAULT_RULES, "gpa2021": GPA2021}


def blame_file(
    path: Path,
    request: Request,
    progress: Progress,
    *,
    rules: str,
    output_format: str,
    rows: int | None,
    width: int,
) -> str:
    """The table of each kernel with samples.

    Raises:
        ProfileMismatchError: no wanted kernel has samples.
        GpadvisorError: the input or a tool is at fault.
    """
    analysis = analyse_file(path, request, progress, Cache(cache_folder()), RULES[rules])
    tables = [
        (kernel.demangled, blame_rows(kernel.context.program, kernel.context.blame))
        for kernel in analysis.kernels
        if kernel.context.blame is not None
    ]
    if not tables:
        raise ProfileMismatchError(
            f"no kernel of {path} has samples to blame; 'gpadvisor advise {path}' says what else it holds"
        )
    if output_format == "json":
        return render_blame_json(tables)
    if output_format == "csv":
        return render_blame_csv(tables)
    return "\n".join(render_blame_text(name, table, limit=rows, width=width) for name, table in tables)
