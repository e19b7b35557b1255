# SPDX-License-Identifier: Apache-2.0
"""The wheel, built and installed in a clean environment, does what the checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from tests.kernels import KERNELS, ROOT

from gpadvisor import __version__


def _run(
    *arguments: str | os.PathLike[str], cwd: Path, timeout: int = 240
) -> subprocess.CompletedProcess[str]:
    # No PYTHONPATH: the installed package, and not this checkout, must answer.
    environment = {
        key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "GPADVISOR_CACHE"}
    }
    return subprocess.run(
        [os.fspath(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
        env={**environment, "GPADVISOR_CACHE": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )


def _build_wheel(folder: Path) -> Path:
    done = _run(
        *(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            folder,
            ROOT,
        ),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def _install(wheel: Path, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--no-deps")
    done = _run(*pip, "--require-hashes", "-r", ROOT / "vscode-client" / "requirements.txt", cwd=folder)
    if done.returncode and not os.environ.get("CI") and "connection" in done.stderr.lower():
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stderr
    done = _run(*pip, "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "gpadvisor"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="the disassembler's wheel is for Linux")
def test_the_wheel_works_in_a_clean_environment(tmp_path: Path) -> None:
    wheel = _build_wheel(tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert "gpadvisor/py.typed" in names
    assert any(name.startswith("gpadvisor/machine/data/sm_") for name in names)
    assert "gpadvisor/report/advice.schema.json" in names
    assert not [
        name for name in names if not name.startswith(("gpadvisor/", f"gpadvisor-{__version__}.dist-info/"))
    ]

    command = _install(wheel, tmp_path / "venv")
    shown = _run(command, "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "advise" in shown.stdout
    listed = _run(command, "rules", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "GPA201" in listed.stdout

    example = _run(command, "demo", cwd=tmp_path)
    assert example.returncode == 0, example.stderr
    assert "matmul.cu:15  const float left = a[row * k + i];" in example.stdout

    source = KERNELS["thermal_stencil"].source()
    advice = _run(command, "advise", source, cwd=tmp_path)
    assert advice.returncode == 0, advice.stderr
    assert "GPA102" in advice.stdout
    assert "before.cu" in advice.stdout
    assert not list(tmp_path.glob("*.cubin"))
