# SPDX-License-Identifier: Apache-2.0
"""Load: many runs at once on one empty cache, and many files in one server.

Run as ``python -m tests.validation.load [--runs 20] [--files 200]``. Ends with 1 where a run fails or says
something else than one by itself, a file gets no findings, or the one asked about does not come first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.kernels import KERNELS
from tests.lsp_client import editor, plain
from tests.lsp_projects import make_project, report_of

from gpadvisor.sandbox.processes import descendants

KERNEL = "thermal_stencil"
PATIENCE_SECONDS = 3600.0


def runs(count: int, folder: Path) -> bool:
    """Runs of one report, all at once; whether each says what one by itself says."""
    (folder / "run.ncu-rep").write_bytes(report_of(KERNEL))
    command = [sys.executable, "-m", "gpadvisor", "advise", "run.ncu-rep"]

    def begun(cache: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "GPADVISOR_CACHE": str(folder / cache)}
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    begin = time.monotonic()
    alone = begun("alone").communicate()[0]
    one = time.monotonic() - begin
    begin = time.monotonic()
    started = [begun("shared") for _ in range(count)]
    ended = [(*process.communicate(), process.returncode) for process in started]
    # On standard error stands what takes long.
    wrong = [end for end in ended if (end[0], end[2]) != (alone, 0)]
    sys.stdout.write(
        f"{count} runs on one cache: {time.monotonic() - begin:.0f} s, {one:.0f} s for one by itself,"
        f" {len(wrong)} differ\n"
    )
    for out, err, code in wrong[:3]:
        sys.stdout.write(f"  exit code {code}: {err}{out[:300]}\n")
    return bool(alone) and not wrong


async def files(count: int, folder: Path) -> bool:
    """Open them all, ask about the first; whether it comes before nearly all others, and all come."""
    make_project(folder, KERNEL)
    names = [f"kernel{number}.cu" for number in range(count)]
    for number, name in enumerate(names):
        text = KERNELS[KERNEL].source().read_text(encoding="utf-8")
        (folder / name).write_text(f"{text}// {number}\n", encoding="utf-8")
    order: list[str] = []
    begin, largest = time.monotonic(), 0
    async with editor(folder, settings={"debounceMilliseconds": 0}) as one:
        for name in names:
            one.open(name)
        await one.hover(names[0], 0)
        while len(order) < count and time.monotonic() - begin < PATIENCE_SECONDS:
            order += [name for name in names if name not in order and one.diagnostics(name)]
            largest = max(largest, _resident(one.client._server.pid))
            await asyncio.sleep(0.2)
        await one.until(lambda: plain(one.own["gpadvisor/status"][-1])["state"] == "idle", PATIENCE_SECONDS)
    at = order.index(names[0]) + 1 if names[0] in order else 0
    sys.stdout.write(
        f"{len(order)} of {count} files have findings after {time.monotonic() - begin:.0f} s,"
        f" the one that was asked about as number {at}; at most {largest >> 20} MiB for server and workers\n"
    )
    return len(order) == count and 0 < at <= 4  # two were begun before it, as many as there are workers


def _resident(server: int) -> int:
    total = 0
    for pid in (server, *descendants(server)):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--files", type=int, default=200)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["GPADVISOR_CACHE"] = str(folder / "server")
        fine = not chosen.runs or runs(chosen.runs, folder)
        fine &= not chosen.files or asyncio.run(files(chosen.files, folder / "project"))
        return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
