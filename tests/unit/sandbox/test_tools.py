# SPDX-License-Identifier: Apache-2.0
"""The process runner against programs that hang, flood, crash and leave children behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.clocks import leap
from tests.tools import program

from gpadvisor.errors import CancelledError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from gpadvisor.sandbox import tools as process
from gpadvisor.sandbox.application import run_application
from gpadvisor.sandbox.tools import run_tool


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie that nobody reaps does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    """Whether a process ends; killing takes the system a moment."""
    for _ in range(200):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_both_outputs_and_the_arguments_as_given(tmp_path: Path) -> None:
    path = program(tmp_path / "echo", "print(sys.argv[1:]); sys.stderr.write('note')")
    result = run_tool([path, "a b", "$(touch x)", ";", "*"], timeout_seconds=60, directory=tmp_path)
    assert result.stdout.decode().strip() == "['a b', '$(touch x)', ';', '*']"
    assert result.stderr == "note"
    assert result.status == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["echo"]


def test_what_could_steer_a_compiler_stays_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "LD_PRELOAD_X", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "x")
    path = program(tmp_path / "env", "print('\\n'.join(os.environ)); print(os.getcwd())")
    result = run_tool([path], timeout_seconds=60, directory=tmp_path, environment={"MORE": "1"})
    rows = result.stdout.decode().split("\n")
    assert {"PATH", "MORE", "LC_ALL"} <= set(rows)
    assert not any(row.startswith(("NVCC", "LD_PRELOAD", "PYTHONSTARTUP")) for row in rows)
    assert Path(rows[-2]) == tmp_path.resolve()


def test_input_is_empty(tmp_path: Path) -> None:
    path = program(tmp_path / "read", "print(len(sys.stdin.read()))")
    assert run_tool([path], timeout_seconds=60).stdout == b"0\n"


def test_a_hang_is_stopped_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
open("pid", "w").write(str(child.pid))
os.rename("pid", "pid.done")
time.sleep(600)
"""
    path = program(tmp_path / "hang", body)
    leap(monkeypatch, (tmp_path / "pid.done").exists, process)
    with pytest.raises(ToolTimeoutError, match="hang did not end within"):
        run_tool([path], timeout_seconds=1000, directory=tmp_path)
    assert gone(int((tmp_path / "pid.done").read_text()))


def test_a_child_left_behind_neither_blocks_nor_survives(tmp_path: Path) -> None:
    body = """
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(child.pid)
"""
    result = run_tool([program(tmp_path / "leave", body)], timeout_seconds=120)
    assert gone(int(result.stdout))


def test_a_tool_that_closes_its_output_and_goes_on_is_waited_for(tmp_path: Path) -> None:
    body = "sys.stdout.flush(); os.close(1); os.close(2); time.sleep(0.3); os._exit(7)"
    assert run_tool([program(tmp_path / "quiet", body)], timeout_seconds=60, check=False).status == 7
    with pytest.raises(ToolTimeoutError):
        run_tool([program(tmp_path / "mute", body.replace("0.3", "600"))], timeout_seconds=0.5)


def test_a_flood_is_stopped(tmp_path: Path) -> None:
    path = program(tmp_path / "flood", "while True: os.write(1, b'x' * 65536)")
    with pytest.raises(ToolFailedError, match="more than 1000000 bytes"):
        run_tool([path], timeout_seconds=120, output_bytes=1_000_000)


def test_a_flood_of_complaints_is_cut(tmp_path: Path) -> None:
    path = program(tmp_path / "complain", "for _ in range(1000): os.write(2, b'error: no\\n' * 500)")
    result = run_tool([path], timeout_seconds=120)
    assert len(result.stderr) == 1 << 16


def test_a_crash_names_the_signal(tmp_path: Path) -> None:
    path = program(tmp_path / "crash", "os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(ToolFailedError, match="crash was ended by signal SIGSEGV"):
        run_tool([path], timeout_seconds=60)


def test_a_failure_carries_the_first_error(tmp_path: Path) -> None:
    body = "sys.stderr.write('warning: old\\nfatal   : Unknown option\\nerror: more\\n'); sys.exit(3)"
    path = program(tmp_path / "fail", body)
    with pytest.raises(ToolFailedError, match=r"^fail ended with status 3: fatal   : Unknown option$"):
        run_tool([path], timeout_seconds=60)
    assert run_tool([path], timeout_seconds=60, check=False).status == 3


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are a Linux call")
def test_memory_is_bounded(tmp_path: Path) -> None:
    eat = "x = bytearray(1 << 28); print(len(x))"
    path = program(tmp_path / "eat", eat)
    assert run_tool([path], timeout_seconds=60).stdout == b"268435456\n"
    # The limit is set right after the start, so the program must not allocate before that.
    limited = "import resource\nwhile resource.getrlimit(resource.RLIMIT_AS)[0] < 0:\n    time.sleep(0.01)\n"
    path = program(tmp_path / "limited", limited + eat)
    with pytest.raises(ToolFailedError, match="MemoryError"):
        run_tool([path], timeout_seconds=60, memory_bytes=256 << 20)


def test_cancelling_stops_it(tmp_path: Path) -> None:
    asked = iter([False, False, True])
    with pytest.raises(CancelledError, match="cancelled"):
        run_tool(
            [program(tmp_path / "long", "time.sleep(600)")],
            timeout_seconds=120,
            cancelled=lambda: next(asked, True),
        )


@pytest.mark.parametrize("kind", ["missing", "folder", "plain"])
def test_what_cannot_be_started(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tool"
    if kind == "folder":
        path.mkdir()
    elif kind == "plain":
        path.write_text("text")
        path.chmod(0o644)
    with pytest.raises(ToolNotFoundError, match="cannot be started"):
        run_tool([path], timeout_seconds=60)


@pytest.mark.parametrize(
    ("word", "step"),
    [("x" * (4 << 20), "give it fewer or shorter arguments"), ("a\0b", "leave out the characters")],
)
def test_arguments_that_no_program_can_be_given(word: str, step: str) -> None:
    """The path is in order, so that it is not what to check."""
    with pytest.raises(ToolNotFoundError, match=step):
        run_tool([sys.executable, word], timeout_seconds=60)
    with pytest.raises(ToolNotFoundError, match=step):
        run_application([sys.executable, word])


def test_a_text_that_names_no_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("text")
    path.chmod(0o755)
    with pytest.raises(ToolNotFoundError, match="a program of this machine"):
        run_tool([path], timeout_seconds=60)
