# SPDX-License-Identifier: Apache-2.0
"""Simulates the profile that `gpadvisor demo` shows: ``python -m docs.generate_demo``.

A profile names the path that it was compiled at: here ``/demo``, which has to be made for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "gemm_strided"
NAME = "matmul"
DATA = ROOT / "server" / "gpadvisor" / "cli" / "data"
_FOLDER = Path("/demo")
_PLANTED = re.compile(r" *// planted: .*")


def source() -> str:
    """One of our kernels, under a name that says what it is."""
    text = (ROOT / "fixtures" / "kernels" / KERNEL / "before.cu").read_text(encoding="utf-8")
    return _PLANTED.sub("", text).replace(KERNEL, NAME)


def main() -> None:
    """Write the profile and its source."""
    launch = tomllib.loads((ROOT / "fixtures" / "gpadvisor.toml").read_text(encoding="utf-8"))["launches"][
        KERNEL
    ]
    _FOLDER.mkdir()
    try:
        for place in (_FOLDER, DATA):
            (place / f"{NAME}.cu").write_text(source(), encoding="utf-8")
        words = ["--grid", _listed(launch["grid"]), "--block", _listed(launch["block"])]
        words += ["--arguments", ",".join(_argument(one) for one in launch["arguments"])]
        words += [word for line, trips in launch["loops"].items() for word in ("--loop", f"{line}={trips}")]
        subprocess.run(
            [
                sys.executable,
                "-m",
                "gpadvisor",
                "simulate",
                f"{NAME}.cu",
                "--arch",
                "sm_80",
                *words,
                "-o",
                DATA / "demo",
            ],
            cwd=_FOLDER,
            env={**os.environ, "GPADVISOR_CACHE": ""},
            check=True,
        )
    finally:
        shutil.rmtree(_FOLDER)


def _listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _argument(one: str | dict[str, float]) -> str:
    return one if isinstance(one, str) else ",".join(f"{kind}={value}" for kind, value in one.items())


if __name__ == "__main__":
    main()
