# SPDX-License-Identifier: Apache-2.0
"""The child process that finds where sources can be edited; it answers as ``source_child`` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpadvisor.source.edits.reading import edit_facts


def main() -> None:
    """Answer the request of the command line."""
    request = json.loads(Path(sys.argv[1]).read_bytes())
    sys.stdout.write(json.dumps([edit_facts(path, text).to_json() for path, text in request]))


if __name__ == "__main__":
    main()
