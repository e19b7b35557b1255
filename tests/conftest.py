# SPDX-License-Identifier: Apache-2.0
"""What all tests share: order, skips with a visible reason, and hypothesis settings."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.kept import ANSWERS, FOLDER, kept_answers, kept_disassembler, kept_together
from tests.kernels import nvdisasm_path, nvrtc_available, wheel_file
from tests.read_here import reading_here

settings.register_profile(
    "gpadvisor",
    deadline=None,  # the machine may be busy
    max_examples=60,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gpadvisor"))

# A shell starts what runs behind it with Ctrl-C off, which every program that a test starts inherits.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same of nohup and the end of a session: a handler is not inherited, and this process goes on.
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

_ORDER = ("unit", "style", "property", "rules", "golden", "fixtures", "oracle", "bench", "e2e")
"""Folders from fast to slow; a folder not listed comes between golden and oracle."""

# Collected tests live to the end: looking for cyclic garbage among them was half of what collecting took.
gc.set_threshold(100_000, 20, 50)


def _no_compiler() -> str | None:
    found = nvrtc_available() or wheel_file("bin", "nvcc") or shutil.which("nvcc")
    return None if found else "neither nvcc nor the NVRTC wheel is installed"


def _no_nvdisasm() -> str | None:
    return None if nvdisasm_path() else "nvdisasm is not installed"


def _no_reports() -> str | None:
    folder = os.environ.get("GPADVISOR_REPORTS")
    if not folder:
        return "GPADVISOR_REPORTS is not set"
    if not any(Path(folder).glob("*.ncu-rep*")):
        return "GPADVISOR_REPORTS has no .ncu-rep file in it"
    return None


def _no_gpu() -> str | None:
    return None if Path("/dev/nvidiactl").exists() else "no GPU"


def _no_validation() -> str | None:
    return None if os.environ.get("GPADVISOR_VALIDATE") else "runs with GPADVISOR_VALIDATE=1 (make validate)"


_NEEDS: dict[str, Callable[[], str | None]] = {
    "toolkit": _no_compiler,
    "nvdisasm": _no_nvdisasm,
    "reports": _no_reports,
    "gpu": _no_gpu,
    "validate": _no_validation,
}


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes of a run share what tools have said; others that it starts inherit the folder."""
    if not hasattr(config, "workerinput") and FOLDER not in os.environ:
        shared = contextlib.ExitStack()
        shared.enter_context(kept_together())
        if (tool := nvdisasm_path()) is not None:
            os.environ.setdefault(ANSWERS, os.fspath(kept_answers(tool)))
            os.environ["PATH"] = f"{kept_disassembler(tool).parent}{os.pathsep}{os.environ['PATH']}"
        config.add_cleanup(shared.close)


def _rank(item: pytest.Item) -> tuple[bool, int]:
    parts = item.path.relative_to(item.config.rootpath).parts
    folder = parts[1] if len(parts) > 2 else ""
    known = _ORDER.index(folder) if folder in _ORDER else _ORDER.index("golden")
    return item.get_closest_marker("slow") is not None, known


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, saying why, and run fast tests first."""
    missing = {marker: reason for marker, lacks in _NEEDS.items() if (reason := lacks()) is not None}
    for item in items:
        for marker, reason in missing.items():
            if item.get_closest_marker(marker) is not None:
                item.add_marker(pytest.mark.skip(reason=f"{marker}: {reason}"))
    items.sort(key=_rank)


@pytest.fixture(scope="module")
def reads_here() -> Iterator[None]:
    """Start no child for what is read."""
    with reading_here():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skips by reason in one line, so that none goes unnoticed."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if reasons:
        counts = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skips: {counts}")


def pytest_report_header() -> str:
    """Name the tools that the tests will use."""
    nvrtc = "NVRTC" if importlib.util.find_spec("cuda") else "no NVRTC"
    return f"gpadvisor: {nvrtc}, nvdisasm {'found' if nvdisasm_path() else 'missing'}"
