# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile --host`` through a real sshd on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import stand_in_ncu as stand_in
from tests.ncu_writer import without_samples, write_report
from tests.sampled import sampled_launch
from tests.stand_in_ncu import stand_in_ncu
from tests.tools import program

from gpadvisor import __version__
from gpadvisor.model.profile import Evidence
from gpadvisor.store.load import load_profile

_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.nvdisasm,
    pytest.mark.skipif(
        _SSHD is None or shutil.which("ssh") is None,
        reason="needs OpenSSH's server and client (package openssh-server)",
    ),
]
_GPADVISOR = [sys.executable, "-m", "gpadvisor"]


@dataclass
class Host:
    """One sshd; ``bin`` is first on its PATH."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def options(self) -> list[str]:
        common = {
            "Port": self.port,
            "IdentityFile": self.folder / "key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "no",
            "LogLevel": "ERROR",
        }
        return [part for name, value in common.items() for part in ("--ssh-option", f"{name}={value}")]


def _start(folder: Path) -> Host:
    """One that listens; the port that was free may be another's by then."""
    folder.mkdir()
    for name in ("bin", "home"):
        (folder / name).mkdir()
    for name in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "authorized_keys").write_bytes((folder / "key.pub").read_bytes())
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd confines its unprivileged half
    for _ in range(20):
        started = _listening(folder)
        if started is not None:
            return started
    raise AssertionError((folder / "log").read_text())


def _listening(folder: Path) -> Host | None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nAllowTcpForwarding yes\nPermitRootLogin prohibit-password\n"
        f"SetEnv PATH={folder}/bin:/usr/bin:/bin HOME={folder}/home TMPDIR={folder}/home "
        f"BASH_ENV={folder}/rc\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_SSHD or "sshd", "-D", "-e", "-f", folder / "sshd_config"], stderr=log, start_new_session=True
        )
    while process.poll() is None:
        if f"listening on 127.0.0.1 port {port}" in (folder / "log").read_text():
            return Host(port, folder, process)
        time.sleep(0.02)
    return None


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    started = _start(tmp_path / "gpu-box")
    yield started
    started.process.terminate()
    started.process.wait()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "measured.ncu-rep"
    path.write_bytes(write_report([sampled_launch("thermal_stencil", scale=10)]))
    return path


def _command(host: Host) -> list[str]:
    """The account's own home stays as it is: the application's folder is named."""
    remote = ["--host", "127.0.0.1", "--remote-dir", str(host.home)]
    return [*_GPADVISOR, "profile", *remote, *host.options()]


