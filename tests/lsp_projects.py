# SPDX-License-Identifier: Apache-2.0
"""Projects that an editor opens: our kernels with real reports of them, made here."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from tests.kernels import COMPILED_AS, KERNELS
from tests.ncu_writer import LaunchSpec, write_report
from tests.sampled import sampled_launch


@functools.cache
def launch_of(kernel: str) -> LaunchSpec:
    """A sampled launch; making one takes a compile."""
    return sampled_launch(kernel)


def report_of(kernel: str, *, duration_ns: float = 1e6, scale: int = 1, source: bool = True) -> bytes:
    """A report of a kernel; ``scale`` makes the samples others, ``source``: whether it carries the text."""
    launch = replace(launch_of(kernel), duration_ns=duration_ns)
    if scale != 1:
        samples = {at: (total * scale, latency * scale) for at, (total, latency) in launch.samples.items()}
        launch = replace(launch, samples=samples)
    if not source:
        launch = replace(launch, sources={})
    return write_report([launch])


def make_project(folder: Path, kernel: str, *, report: bytes | None = None, name: str = "kernel.cu") -> Path:
    """A folder with a source and, where given, a report of it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = KERNELS[kernel].source().read_bytes()
    (folder / name).write_bytes(text)
    for header, content in KERNELS[kernel].own_headers():
        (folder / header).write_text(content, encoding="utf-8")
    if report is not None:
        (folder / "run.ncu-rep").write_bytes(report)
    return folder


def compiled_path(kernel: str) -> str:
    """The path of its source in the line tables."""
    return f"{COMPILED_AS}/fixtures/kernels/{kernel}/before.cu"
