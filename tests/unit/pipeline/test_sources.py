# SPDX-License-Identifier: Apache-2.0
"""Which file of this machine a line table means, where several may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.optimizer_values import FILE, listing

from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.sources.chosen import SourceChooser
from gpadvisor.pipeline.sources.lookup import find_sources

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


@pytest.mark.parametrize(
    ("name", "compiled", "found"),
    [
        ("kernel_files/sum.cuknl", "sum.cu", True),
        ("kernel_files/sum.cuh", None, True),
        ("kernel_files/sum.cuknl", None, False),  # a report may name any file
        ("../secrets.env", "sum.cu", False),
    ],
)
def test_what_is_compiled_with_a_source_may_have_any_name(
    tmp_path: Path, name: str, compiled: str | None, found: bool
) -> None:
    folder = tmp_path / "app"
    named = (folder / name).resolve()
    named.parent.mkdir(parents=True, exist_ok=True)
    named.write_text(TEXT, encoding="utf-8")
    request = Request(settings=Settings(), root=tmp_path)
    sources = find_sources([str(named)], None, None if compiled is None else folder / compiled, request)
    assert sources.local == ({str(named): TEXT} if found else {})


_CODE = """
    LDG.E R2, [R4.64] // 3
    FFMA R2, R2, R2, R2 // 3
    BAR.SYNC 0x0 // 4
    STG.E [R4.64], R2 // 5
    EXIT // 6
"""
_RIGHT = """// of the exercise
__global__ void kernel(float* a) {
    float b = a[threadIdx.x] * a[threadIdx.x] + 1;
    __syncthreads();
    a[threadIdx.x] = b;
}
"""
_OTHER_LINES = _RIGHT.replace("// of the exercise\n", "// of the exercise\n//\n//\n")
_OTHER_KERNEL = _RIGHT.replace("kernel(", "another(")
_NO_BARRIER = _RIGHT.replace("__syncthreads();", "float c;")
_ALIKE = _RIGHT.replace("a[threadIdx.x] * a[threadIdx.x] + 1", "__fmaf_rn(b, b, a[0])")


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        # several of that name: kernels first, then lines
        ({f"1/{FILE}": _OTHER_KERNEL, f"2/{FILE}": _RIGHT, f"3/{FILE}": _OTHER_LINES}, f"2/{FILE}"),
        ({f"1/{FILE}": _NO_BARRIER, f"2/{FILE}": _RIGHT}, f"2/{FILE}"),
        ({f"1/{FILE}": _RIGHT, f"2/{FILE}": _RIGHT}, f"1/{FILE}"),
        ({f"1/{FILE}": _ALIKE, f"2/{FILE}": _RIGHT}, f"2/{FILE}"),
        ({f"1/{FILE}": _RIGHT, f"2/{FILE}": _NO_BARRIER, "a.cu": f"{_RIGHT}// end\n"}, f"1/{FILE}"),
        # one of that name, which cannot be it, beside the right one of another
        ({FILE: _NO_BARRIER, "baseline.cu": _RIGHT}, "baseline.cu"),
        ({"baseline.cu": _RIGHT}, "baseline.cu"),
        # nothing tells: two texts as good as each other, or none that can be it
        ({f"1/{FILE}": _RIGHT, f"2/{FILE}": f"{_RIGHT}// end\n"}, None),
        ({f"1/{FILE}": _OTHER_KERNEL, f"2/{FILE}": _NO_BARRIER}, None),
    ],
)
def test_of_several_files_it_is_the_one_that_the_machine_code_can_be_of(
    tmp_path: Path, here: dict[str, str], expected: str | None
) -> None:
    for name, text in here.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    request = Request(settings=Settings(), root=tmp_path)
    chooser = SourceChooser([listing(_CODE).program])
    found = find_sources([FILE], None, None, request, chooser=chooser)
    (match,) = found.matches
    assert (match.local_path and str(Path(match.local_path).relative_to(tmp_path))) == expected
    assert {Path(name).name for name in here} <= set(found.wanted["names"])
