# SPDX-License-Identifier: Apache-2.0
"""Writes the workspaces that the end-to-end tests open: sources, reports of them, converted advice.

``main`` is opened by itself; ``both.code-workspace`` has ``second`` beside it, for another device, with
settings of its own and a profile command: gpadvisor with a stand-in for Nsight Compute that leaves a report
of the better kernel. ``report`` has a source with profiles of it and of a better one, and of a hostile name.
``timeline`` has a report, host code, and a traced run of both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.host_traces import Host, write_host_trace
from tests.kernels import COMPILED_AS, KERNELS, compile_text
from tests.ncu_writer import DeviceSpec, LaunchSpec, write_report
from tests.python_kernels import PYTHON_KERNELS, python_launch
from tests.sampled import sampled
from tests.stand_in_ncu import stand_in_ncu

SOURCES = Path(__file__).resolve().parent / "sources"
A100 = DeviceSpec(name="NVIDIA A100-SXM4-80GB", sms=108, clock_hz=1.41e9, warps_per_sm=64)
H100 = DeviceSpec(name="NVIDIA H100 PCIe", sms=114, clock_hz=1.755e9, warps_per_sm=64, capability=(9, 0))
SETTINGS = """\
# SPDX-License-Identifier: Apache-2.0
arch = "{arch}"
"""
HOSTILE = "</script><img src=x onerror=\"stolen=1\"><b onclick='stolen=1'>&lt;kernel"
ONE, FOUR = "_Z6gatherILi1EEvPKfPKiPfi", "_Z6gatherILi4EEvPKfPKiPfi"


def main(root: Path) -> None:
    """Fill a folder; the same bytes every time, but for the paths of programs."""
    _main(root / "main")
    _second(root / "second", root / "ncu")
    _report(root / "report")
    _timeline(root / "timeline")
    folders = {"folders": [{"path": "main"}, {"path": "second"}]}
    (root / "both.code-workspace").write_text(json.dumps(folders), encoding="utf-8")


def _main(folder: Path) -> None:
    stencil = re.sub(r" *// planted: .*", "", KERNELS["thermal_stencil"].source().read_text(encoding="utf-8"))
    texts = {name: (SOURCES / name).read_text(encoding="utf-8") for name in ("gather.cu", "scale.cu")}
    _write(folder, "sm_80", {**texts, "thermal_stencil.cu": stencil})
    launches = [
        _launch("thermal_stencil.cu", stencil, "thermal_stencil", "thermal_stencil", 10),
        _launch("gather.cu", texts["gather.cu"], ONE, "gather<1>", 8),
        _launch("gather.cu", texts["gather.cu"], ONE, "gather<1>", 3, grid=(216, 1, 1), seed="again"),
        _launch("gather.cu", texts["gather.cu"], FOUR, "gather<4>", 1),
    ]
    (folder / "run.ncu-rep").write_bytes(write_report(launches, device=A100))
    (folder / "blend.py").write_bytes((PYTHON_KERNELS / "blend.py").read_bytes())
    (folder / "blend.ncu-rep").write_bytes(write_report([python_launch("blend")], device=A100))
    _convert(folder / "run.ncu-rep", folder / "run.gpadvisor.json")


def _second(folder: Path, ncu: Path) -> None:
    text = (SOURCES / "damp.cu").read_text(encoding="utf-8")
    better = text.replace("0.75", "0.75f").replace("0.5;", "0.5f;")
    _write(folder, "sm_90", {"damp.cu": text})
    before, after = (
        _launch(
            "damp.cu", version, "_Z4dampPKfPfi", "damp", 8, arch="sm_90", grid=(912, 1, 1), speedup=speedup
        )
        for version, speedup in ((text, 1.0), (better, 1.1))
    )
    (folder / "run.ncu-rep").write_bytes(write_report([before], device=H100))
    report = ncu.with_name("better.ncu-rep")
    report.write_bytes(write_report([after], device=H100))
    stand_in_ncu(ncu, report=report, launches=1, record=ncu.with_name("ncu-ran"))
    command = [sys.executable, "-P", "-m", "gpadvisor", "profile", "--collector", "ncu", "--no-advice"]
    settings = {
        "gpadvisor.profile.command": [
            *("env", f"GPADVISOR_NCU={ncu}", *command, "-o", "${profile}.gpadvisor", "--", "true"),
        ],
        "gpadvisor.severity": {"GPA102": "hint"},
    }
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "settings.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _report(folder: Path) -> None:
    name, kernel = "thermal_stencil.cu", KERNELS["thermal_stencil"]
    before, after = (
        re.sub(r" *// planted: .*", "", source.read_text(encoding="utf-8"))
        for source in (kernel.source(), kernel.source("after"))
    )
    _write(folder, "sm_80", {name: before})
    launches = {
        "run": _launch(name, before, "thermal_stencil", "thermal_stencil", 10),
        "after": _launch(name, after, "thermal_stencil", "thermal_stencil", 10, speedup=1.4),
        "hostile": replace(_launch("other.cu", before, "thermal_stencil", HOSTILE, 10), sources={}),
    }
    for report, launch in launches.items():
        (folder / f"{report}.ncu-rep").write_bytes(write_report([launch], device=A100))
    _convert(folder / "run.ncu-rep", folder / "run.json")


def _timeline(folder: Path) -> None:
    name, kernel = "thermal_stencil.cu", KERNELS["thermal_stencil"]
    text = re.sub(r" *// planted: .*", "", kernel.source().read_text(encoding="utf-8"))
    host = (SOURCES / "simulate.cpp").read_text(encoding="utf-8")
    _write(folder, "sm_80", {name: text, "simulate.cpp": host})
    launch = _launch(name, text, "thermal_stencil", "thermal_stencil", 10)
    (folder / "run.ncu-rep").write_bytes(write_report([launch], device=A100))
    run = Host(name="thermal_stencil")
    for _ in range(200):
        run.call("cudaLaunchKernel", 6_000, "advance", 1, kernel=90_000)
        run.wait("cudaDeviceSynchronize", "advance", 2)
        run.run(40_000)
    write_host_trace(folder / "run.sqlite", run)


def _write(folder: Path, arch: str, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "gpadvisor.toml").write_text(SETTINGS.format(arch=arch), encoding="utf-8")


def _launch(
    file: str,
    text: str,
    kernel: str,
    name: str,
    scale: int,
    *,
    arch: str = "sm_80",
    grid: tuple[int, int, int] = (432, 1, 1),
    speedup: float = 1.0,
    seed: str = "",
) -> LaunchSpec:
    """One launch with samples where the code waits, of a source that the report carries."""
    path = f"{COMPILED_AS}/{file}"
    return sampled(
        compile_text(text, path, arch),
        kernel,
        seed=seed or name,
        scale=scale,
        demangled=name,
        grid=grid,
        sources={path: text},
        duration_ns=1e5 * scale / speedup,
    )


def _convert(report: Path, target: Path) -> None:
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
