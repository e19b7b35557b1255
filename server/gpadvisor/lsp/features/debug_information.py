# SPDX-License-Identifier: Apache-2.0
"""What a bug report needs, as Markdown; no text of any source."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from typing import Final

from gpadvisor import __version__
from gpadvisor.lsp.snapshot import Snapshot

_PACKAGES: Final = (
    "pygls",
    "lsprotocol",
    "numpy",
    "tree-sitter",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-nvrtc",
)


def debug_information(snapshot: Snapshot, workers: int, at_work: int) -> str:
    """Versions, settings, what is analysed, what went wrong; ``workers`` are processes."""
    lines = [
        "# GPAdvisor: debug information",
        "",
        f"- gpadvisor {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"- interpreter: {sys.executable}",
        *(f"- {name} {version}" for name in _PACKAGES if (version := _version(name))),
        f"- trusted: {snapshot.trusted}; positions: {snapshot.encoding}; busy: {snapshot.busy}",
        f"- workers: {workers} ({at_work} at work)",
        "",
        "## Client",
        "",
        *(f"- {name}: {value}" for name, value in asdict(snapshot.client).items()),
    ]
    for folder in snapshot.folders.values():
        lines += ["", f"## {folder.path}", ""]
        lines += [f"- {name}: {value!r}" for name, value in asdict_of(folder.settings).items()]
    lines += ["", "## Analyses", ""]
    for entry in snapshot.entries.values():
        analysis = entry.analysis
        lines.append(
            f"- {analysis.origin}: {len(analysis.kernels)} kernels, {len(analysis.files)} files, "
            f"{sum(len(file.findings) for file in analysis.files)} findings, {analysis.sha256[:12]}"
        )
    lines += ["", "## Errors", "", *(f"- {path}: {sentence}" for path, sentence in snapshot.errors.items())]
    return "\n".join(lines) + "\n"


def asdict_of(settings: object) -> dict[str, object]:
    """Fields of frozen settings, whose mappings cannot be copied deeply."""
    names = getattr(settings, "__dataclass_fields__", {})
    return {name: getattr(settings, name) for name in names}


def _version(package: str) -> str | None:
    from importlib import metadata  # noqa: PLC0415 start-up cost

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
