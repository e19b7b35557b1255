# SPDX-License-Identifier: Apache-2.0
"""Collecting inside a process that uses CUDA already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.injection import LAUNCH_SAMPLES, Stand
from tests.tiny_cubin import tiny_cubin

from gpadvisor.store.load import load_profile

ALPHA, _ = LAUNCH_SAMPLES["alpha"]  # the first function of an image


def test_a_late_start_and_a_second_block(stand: Stand, tmp_path: Path) -> None:
    images = tmp_path / "early.cubin", tmp_path / "later.cubin"
    for path in images:
        path.write_bytes(tiny_cubin({path.stem: []}, sm=80))
    environment = {**os.environ, **stand.environment, "GPADVISOR_CACHE": str(stand.folder / "cache")}
    environment.pop("CUDA_INJECTION64_PATH", None)
    script = Path(__file__).with_name("late.py")
    arguments = [stand.folder, stand.environment["GPADVISOR_CUPTI"], *images, tmp_path / "saved.gpadvisor"]
    done = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        env={**environment, "FAKE_TRUTH": str(tmp_path / "truth"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    launches, samples, has_code, problems, frames = result["first"]["early"]
    assert (launches, samples, has_code) == (5, 5 * ALPHA, False)
    assert "loaded before the collection began and is unseen" in problems[0]
    assert frames == ["launch", "<module>"]
    assert result["first"]["later"][:4] == [7, 7 * ALPHA, True, []]
    assert "CUDA was in use already" in result["first problems"][0]
    assert list(result["second"]) == ["later"]
    assert result["second"]["later"][:4] == [13, 13 * ALPHA, True, []]
    assert "collected already" in result["nested"]
    assert [device["name"] for device in result["devices"]] == ["Fake GPU 0", "Fake GPU 1"]
    assert result["used"] in result["devices"]
    for text, launched in ((result["advice"], 2), (result["magic"], 4)):
        assert "later" in text
        assert f"Few samples: {launched * ALPHA};" in text  # those of its own block
    assert load_profile(tmp_path / "saved.gpadvisor").kernels[0].launch.kernel == "later"
    assert not list(tmp_path.glob("gpadvisor-in-process-*"))