def _profile(
    host: Host, here: Path, *arguments: str, application: tuple[str, ...] = ("./app", "a b", "$HOME")
) -> subprocess.CompletedProcess[str]:
    here.mkdir(exist_ok=True)
    return subprocess.run(
        [*_command(host), *arguments, "--", *application],
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def _application(host: Host, body: str = "print('there:', sys.argv[1:], os.getcwd())") -> None:
    program(host.home / "app", body)


def _leftovers(host: Host) -> list[str]:
    return [path.name for path in host.home.iterdir() if path.name.startswith("gpadvisor-")]


def test_a_host_without_gpadvisor_runs_its_own_ncu(host: Host, tmp_path: Path, report: Path) -> None:
    stand_in_ncu(host.bin / "ncu", report=report)
    _application(host)
    done = _profile(host, tmp_path / "here")
    assert done.returncode == 0, done.stderr
    assert "nothing is installed there" in done.stderr
    assert f"there: ['a b', '$HOME'] {host.home}" in done.stdout
    assert "GPA" in done.stdout
    profile = load_profile(tmp_path / "here/profile.gpadvisor")
    assert profile.kernels[0].evidence is Evidence.MEASURED
    assert _leftovers(host) == []


def test_a_host_with_gpadvisor_collects_itself(host: Host, tmp_path: Path, report: Path) -> None:
    stand_in_ncu(host.bin / "ncu", report=report)
    launcher = host.bin / "gpadvisor"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpadvisor "$@"\n')
    launcher.chmod(0o755)
    (host.home / "work").mkdir()
    _application(host)
    (host.home / "app").rename(host.home / "work/app")
    done = _profile(
        host, tmp_path / "here", "--remote-dir", str(host.home / "work"), "--kernel", "stencil", "--no-advice"
    )
    assert done.returncode == 0, done.stderr
    assert f"gpadvisor {__version__} on 127.0.0.1" in done.stderr
    assert load_profile(tmp_path / "here/profile.gpadvisor").kernels
    assert _leftovers(host) == []


def test_a_refusal_there_takes_the_next_step_there(host: Host, tmp_path: Path) -> None:
    counted = tmp_path / "counted.ncu-rep"
    counted.write_bytes(write_report([without_samples(sampled_launch("thermal_stencil"))]))
    stand_in_ncu(host.bin / "ncu", report=counted, refuses_counters=stand_in.PERMISSION)
    _application(host)
    done = _profile(host, tmp_path / "here", "--no-advice")
    assert done.returncode == 0, done.stderr
    assert "Going on with" in done.stderr
    assert load_profile(tmp_path / "here/profile.gpadvisor").kernels[0].evidence is Evidence.COUNTED


def test_a_host_without_any_collector_is_told_what_to_install(host: Host, tmp_path: Path) -> None:
    done = _profile(host, tmp_path / "here")
    assert done.returncode == 4
    assert "install one of them there" in done.stderr
    assert _leftovers(host) == []


def test_a_jump_host(host: Host, tmp_path: Path, report: Path) -> None:
    stand_in_ncu(host.bin / "ncu", report=report)
    _application(host)
    gate = _start(tmp_path / "gate")
    try:
        config = tmp_path / "jump_config"
        config.write_text(
            f"Host gate\n HostName 127.0.0.1\n Port {gate.port}\n IdentityFile {gate.folder}/key\n"
            f" StrictHostKeyChecking no\n UserKnownHostsFile {gate.folder}/known_hosts\n LogLevel ERROR\n"
        )
        jump = f"ProxyCommand=ssh -F {config} -W %h:%p gate"
        done = _profile(host, tmp_path / "here", "--ssh-option", jump, "--no-advice")
        assert done.returncode == 0, done.stderr
        assert "Accepted publickey" in (gate.folder / "log").read_text()
    finally:
        gate.process.terminate()
        gate.process.wait()


def test_a_host_that_refuses_is_named_with_what_to_try(host: Host, tmp_path: Path) -> None:
    (host.folder / "authorized_keys").write_text("")
    done = _profile(host, tmp_path / "here")
    assert done.returncode == 4
    assert "no connection to 127.0.0.1" in done.stderr
    assert "try: ssh 127.0.0.1 true" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_connection_lost_in_the_middle_says_where_the_data_is(
    host: Host, tmp_path: Path, report: Path
) -> None:
    stand_in_ncu(host.bin / "ncu", report=report)
    # The application ends its own connection: sshd's process for this session is an ancestor of it.
    _application(
        host,
        "while not os.path.exists('closed'):\n    time.sleep(0.05)\n"
        "pid = os.getpid()\n"
        "while True:\n"
        "    fields = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()\n"
        "    pid = int(fields[1])\n"
        "    if open(f'/proc/{pid}/comm').read().startswith('sshd'):\n"
        "        break\n"
        "os.kill(pid, signal.SIGKILL)\ntime.sleep(1)",
    )
    here = tmp_path / "here"
    here.mkdir()
    running = subprocess.Popen(
        [*_command(host), "--", "./app"],
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(host.home.glob("gpadvisor-*/ncu.log")):
        assert running.poll() is None
        time.sleep(0.05)
    host.process.terminate()  # ncu runs there: the door is closed, and the open session lives on
    host.process.wait()
    (host.home / "closed").touch()
    _, said = running.communicate()
    assert running.returncode == 4
    folder = next(host.home.glob("gpadvisor-*"))
    assert f"127.0.0.1:{folder}" in said
    assert "nothing there was removed" in said
    assert not (here / "profile.gpadvisor").exists()


def test_what_a_start_up_file_prints_is_no_answer(host: Host, tmp_path: Path, report: Path) -> None:
    stand_in_ncu(host.bin / "ncu", report=report)
    _application(host)
    for start_up in (host.folder / "rc", host.home / ".bashrc"):  # which one depends on how bash was built
        start_up.write_text("echo Welcome to gpu-box\n")
    done = _profile(host, tmp_path / "here", "--no-advice")
    assert done.returncode == 0, done.stderr
    assert load_profile(tmp_path / "here/profile.gpadvisor").kernels
    assert _leftovers(host) == []


def test_a_transfer_that_breaks_costs_no_measurement(host: Host, tmp_path: Path, report: Path) -> None:
    """The host answers again afterwards."""
    stand_in_ncu(host.bin / "ncu", report=report)
    _application(host)
    (host.bin / "cat").write_text("#!/bin/sh\nhead -c 100\nexit 1\n")
    (host.bin / "cat").chmod(0o755)
    done = _profile(host, tmp_path / "here", "--no-advice")
    assert done.returncode == 4
    (left,) = host.home.glob("gpadvisor-*")
    assert f"127.0.0.1:{left}" in done.stderr
    assert (left / "report.ncu-rep").read_bytes() == report.read_bytes()


@pytest.mark.parametrize("name", ["-oProxyCommand=touch pwned", "a b", ""])
def test_a_host_that_is_an_option_is_refused(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [*_GPADVISOR, "profile", f"--host={name}", "--", "./app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "is no host" in done.stderr
    assert list(tmp_path.iterdir()) == []
