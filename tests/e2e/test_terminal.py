# SPDX-License-Identifier: Apache-2.0
"""The first minute in a terminal: a real one, with its size, a pager, and a shell that completes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from docs.generate_demo import source

from gpadvisor import __version__
from gpadvisor.cli import COMMANDS, build_parser, demo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
GPADVISOR = [sys.executable, "-m", "gpadvisor"]
NAMES = sorted(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr,arg-type] # it has commands


def at_a_terminal(
    *words: str,
    folder: Path,
    lines: int = 24,
    columns: int = 80,
    command: list[str] = GPADVISOR,
    written_over: bool = False,
    **environment: str,
) -> tuple[int, str]:
    """Exit code and what a terminal of that size shows, on request with what was written over."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "PAGER"}}
    process = subprocess.Popen(
        [*command, *words],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**known, "TERM": "xterm", "GPADVISOR_CACHE": str(folder / "cache"), **environment},
    )
    os.close(slave)
    seen, end = b"", time.monotonic() + 200
    try:
        while time.monotonic() < end:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        code = process.wait(10)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", seen.decode()).replace("\r\n", "\n")
    if written_over:
        return code, plain
    return code, "\n".join(
        _last([part for part in line.split("\r") if part.strip()]) for line in plain.split("\n")
    )


def _last(parts: list[str]) -> str:
    """What stays of a line that was written over."""
    return parts[-1] if parts else ""


@pytest.mark.parametrize(("lines", "columns"), [(24, 80), (40, 120)])
def test_the_demo_is_a_screen_with_the_verdict_on_its_third_line(
    tmp_path: Path, lines: int, columns: int
) -> None:
    """Nothing is needed for it: no disassembler, no compiler."""
    code, screen = at_a_terminal(
        *("demo",), folder=tmp_path, lines=lines, columns=columns, GPADVISOR_NVDISASM=str(tmp_path / "none")
    )
    shown = screen.splitlines()
    assert code == 0, screen
    assert len(shown) < lines
    assert max(map(len, shown)) <= columns
    assert shown[2].startswith("matmul is limited by")
    assert "GPA106" in screen
    assert "matmul.cu:15  const float left = a[row * k + i];" in screen
    assert shown[-1].startswith("Your own: gpadvisor profile -- ./app")
    (step,) = re.findall(r"gpadvisor (why demo 1)", screen)
    code, screen = at_a_terminal(*step.split(), folder=tmp_path, PAGER="cat")
    assert code == 0
    assert "How the numbers came about" in screen
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_file_of_that_name_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("something", encoding="utf-8")
    code, screen = at_a_terminal("advise", "demo", folder=tmp_path)
    assert code == 3
    assert "demo" in screen


def test_the_demo_is_of_the_kernel_that_comes_along() -> None:
    assert (Path(demo.__file__).parent / "data" / "matmul.cu").read_text(encoding="utf-8") == source()


