# SPDX-License-Identifier: Apache-2.0
"""Files that others may have made, and folders that go with their process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from gpadvisor import files
from gpadvisor.files import is_ours, open_file, read_file, scratch_folder, write_atomically

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and owners are POSIX's")
_HOLDER = """
import sys, time
from gpadvisor.files import scratch_folder
with scratch_folder() as folder:
    (folder / "part").write_bytes(b"x")
    print(folder, flush=True)
    time.sleep(1000)
"""


def test_a_path_that_none_can_be_is_an_error_like_others() -> None:
    with pytest.raises(OSError, match="no path can have"):
        open_file("a\0b")


def test_a_small_file_takes_no_more_memory_than_it_has(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert read_file(tmp_path / "file", max_bytes=1 << 32) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_of_no_stated_size_is_read_to_its_end() -> None:
    size = Path("/proc/self/status").stat().st_size
    assert size == 0
    data = read_file("/proc/self/status", max_bytes=1 << 20)
    assert data.startswith(b"Name:")
    with pytest.raises(OSError, match="larger than the 4 bytes"):
        read_file("/proc/self/status", max_bytes=4)


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_file(tmp_path / "link", max_bytes=5) == b"12345"
    with pytest.raises(OSError, match="larger than the 4 bytes"):
        read_file(tmp_path / "file", max_bytes=4)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("pipe", "zero", "socket", "."):
            with pytest.raises(OSError, match="no regular file"):
                open_file(tmp_path / name)


def test_what_others_may_write_is_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    (folder / "file").write_bytes(b"")
    assert is_ours(folder)
    assert is_ours(folder / "file")
    (folder / "file").chmod(0o666)
    assert not is_ours(folder / "file")
    (folder / "file").chmod(0o644)
    folder.chmod(0o777)
    assert not is_ours(folder / "file"), "another one may be put in its place"
    folder.chmod(0o1777)
    assert is_ours(folder / "file"), "as in /tmp"
    assert not is_ours(folder / "none")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives a file away, as root may")
def test_what_another_user_owns_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.chown(tmp_path / "file", 65534, 65534)
    assert not is_ours(tmp_path / "file")


def test_folders_of_killed_processes_go_and_those_of_living_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(files, "_swept", set())
    (tmp_path / "gpadvisor-of-the-user").mkdir()
    holders = [
        subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        killed, living = (Path(one.stdout.readline().strip()) for one in holders if one.stdout is not None)
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait()
        assert (killed / "part").exists()
        with scratch_folder() as own:
            assert own.is_dir()
            assert not killed.exists()
            assert (living / "part").exists()
        assert not own.exists()
        assert {path.name for path in tmp_path.iterdir()} == {"gpadvisor-of-the-user", living.name}
    finally:
        for one in holders:
            one.kill()
            one.communicate()


def test_links_in_a_circle_are_an_error_like_others(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_atomically(tmp_path / "loop", b"x")
    assert caught.value.filename == str(tmp_path / "loop")


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("x" * 255), b"1")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"1"
