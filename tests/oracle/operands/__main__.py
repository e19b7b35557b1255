# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.oracle.operands [FOLDER]``: everything against nvdisasm's life ranges, as a table."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.oracle.operands.compare import everything


def main() -> int:
    """Prints the table; cubins are kept in FOLDER when one is named."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        sys.stdout.write(everything(folder).table() + "\n")
        return 0
    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(everything(Path(name)).table() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
