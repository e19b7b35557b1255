# SPDX-License-Identifier: Apache-2.0
"""Names, special files, other users' files and killed parents: the command line as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command_line import gpadvisor
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.sandbox.processes import descendants
from gpadvisor.store.load import load_bytes
from gpadvisor.store.parts import put_together, take_apart

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="special files, owners and signals of Linux")
GPADVISOR = [sys.executable, "-m", "gpadvisor"]
ODD = "x\x1b[31m\r\ngpadvisor: error: forged\u202e"
SPEC = LaunchSpec(kernel="k", cubin=tiny_cubin({"k": []}, listed=True), samples={("k", 16, "wait"): (5, 4)})


@pytest.mark.parametrize(
    "words",
    [
        ("advise", ODD),
        ("blame", ODD),
        ("compare", ODD, ODD),
        ("import", ODD),
        ("export", ODD),
        ("simulate", ODD),
        ("roofline", ODD),
        ("potential", ODD),
        ("why", ODD, "1"),
        ("explain", ODD),
        ("doctor", ODD),
        ("advise", "a.cu", "--arch", ODD),
        ("advise", "a.cu", f"--{ODD}"),
        ("profile", "--host", ODD, "--", "x"),
        ("profile", "--kernel", f"({ODD}", "--collector", "cupti", "--", "x"),
        ("profile", "-o", f"{ODD}/y", "--", "x"),
        ("profile", "--", ODD),
        (ODD,),
    ],
)
def test_names_write_no_lines_of_their_own(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "a.cu").write_text("", encoding="utf-8")
    done = gpadvisor(*words, cwd=tmp_path)
    assert done.code != 0
    assert _is_clean(done.complained + done.said)


def _is_clean(said: str) -> bool:
    odd = {character for character in said if ord(character) < 32 and character != "\n"}
    return not odd and "\u202e" not in said and not re.search("^gpadvisor: error: forged", said, re.MULTILINE)


def test_a_file_of_such_a_name_is_read_and_answered_about(tmp_path: Path) -> None:
    (tmp_path / f"{ODD}.ncu-rep").write_bytes(write_report([SPEC]))
    for words in (
        ("import", f"{ODD}.ncu-rep"),
        ("export", f"{ODD}.gpadvisor", f"{ODD}-out"),
        ("advise", f"{ODD}.ncu-rep"),
        ("advise", f"{ODD}.ncu-rep", "--format", "markdown"),
        ("compare", f"{ODD}.ncu-rep", f"{ODD}.gpadvisor"),
    ):
        done = gpadvisor(*words, cwd=tmp_path)
        assert done.code == 0, done.complained
        assert _is_clean(done.complained + done.said), words
    doctor = gpadvisor("doctor", f"{ODD}.ncu-rep", cwd=tmp_path)
    assert "error: forged" in doctor.said
    assert _is_clean(doctor.complained + doctor.said)


@pytest.mark.parametrize("command", [("advise",), ("import",), ("compare", "run.ncu-rep")])
def test_what_is_read_is_not_written_over(tmp_path: Path, command: tuple[str, ...]) -> None:
    """A measurement would be gone, by a link too."""
    (tmp_path / "run.ncu-rep").write_bytes(write_report([SPEC]))
    (tmp_path / "link").symlink_to("run.ncu-rep")
    done = gpadvisor(*command, "run.ncu-rep", "-o", "link", cwd=tmp_path)
    assert done.code == 2
    assert "link is what is read" in done.complained
    assert (tmp_path / "run.ncu-rep").read_bytes() == write_report([SPEC])


@pytest.mark.parametrize("name", ["zero", "pipe", "device"])
def test_special_files_are_refused_wherever_they_are_named(tmp_path: Path, name: str) -> None:
    """As an input, a machine table, a settings file and a source that a report names."""
    target = {"zero": "/dev/zero", "device": "/dev/tty"}.get(name)
    for place in ("input.ncu-rep", "machine.toml", "a.cu"):
        if target is None:
            os.mkfifo(tmp_path / place)
        else:
            (tmp_path / place).symlink_to(target)
    for words in (
        ("advise", "input.ncu-rep"),
        ("compare", "input.ncu-rep", "input.ncu-rep"),
        ("blame", "a.cu"),
    ):
        done = gpadvisor(*words, cwd=tmp_path)
        assert done.code == 3, done.complained
    (tmp_path / "run.ncu-rep").write_bytes(
        write_report([replace(SPEC, sources={str(tmp_path / "a.cu"): "__global__ void k() {}"})])
    )
    assert gpadvisor("advise", "run.ncu-rep", cwd=tmp_path).code == 0
    (tmp_path / "gpadvisor.toml").write_text('machine = "machine.toml"\n', encoding="utf-8")
    done = gpadvisor("advise", "run.ncu-rep", cwd=tmp_path)
    assert done.code == 3
    assert "cannot read the machine table" in done.complained
    (tmp_path / "gpadvisor.toml").unlink()
    (tmp_path / "gpadvisor.toml").symlink_to(tmp_path / "a.cu")
    assert gpadvisor("advise", "run.ncu-rep", cwd=tmp_path).code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as root may")
def test_settings_of_another_user_and_beyond_the_repository_are_not_taken(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    (inner / "run.ncu-rep").write_bytes(write_report([SPEC]))
    (tmp_path / "gpadvisor.toml").write_text("wrong = 1\n", encoding="utf-8")
    assert gpadvisor("advise", "run.ncu-rep", cwd=inner).code == 2
    os.chown(tmp_path / "gpadvisor.toml", 65534, 65534)
    assert gpadvisor("advise", "run.ncu-rep", cwd=inner).code == 0
    os.chown(tmp_path / "gpadvisor.toml", 0, 0)
    tmp_path.chmod(0o1777)
    try:
        assert gpadvisor("advise", "run.ncu-rep", cwd=inner).code == 0
    finally:
        tmp_path.chmod(0o700)
    (tmp_path / "project" / ".git").mkdir()
    assert gpadvisor("advise", "run.ncu-rep", cwd=inner).code == 0


def _entries(cache: Path) -> list[Path]:
    return [path for path in cache.glob("v1/*/*") if path.is_file()]


def test_answers_that_others_could_write_are_not_taken(tmp_path: Path) -> None:
    """A rewritten one would let ``--fail-on`` pass."""
    import hashlib

    (tmp_path / "run.ncu-rep").write_bytes(write_report([SPEC]))
    first = gpadvisor("advise", "run.ncu-rep", cwd=tmp_path)
    assert _entries(tmp_path / "cache")
    for path in _entries(tmp_path / "cache"):
        body = path.read_bytes()[32:]
        if b'"fired"' in body:
            forged = json.dumps({**json.loads(body), "text": "forged\n", "fired": []}).encode()
            path.write_bytes(hashlib.sha256(forged).digest() + forged)
    assert gpadvisor("advise", "run.ncu-rep", cwd=tmp_path).said == "forged\n", "of this user it is taken"
    (tmp_path / "cache").chmod(0o777)
    assert gpadvisor("advise", "run.ncu-rep", cwd=tmp_path).said == first.said


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"wanted": 3}', b'"x"', b"\xff", b"[" * 100_000])
def test_a_cache_entry_of_another_shape_is_a_miss(tmp_path: Path, body: bytes) -> None:
    import hashlib

    (tmp_path / "run.ncu-rep").write_bytes(write_report([SPEC]))
    first = gpadvisor("advise", "run.ncu-rep", cwd=tmp_path)
    for path in _entries(tmp_path / "cache"):
        path.write_bytes(hashlib.sha256(body).digest() + body)
    again = gpadvisor("advise", "run.ncu-rep", cwd=tmp_path)
    assert (again.code, again.said) == (0, first.said)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user id, as root may")
def test_neither_home_nor_an_entry_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(write_report([SPEC]))
    script = (
        "import os, sys; os.environ.pop('HOME', None); os.environ.pop('GPADVISOR_CACHE', None);"
        "import gpadvisor.cli, gpadvisor.files as files;"
        "files.Path.home = classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError('no home')));"
        "sys.exit(gpadvisor.cli.main(['advise', 'run.ncu-rep']))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_ends_with_its_killed_parent(tmp_path: Path) -> None:
    """Stopped, so that it cannot end by itself."""
    with (tmp_path / "large.ncu-rep").open("wb") as stream:
        stream.write(b"NVR\0\x02\0\0\0\x08\x07")
        stream.truncate(1 << 30)
    with subprocess.Popen(
        [*GPADVISOR, "advise", "large.ncu-rep"], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as parent:
        while not (children := descendants(parent.pid)):
            assert parent.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)  # it sets itself up first
        os.kill(children[0], signal.SIGSTOP)
        parent.kill()
    end = time.monotonic() + 20
    while _lives(children[0]):
        if time.monotonic() > end:
            os.kill(children[0], signal.SIGKILL)
            raise AssertionError("the reader outlives its parent")
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def test_sums_that_would_overflow_are_refused() -> None:
    parts = take_apart(load_bytes(write_report([SPEC])))
    parts.tables["samples"]["total"] = parts.tables["samples"]["total"] * 0 + (1 << 63)
    with pytest.raises(ProfileFormatError, match="add up to more"):
        put_together(parts)


def test_large_files_have_more_time(tmp_path: Path) -> None:
    from gpadvisor.pipeline.opening import READ_SECONDS, read_seconds

    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(2_100_000_000)
    assert read_seconds(tmp_path / "large") > 3 * READ_SECONDS
    assert read_seconds(tmp_path / "none") == READ_SECONDS
