# SPDX-License-Identifier: Apache-2.0
"""What the server imports to show things: no analysis, no graph library, no parser."""

from __future__ import annotations

import subprocess
import sys

_MODULES = (
    *(
        f"show.{name}"
        for name in ("diagnostics", "heat", "hints", "hover", "ledger", "lenses", "control_code", "status")
    ),
    "place.placing",
)
_HEAVY = (
    "networkx",
    "duckdb",
    "tree_sitter",
    "numba",
    "gpadvisor.analyzer",
    "gpadvisor.blamer",
    "gpadvisor.store",
)


def test_showing_needs_no_heavy_package() -> None:
    program = (
        "import sys\n"
        + "".join(f"import gpadvisor.editor.{name}\n" for name in _MODULES)
        + f"print([name for name in {_HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
