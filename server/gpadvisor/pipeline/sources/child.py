# SPDX-License-Identifier: Apache-2.0
"""The child process that parses sources: a native parser that crashes or never ends takes only itself along.

It reads paths and texts (JSON) from the file that its only argument names and prints their facts (JSON).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gpadvisor.source.reading import source_facts


def main() -> None:
    """Answer the request of the command line."""
    request = json.loads(Path(sys.argv[1]).read_bytes())
    sys.stdout.write(json.dumps([source_facts(path, text).to_json() for path, text in request]))


if __name__ == "__main__":
    main()
