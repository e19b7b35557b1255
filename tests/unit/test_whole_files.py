# SPDX-License-Identifier: Apache-2.0
"""Output files are written whole, and what is no plain file is never replaced by one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpadvisor.files import write_atomically


def test_a_file_is_replaced_and_a_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in (b"one", b"two"):
        write_atomically(link, text)
        assert target.read_bytes() == text
    assert link.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "target"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_atomically(pipe, b"text")
        assert read.result(10) == b"text"
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "absent/advice.txt"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"is a folder|its folder does not exist; create it") as error:
        write_atomically(tmp_path / name, b"text")
    assert error.value.filename == str(tmp_path / name)
    assert not list(tmp_path.iterdir())
