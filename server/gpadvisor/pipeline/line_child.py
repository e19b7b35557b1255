# SPDX-License-Identifier: Apache-2.0
"""The child process that decodes a line table: one that asks for too much takes only this process along.

It reads section names (JSON, on a line of its own) and a cubin from the file that its only argument names.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Answer the request of the command line."""
    from gpadvisor.store.child import end_with_parent  # noqa: PLC0415 before everything else

    end_with_parent()
    import json  # noqa: PLC0415 see above

    from gpadvisor.cubin import decode_lines, dump_lines, read_cubin  # noqa: PLC0415 see above

    sections, _, data = Path(sys.argv[1]).read_bytes().partition(b"\n")
    sys.stdout.buffer.write(dump_lines(decode_lines(read_cubin(data), json.loads(sections))))


if __name__ == "__main__":
    main()
