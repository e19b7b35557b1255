# SPDX-License-Identifier: Apache-2.0
"""Runs the command line: ``python -m gpadvisor``."""

from __future__ import annotations

import sys

from gpadvisor.cli import main

if __name__ == "__main__":
    sys.exit(main())
