# SPDX-License-Identifier: Apache-2.0
"""Whether a source that changed on disk makes another answer of a profile that was read before."""

from __future__ import annotations

import os
from pathlib import Path

from gpadvisor.editor.place.remarks import remarks
from gpadvisor.lsp.paths import read_text, resolved
from gpadvisor.model.finding import EditorAnalysis, FileAnalysis


def is_outdated_by(analysis: EditorAnalysis, path: str) -> bool:
    """By its comments to gpadvisor, by being gone, or by standing where one that was missed may be.

    Args:
        analysis: Of the profile.
        path: Resolved, of the source as it is on disk now.
    """
    return any(_differs(file, path) for file in analysis.files)


def _differs(file: FileAnalysis, path: str) -> bool:
    if file.local is None:
        return os.path.basename(file.path.replace("\\", "/")) == Path(path).name  # noqa: PTH119 - not of here
    if not Path(file.local).exists():
        return True
    text = read_text(path) if resolved(file.local) == path else None
    return text is not None and remarks(text) != file.remarks
