# SPDX-License-Identifier: Apache-2.0
"""The child process that reads launches out of the texts of one unit; it answers as ``source_child`` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpadvisor.source.launch_reading import launch_sites


def main() -> None:
    """Answer the request of the command line."""
    request = json.loads(Path(sys.argv[1]).read_bytes())
    sys.stdout.write(json.dumps([site.to_json() for site in launch_sites(request)]))


if __name__ == "__main__":
    main()
