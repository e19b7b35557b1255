# SPDX-License-Identifier: Apache-2.0
"""Programs that stand in for external tools and misbehave as told."""

from __future__ import annotations

import sys
from pathlib import Path

ANSWERS = """
if "--version" in sys.argv:
    print("nvdisasm: NVIDIA (R) CUDA disassembler")
    print("Cuda compilation tools, release {0}, V{0}")
    sys.exit()
if "--help" in sys.argv:
    print("Allowed values for this option:  {1}. {2}")
    sys.exit()
"""


def program(path: Path, body: str) -> Path:
    """An executable Python script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable} -S\nimport os, signal, subprocess, sys, time\n{body}\n", encoding="utf-8"
    )
    path.chmod(0o755)
    return path


def tool(
    path: Path,
    body: str = "",
    *,
    version: str = "13.5.37",
    known: str = "'SM75','SM80','SM86'",
    json: bool = True,
) -> Path:
    """A script that answers --version and --help as NVIDIA's tools do, and else does ``body``."""
    return program(path, ANSWERS.format(version, known, "(-json)" if json else "") + body)
