# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.oracle.operands [FOLDER]``: the whole comparison with nvdisasm's life ranges, as a table."""

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
        print(everything(folder).table())
        return 0
    with tempfile.TemporaryDirectory() as name:
        print(everything(Path(name)).table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
