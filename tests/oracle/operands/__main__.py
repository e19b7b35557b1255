# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.oracle.operands [FOLDER]``: everything against nvdisasm's life ranges, as tables."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.oracle.operands.compare import everything, kernels_and_cub
from tests.oracle.operands.corpus import ARCHITECTURES, FURTHER


def main() -> int:
    """Prints the tables; cubins are kept in FOLDER when one is named."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        _print(folder)
        return 0
    with tempfile.TemporaryDirectory() as name:
        _print(Path(name))
    return 0


def _print(folder: Path) -> None:
    for name, score in (
        ("Kernels of ours and CUB", kernels_and_cub(folder)),
        ("With the files that reach for rare forms", everything(folder, ARCHITECTURES)),
        ("With them, further architectures", everything(folder, FURTHER)),
    ):
        sys.stdout.write(f"{name}\n{score.table()}\n\n")


if __name__ == "__main__":
    sys.exit(main())
