# SPDX-License-Identifier: Apache-2.0
"""What a bug report needs, as Markdown; no text of any source."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Final

from gpadvisor import __version__

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session

_PACKAGES: Final = (
    "pygls",
    "lsprotocol",
    "numpy",
    "tree-sitter",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-nvrtc",
)


def debug_information(session: Session) -> str:
    """Versions, settings, what is analysed, what went wrong."""
    workspace = session.workspace
    lines = [
        "# GPAdvisor: debug information",
        "",
        f"- gpadvisor {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"- interpreter: {sys.executable}",
        *(f"- {name} {version}" for name in _PACKAGES if (version := _version(name))),
        f"- trusted: {workspace.trusted}; positions: {workspace.encoding}; busy: {session.busy}",
        f"- workers: {len(session.workers.pids)} ({session.workers.busy} at work)",
        "",
        "## Client",
        "",
        *(f"- {name}: {value}" for name, value in asdict(session.client).items()),
    ]
    for folder in workspace.folders.values():
        lines += ["", f"## {folder.path}", ""]
        lines += [f"- {name}: {value!r}" for name, value in asdict_of(folder.settings).items()]
    lines += ["", "## Analyses", ""]
    for entry in workspace.entries.values():
        analysis = entry.analysis
        lines.append(
            f"- {analysis.origin}: {len(analysis.kernels)} kernels, {len(analysis.files)} files, "
            f"{sum(len(file.findings) for file in analysis.files)} findings, {analysis.sha256[:12]}"
        )
    lines += ["", "## Errors", "", *(f"- {path}: {said}" for path, said in session.analyses.errors.items())]
    return "\n".join(lines) + "\n"


def asdict_of(settings: object) -> dict[str, object]:
    """Fields of frozen settings, whose mappings cannot be copied deeply."""
    names = getattr(settings, "__dataclass_fields__", {})
    return {name: getattr(settings, name) for name in names}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
