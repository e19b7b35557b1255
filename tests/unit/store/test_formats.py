# SPDX-License-Identifier: Apache-2.0
"""Files that are no profile: one sentence that names the kind and the next step."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.load import load_bytes, load_profile


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "hello")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "kind", "step"),
    [
        (b"", "empty", "ncu -o report"),
        (b"NVR", "cut short", "copy or collect"),
        (b"\x7fELF" + bytes(60), "ELF file of the host", "cuobjdump -xelf all"),
        (b"\x7fELF" + bytes(14) + b"\xbe" + bytes(45), "is a cubin", "gpadvisor advise"),
        (b"SQLite format 3\x00" + bytes(100), "SQLite", "Nsight Compute report"),
        (gzip.compress(b"x", mtime=0), "gzip", "gunzip"),
        (_zip(), "so it is no snapshot", ".gpadvisor file"),
        (b"a,b,c\n1,2,3\n", "text", "Nsight Compute report"),
        (bytes(range(256)), "no known profile format", "Nsight Compute report"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull"),
        (b"\x50\xed\x55\xba" + bytes(40), "fat binary", "-arch=sm_90"),
        (b"//\n// by NVVM\n\n.version 9.0\n.target sm_90\n.address_size 64\n", "is PTX", "ptxas -arch="),
    ],
)
def test_foreign_files(data: bytes, kind: str, step: str) -> None:
    with pytest.raises(ProfileFormatError, match=kind) as caught:
        load_bytes(data)
    assert step in str(caught.value)
    assert "\n" not in str(caught.value)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match="does not exist"):
        load_profile(tmp_path / "absent.ncu-rep")
    with pytest.raises(ProfileFormatError, match="is a directory"):
        load_profile(tmp_path)
    empty = tmp_path / "empty.ncu-rep"
    empty.touch()
    with pytest.raises(ProfileFormatError, match=r"empty\.ncu-rep: the file is empty"):
        load_profile(empty)
