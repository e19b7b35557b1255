# SPDX-License-Identifier: Apache-2.0
"""Which file of this machine a line table means, where several may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.sources.found import find_sources

TEXT = "__global__ void scale(float* a);\n"


def _found(tmp_path: Path, here: dict[str, str]) -> str | None:
    """Where a source is found that was compiled in another checkout, which still exists."""
    there = tmp_path / "there" / "src" / "scale.cu"
    there.parent.mkdir(parents=True)
    there.write_text(TEXT, encoding="utf-8")
    root = tmp_path / "here"
    for name, text in here.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    request = Request(settings=Settings(), root=root)
    (match,) = find_sources([str(there)], None, None, request).matches
    return match.local_path and str(Path(match.local_path).relative_to(tmp_path))


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        ({"src/scale.cu": TEXT}, "here/src/scale.cu"),
        ({"src/scale.cu": "// another\n"}, "there/src/scale.cu"),
        ({"a/scale.cu": TEXT, "b/scale.cu": TEXT}, "there/src/scale.cu"),
    ],
)
def test_of_two_checkouts_the_open_one_is_meant(tmp_path: Path, here: dict[str, str], expected: str) -> None:
    assert _found(tmp_path, here) == expected
