# SPDX-License-Identifier: Apache-2.0
"""Writes the workspace that the end-to-end tests open: sources, a report of two of them, converted advice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.kernels import COMPILED_AS, KERNELS, compile_text
from tests.ncu_writer import DeviceSpec, LaunchSpec, write_report
from tests.sampled import sampled

HERE = Path(__file__).resolve().parent
SETTINGS = """\
# SPDX-License-Identifier: Apache-2.0
arch = "sm_80"
"""
GATHER = {"_Z6gatherILi1EEvPKfPKiPfi": ("gather<1>", 8), "_Z6gatherILi4EEvPKfPKiPfi": ("gather<4>", 1)}


def main(folder: Path) -> None:
    """Fill a folder; the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    stencil = re.sub(r" *// planted: .*", "", KERNELS["thermal_stencil"].source().read_text(encoding="utf-8"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((HERE / "sources").glob("*.cu"))}
    texts["thermal_stencil.cu"] = stencil
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "gpadvisor.toml").write_text(SETTINGS, encoding="utf-8")
    launches = [
        launch("thermal_stencil.cu", stencil, "thermal_stencil", "thermal_stencil", 10),
        *(launch("gather.cu", texts["gather.cu"], *named) for named in _gather()),
    ]
    device = DeviceSpec(name="NVIDIA A100-SXM4-80GB", sms=108, clock_hz=1.41e9, warps_per_sm=64)
    (folder / "run.ncu-rep").write_bytes(write_report(launches, device=device))
    convert(folder / "run.ncu-rep", folder / "run.gpadvisor.json")


def _gather() -> list[tuple[str, str, int]]:
    return [(kernel, name, scale) for kernel, (name, scale) in GATHER.items()]


def launch(file: str, text: str, kernel: str, name: str, scale: int) -> LaunchSpec:
    """One launch with samples where the code waits, of a source that the report carries."""
    path = f"{COMPILED_AS}/{file}"
    return sampled(
        compile_text(text, path),
        kernel,
        seed=name,
        scale=scale,
        demangled=name,
        grid=(432, 1, 1),
        sources={path: text},
        duration_ns=1e5 * scale,
    )


def convert(report: Path, target: Path) -> None:
    """The advice of a report as JSON, as another machine would have written it."""
    subprocess.run(
        [sys.executable, "-m", "gpadvisor", "advise", report.name, "--format", "json", "-o", target.name],
        check=True,
        cwd=report.parent,
        env={**os.environ, "GPADVISOR_CACHE": ""},
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
