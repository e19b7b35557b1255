# SPDX-License-Identifier: Apache-2.0
"""From real machine code under the stand-in to advice on its lines: the whole way of a collection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.injection import LAUNCH_SAMPLES, Stand
from tests.kernels import compile_text, nvdisasm_path, nvrtc_available

from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot

SOURCE = """
extern "C" __global__ void alpha(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] / 3.0f;
}
extern "C" __global__ void beta(float *out) { out[threadIdx.x] = 1.0f; }
"""


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_a_collection_is_advised_on_like_any_profile(stand: Stand, tmp_path: Path) -> None:
    if not nvrtc_available() or nvdisasm_path() is None:
        pytest.skip("NVRTC and nvdisasm are needed for real machine code")
    image = tmp_path / "image.cubin"
    image.write_bytes(compile_text(SOURCE, "app.cu"))
    output = tmp_path / "out"
    output.mkdir()
    subprocess.run(
        [str(stand.host), "mixed", str(image), "50"],
        env=stand.variables(output, tmp_path / "truth"),
        check=True,
    )
    snapshot = tmp_path / "run.gpadvisor"
    write_snapshot(load_profile(output), snapshot)
    done = subprocess.run(
        [sys.executable, "-m", "gpadvisor", "advise", str(snapshot), "--format", "json", "--kernel", "alpha"],
        env={**os.environ, "GPADVISOR_CACHE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["evidence"] == "measured"
    assert kernel["samples"]["total"] == 100 * LAUNCH_SAMPLES["alpha"][0]
    assert kernel["samples"]["latency"] == 100 * LAUNCH_SAMPLES["alpha"][1]
    assert "mixed_configurations" in {problem["code"] for problem in kernel["problems"]}
