# SPDX-License-Identifier: Apache-2.0
"""No leak, no race, no undefined step: library, stand-in and hosts built with gcc's sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.injection import Stand, build_stand

from gpadvisor.store.load import load_profile

MODES = (
    "threads",
    "brief_threads",
    "destroyed",
    "unload",
    "fork_use",
    "fork_quiet",
    "runtime",
    "graph",
    "slowly",
    "steps",
)
# Its shadow memory does not fit every layout of addresses.
_PLAIN_ADDRESSES = ("setarch", "-R") if shutil.which("setarch") else ()


@pytest.fixture(scope="module", params=["thread", "address,undefined"])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Stand]:
    folder = tmp_path_factory.mktemp("sanitized")
    return request.param, build_stand(
        folder, flags=(f"-fsanitize={request.param}", "-fno-sanitize-recover=all")
    )


def _environment(kind: str) -> dict[str, str]:
    return {
        "TSAN_OPTIONS": "exitcode=66 halt_on_error=0 die_after_fork=0",
        "ASAN_OPTIONS": "exitcode=66 detect_leaks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["continuous", "serialized", "timeline"])
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_found(sanitized: tuple[str, Stand], tmp_path: Path, mode: str, sampling: str) -> None:
    kind, stand = sanitized
    more = {"GPADVISOR_COLLECT_MODE": sampling, "FAKE_CUPTI": "slow=200,copies", **_environment(kind)}
    out = tmp_path / "out"
    try:
        done, truth = stand.run(out, mode, 20, command=_PLAIN_ADDRESSES, **more)
    except subprocess.TimeoutExpired:
        # A child of fork() may inherit a lock of the sanitizer's allocator: seen once, never without it.
        if not (mode.startswith("fork") and kind.startswith("address")):
            raise
        out = tmp_path / "again"
        done, truth = stand.run(out, mode, 20, command=_PLAIN_ADDRESSES, **more)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run under this kernel")
    # What the leak checker says of its own doubts is no finding; a leak ends with exit code 66.
    said = [line for line in done.stderr.splitlines() if "was not suspended. False leaks" not in line]
    assert (done.returncode, said) == (0, [])
    if sampling == "timeline":
        assert truth.samples == 0
        return
    counted = sum(kernel.total_samples for kernel in load_profile(out).kernels)
    assert counted == truth.samples


@pytest.mark.slow
def test_a_leak_and_a_race_would_be_found(sanitized: tuple[str, Stand], tmp_path: Path) -> None:
    """The sanitizers are on: the host's own deliberate faults end it."""
    _, stand = sanitized
    done, _ = stand.run(tmp_path / "out", "faulty", 1, command=_PLAIN_ADDRESSES, **_environment(sanitized[0]))
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run under this kernel")
    assert done.returncode == 66
