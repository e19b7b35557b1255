# SPDX-License-Identifier: Apache-2.0
"""Programs that the kernel holds to some folders, seen from inside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpadvisor.errors import ToolNotFoundError
from gpadvisor.sandbox.held import Folders, can_hold, held_command
from gpadvisor.toolchain import held
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import CompileSettings

CAN = pytest.mark.skipif(not can_hold(), reason="this kernel has no Landlock")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", sys.prefix, sys.base_prefix)


def run(folders: Folders, *command: str) -> subprocess.CompletedProcess[str]:
    words = held_command(command, folders)
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@CAN
def test_a_program_and_what_it_starts_reads_and_writes_where_it_may(tmp_path: Path) -> None:
    inside, outside, scratch = (tmp_path / name for name in ("inside", "outside", "scratch"))
    for folder in (inside, outside, scratch):
        folder.mkdir()
        (folder / "text").write_text(folder.name, encoding="utf-8")
    (inside / "link").symlink_to(outside / "text")
    folders = Folders(readable=(*SYSTEM, str(inside), str(tmp_path / "absent")), writable=(str(scratch),))
    sentence = "cat {}/text && echo more >{}/new"
    allowed = run(folders, "/bin/sh", "-c", sentence.format(inside, scratch))
    assert (allowed.returncode, allowed.stdout) == (0, "inside"), allowed.stderr
    for forbidden in (
        f"cat {outside}/text",
        f"cat {inside}/link",
        f"cat {inside}/../outside/text",
        f"echo more >{inside}/new",
        f"echo more >{outside}/text",
        f"rm {inside}/text",
        f"sh -c 'cat {outside}/text'",
        "cat /etc/passwd",
    ):
        refused = run(folders, "/bin/sh", "-c", forbidden)
        assert refused.returncode != 0, forbidden
        assert refused.stdout == ""
        assert "denied" in refused.stderr
    assert sorted(path.name for path in inside.iterdir()) == ["link", "text"]
    assert (scratch / "new").read_text(encoding="utf-8") == "more\n"


@pytest.mark.toolkit
def test_a_kernel_that_cannot_hold_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float *x) { *x = 1; }\n", encoding="utf-8")
    settings = CompileSettings(within=(tmp_path,))
    monkeypatch.setattr(held, "can_hold", lambda: False)
    with pytest.raises(ToolNotFoundError, match=r"Landlock.*ask about the cubin"):
        compile_source(source, arch="sm_80", settings=settings)
