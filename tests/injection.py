# SPDX-License-Identifier: Apache-2.0
"""The injection library under the stand-in for driver and CUPTI: building both, running host programs."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ToolError
from gpadvisor.profiler.cupti import Cupti, build_library, find_cupti

NATIVE = Path(__file__).parent / "native"
DRIVER = 13000
LAUNCH_SAMPLES = {  # what fake_cuda.h defines, of one launch: all samples, and latency samples among them
    "alpha": (sum(3 + pc for pc in range(5)) + 2 * 2 + 1, sum(1 + pc for pc in range(5))),
    "beta": (sum(4 + pc for pc in range(5)) + 2 * 2 + 1, sum(1 + pc for pc in range(5))),
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What the stand-in delivered; ``struct fake_truth``."""

    launches: int
    samples: int
    kernels: int
    modules: int
    contexts: int
    injected: int
    samples_made: int
    dropped: int
    copies: int
    calls: int


@dataclass(frozen=True, slots=True)
class Stand:
    """A built library, the stand-in and a host program, with what their processes need."""

    folder: Path
    library: Path
    host: Path
    image: Path
    environment: Mapping[str, str]

    def truth(self, path: Path) -> Truth:
        return Truth(*struct.unpack("<10Q", path.read_bytes()[:80]))

    def variables(self, output: Path, truth: Path, **more: str) -> dict[str, str]:
        """The environment of a host program that is not started by ``collect``."""
        return {
            **self.environment,
            "CUDA_INJECTION64_PATH": str(self.library),
            "GPADVISOR_COLLECT_DIR": str(output),
            "FAKE_TRUTH": str(truth),
            **more,
        }

    def run(
        self, output: Path, mode: str, count: int = 10, *, command: Sequence[str] = (), **more: str
    ) -> tuple[subprocess.CompletedProcess[str], Truth]:
        """Run a host program to its end, however it ends."""
        output.mkdir(exist_ok=True)
        truth = output.with_suffix(".truth")
        done = subprocess.run(
            [*command, str(self.host), mode, str(self.image), str(count)],
            env=self.variables(output, truth, **more),
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        return done, self.truth(truth)


def found_cupti() -> Cupti:
    """CUPTI's headers, or skip: without them there is nothing to build."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on PATH, so that the injection library cannot be built")
    try:
        return find_cupti(driver=DRIVER)
    except ToolError as error:
        pytest.skip(str(error))


def build_stand(folder: Path, *, flags: Sequence[str] = ()) -> Stand:
    """Build everything with gcc; ``flags`` go to all three parts."""
    cupti = found_cupti()
    library = build_library(cupti, folder / "cache", flags=flags).path
    fake = folder / "libcuda.so.1"
    includes = [part for place in cupti.includes for part in ("-isystem", str(place))]
    common = ["gcc", "-std=c11", "-g", "-Wall", "-Wextra", "-Werror", *flags, *includes]
    shared = [*common, "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]
    commands = (
        [*shared, str(NATIVE / "fake_cuda.c"), "-o", str(fake), "-pthread", "-ldl"],
        [*common, "-rdynamic", str(NATIVE / "host.c"), "-o", str(folder / "host"), str(fake), "-pthread"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 and flags and "-fsanitize" in flags[0]:
            pytest.skip(f"gcc cannot link {flags[0]}: {done.stderr.strip()[:200]}")
        assert done.returncode == 0, done.stderr
    # One file under both names is one library for the loader: driver and CUPTI share their state.
    (folder / f"libcupti.so.{cupti.major}").symlink_to(fake.name)
    image = folder / "image.cubin"
    image.write_bytes(tiny_cubin({"alpha": [("helper", 64)], "beta": []}, sm=80))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        "LD_LIBRARY_PATH": str(folder),
        "GPADVISOR_CUPTI": str(folder / f"libcupti.so.{cupti.major}"),
    }
    return Stand(folder, library, folder / "host", image, environment)
