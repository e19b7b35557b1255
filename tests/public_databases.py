# SPDX-License-Identifier: Apache-2.0
"""Public databases of HPCToolkit out of mirrors of their repositories, which GPADVISOR_MIRRORS names."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

MIRRORS = Path(os.environ.get("GPADVISOR_MIRRORS", "/nowhere"))
"""A folder of bare repositories named OWNER+NAME."""
PUBLIC = {
    "HPCToolkit+hpctoolkit": ("develop", "tests/data/dbase", "tests/data/meas"),
    "yuninxia+leo_sc26_ae": ("main", "tests/data/pc"),
    "hatchet+hatchet": ("develop", "hatchet/tests/data/hatchet_cpi_v4_database"),
}
_WANTED = (".db", ".gpubin")


def _mirror(repository: str) -> Path:
    inner = MIRRORS / repository / "repo"
    return inner if inner.is_dir() else MIRRORS / repository


needs_mirrors = pytest.mark.skipif(
    not all(_mirror(repository).is_dir() for repository in PUBLIC),
    reason=f"GPADVISOR_MIRRORS names no folder with mirrors of {', '.join(PUBLIC)}",
)


@functools.cache
def public() -> Path:
    """The public databases with their GPU binaries, under the paths of their repositories."""
    folder = tempfile.TemporaryDirectory(prefix="gpadvisor-public-")
    _KEPT.append(folder)
    into = Path(folder.name)
    for repository, (branch, *folders) in PUBLIC.items():
        git = ("git", "-C", str(_mirror(repository)))
        listed = subprocess.run(
            [*git, "ls-tree", "-r", "--name-only", branch, "--", *folders],
            capture_output=True,
            check=True,
            text=True,
        )
        for name in listed.stdout.splitlines():
            if not name.endswith(_WANTED) or "gpubins-used" in name:
                continue
            blob = subprocess.run(
                [*git, "cat-file", "blob", f"{branch}:{name}"], capture_output=True, check=True
            )
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).write_bytes(blob.stdout)
    return into


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def of_vendor(vendor: str) -> tuple[Path, Path]:
    """LEO's database of a vendor's GPU, and its measurements."""
    folder = public() / "tests/data/pc" / vendor
    (database,), (measured,) = folder.glob("*-database"), folder.glob("*-measurements")
    return database, measured