def test_without_a_word_it_is_a_screen(tmp_path: Path) -> None:
    code, screen = at_a_terminal(folder=tmp_path)
    assert code == 2
    assert len(screen.splitlines()) < 12
    assert screen.splitlines()[2].startswith("Next: gpadvisor")
    assert "gpadvisor demo" in screen


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version(tmp_path: Path, flag: str) -> None:
    assert at_a_terminal(flag, folder=tmp_path) == (0, f"gpadvisor {__version__}\n")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_the_terminal(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    parser = build_parser()
    with pytest.raises(SystemExit):
        parser.parse_args([name, "--help"] if name else ["--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    assert text.startswith("usage: gpadvisor")
    usage, _, rest = text.partition("\n\n")
    assert len(usage.splitlines()) <= 6
    if name not in {"", "doctor", "lsp", "rules"}:
        assert f"  gpadvisor {name} " in rest or name == "demo", "an example"


def test_the_list_of_commands_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = build_parser().format_help()
    assert len(text.splitlines()) <= 24
    assert all(option in text for option in ("-V", "--no-pager"))


def test_every_command_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(NAMES) == len(COMMANDS)


_SLOW = """
import time
from gpadvisor.cli.progress import TerminalProgress
progress = TerminalProgress()
progress("quick")
progress("slow")
time.sleep(5.5)
progress.clear()
time.sleep(1.5)
print("done")
"""


def test_a_stage_that_takes_long_is_counted(tmp_path: Path) -> None:
    """And nothing of it stays."""
    script = tmp_path / "slow.py"
    script.write_text(_SLOW, encoding="utf-8")
    code, screen = at_a_terminal(folder=tmp_path, command=[sys.executable, str(script)], written_over=True)
    assert code == 0
    assert "quick" not in screen
    assert re.search(r"\rgpadvisor: slow \.\.\. [345] s\r", screen)
    assert screen.endswith("\rdone\n")


def test_where_nobody_looks_a_long_stage_has_one_line(tmp_path: Path) -> None:
    early = "import gpadvisor.cli.progress\ngpadvisor.cli.progress.PLAIN_SECONDS = 2.0\n"
    done = subprocess.run(
        [sys.executable, "-c", early + _SLOW], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"gpadvisor: slow, \d s so far\n", done.stderr)
    assert done.stdout == "done\n"


class TestPager:
    """As git has it: on a terminal only, for what is longer than it, PAGER or less."""

    def pager(self, folder: Path) -> str:
        """A pager that notes what it gets and what it is told."""
        script = folder / "a pager"
        script.write_text('#!/bin/sh\necho "$LESS|$LV|$1" > told\ncat > got\necho paged\n', encoding="utf-8")
        script.chmod(0o755)
        return f"'{script}' option"

    def test_long_text_goes_through_it(self, tmp_path: Path) -> None:
        code, screen = at_a_terminal("explain", "GPA106", folder=tmp_path, PAGER=self.pager(tmp_path))
        assert (code, screen) == (0, "paged\n")
        plain = subprocess.run(
            [*GPADVISOR, "explain", "GPA106"], capture_output=True, text=True, check=True
        ).stdout
        got = (tmp_path / "got").read_text(encoding="utf-8")
        assert got.split() == plain.split()
        code_lines = re.findall(r"```.*?```", plain, flags=re.DOTALL)
        assert re.findall(r"```.*?```", got, flags=re.DOTALL) == code_lines
        assert max(len(line) for line in re.sub(r"```.*?```", "", got, flags=re.DOTALL).splitlines()) <= 80
        assert (tmp_path / "told").read_text(encoding="utf-8") == "FRX|-c|option\n"

    def test_what_the_user_has_told_less_stays(self, tmp_path: Path) -> None:
        at_a_terminal("explain", "GPA106", folder=tmp_path, PAGER=self.pager(tmp_path), LESS="S", LV="x")
        assert (tmp_path / "told").read_text(encoding="utf-8") == "S|x|option\n"

    @pytest.mark.parametrize(
        "words",
        [("--no-pager", "explain", "GPA106"), ("explain", "GPA106", "--no-pager"), ("demo",), ("--version",)],
    )
    def test_not_where_it_is_not_wanted_or_needed(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        code, screen = at_a_terminal(*words, folder=tmp_path, PAGER=self.pager(tmp_path))
        assert code == 0
        assert len(screen.splitlines()) > (0 if words == ("--version",) else 10)
        assert not (tmp_path / "got").exists()

    @pytest.mark.parametrize("pager", ["", "cat", "/absent/pager", "'"])
    def test_without_one_the_text_is_printed(self, tmp_path: Path, pager: str) -> None:
        code, screen = at_a_terminal("explain", "GPA106", folder=tmp_path, PAGER=pager)
        assert code == 0
        assert "GPA106" in screen
        assert len(screen.splitlines()) > 24

    def test_not_in_a_pipe(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [*GPADVISOR, "explain", "GPA106"],
            cwd=tmp_path,
            env={**os.environ, "PAGER": self.pager(tmp_path)},
            capture_output=True,
            check=True,
        )
        assert b"GPA106" in done.stdout
        assert not (tmp_path / "got").exists()

    def test_one_that_reads_nothing_is_no_error(self, tmp_path: Path) -> None:
        assert at_a_terminal("explain", "GPA106", folder=tmp_path, PAGER="true") == (0, "")

    @pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
    def test_less_leaves_at_once_what_fits(self, tmp_path: Path) -> None:
        code, screen = at_a_terminal("explain", "GPA106", folder=tmp_path, lines=400, PAGER="less")
        assert code == 0
        assert "GPA106" in screen


class TestCompletion:
    """What a shell makes of the script."""

    @pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
    @pytest.mark.parametrize(
        ("typed", "completed"),
        [
            ("adv", ["advise"]),
            ("com", ["compare", "completion"]),
            ("advise --for", ["--format"]),
            ("advise --format ", ["text", "json", "sarif", "codequality", "markdown", "html"]),
            ("completion z", ["zsh"]),
            ("advise ru", ["run.ncu-rep"]),
        ],
    )
    def test_bash_completes(self, tmp_path: Path, typed: str, completed: list[str]) -> None:
        (tmp_path / "run.ncu-rep").write_bytes(b"")
        script = subprocess.run(
            [*GPADVISOR, "completion", "bash"], capture_output=True, text=True, check=True
        )
        (tmp_path / "script").write_text(script.stdout, encoding="utf-8")
        words = ["gpadvisor", *typed.split(" ")]
        asked = (
            f"source ./script; COMP_WORDS=({' '.join(words)} {'' if words[-1] else chr(39) * 2});"
            f" COMP_CWORD={len(words) - 1}; $(complete -p gpadvisor | sed 's/.*-F \\([^ ]*\\) .*/\\1/');"
            ' printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert [line for line in done.stdout.splitlines() if line] == completed, done.stderr

    @pytest.mark.parametrize("shell", ["zsh", "tcsh"])
    def test_other_shells_get_a_script(self, shell: str, capsys: pytest.CaptureFixture[str]) -> None:
        options = build_parser().parse_args(["completion", shell])
        assert options.run(options) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in NAMES)
