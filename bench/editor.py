# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.editor``: save to diagnostics, hovers under load, memory; each beside its yardstick."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from lsprotocol import types as lsp
from tests.kernels import KERNELS, compile_text
from tests.lsp_client import Editor, editor
from tests.lsp_projects import make_project, report_of
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch

from bench.inputs import FOLDER, make_input
from bench.measure import Command, run
from bench.sources import Size, cuda_source
from gpadvisor.sandbox.processes import descendants

NAME: Final = "kernel.cu"
LARGE: Final = Size(instructions=100_000, kernels=5)
_HOVERS: Final = 400
_BUSY: Final = "x = 0\nwhile True:\n    x += 1\n"


def compile_and_disassemble(path: Path, text: str) -> float:
    """Seconds of nvcc (or NVRTC) and nvdisasm for a text, as processes of their own."""
    from gpadvisor.toolchain.compile import compile_source
    from gpadvisor.toolchain.disassembly import disassemble

    path.write_text(text, encoding="utf-8")
    begun = time.perf_counter()
    disassemble(compile_source(path, arch="sm_80").cubin)
    return time.perf_counter() - begun


async def save_to_diagnostics(
    folder: Path, sources: list[str], rounds: int
) -> list[tuple[str, float, float]]:
    """For each source: the bare tools' time and that from save to diagnostics, medians, debounce 0."""
    found = []
    for number, text in enumerate(sources):
        place = folder / f"save{number}"
        place.mkdir(parents=True)
        (place / NAME).write_text(text, encoding="utf-8")
        (place / "gpadvisor.toml").write_text('arch = "sm_80"\n', encoding="utf-8")
        bare, whole = [], []
        compile_and_disassemble(folder / f"bare{number}.cu", text)
        async with editor(place, settings={"debounceMilliseconds": 0}) as one:
            one.open(NAME)
            await one.shown(NAME)
            for round_ in range(rounds):
                bare.append(compile_and_disassemble(folder / f"bare{number}.cu", f"{text}\n// {round_}\n"))
                # A line on top moves every finding: what is published after the save is not what was before.
                one.edit(NAME, f"#define ROUND {round_}\n" + "\n" * (round_ + 1) + text)
                await asyncio.sleep(0.5)
                seen = len(one.own["gpadvisor/status"])
                begun = time.perf_counter()
                one.save(NAME)
                await one.until(lambda seen=seen: _analysed(one, seen))
                whole.append(time.perf_counter() - begun)
        found.append((f"{len(text.splitlines()):,} lines", statistics.median(bare), statistics.median(whole)))
    return found


def _analysed(one: Editor, seen: int) -> bool:
    """Whether an analysis has begun and ended since so many statuses; diagnostics go out before the last."""
    states = [status["state"] for status in one.own["gpadvisor/status"][seen:]]
    return "busy" in states and states[-1] == "idle"


async def hovers(folder: Path) -> dict[str, list[float]]:
    """Times of hovers: idle, beside a busy loop, and beside an analysis of 100,000 instructions."""
    place = make_project(folder / "hovers", "thermal_stencil", report=report_of("thermal_stencil"))
    large = make_input(LARGE)
    line = KERNELS["thermal_stencil"].planted_line("def") - 1
    times: dict[str, list[float]] = {}
    async with editor(place) as one:
        one.open(NAME)
        await one.shown(NAME, lambda found: any("[measured" in each.message for each in found))
        await one.status("idle")
        times["idle"] = await _hovers(one, line, _HOVERS)
        with subprocess.Popen([sys.executable, "-c", _BUSY]) as busy:
            times["busy loop"] = await _hovers(one, line, _HOVERS)
            busy.kill()
        task = asyncio.ensure_future(one.execute("gpadvisor.server.importProfile", str(large.report)))
        await one.status("busy")
        times["analysis"] = []
        while not task.done():
            times["analysis"] += await _hovers(one, line, 20)
        await task
    return times


async def _hovers(one: Editor, line: int, count: int) -> list[float]:
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        assert await one.hover(NAME, line) is not None
        found.append(time.perf_counter() - begun)
        await asyncio.sleep(0.01)
    return found


async def memory(folder: Path, count: int = 10) -> tuple[float, float, float]:
    """MiB of the server without a profile, with ten, and of its workers then."""
    names = [name for name in KERNELS if not KERNELS[name].needs_headers and not KERNELS[name].own_headers()][
        :count
    ]
    place = folder / "memory"
    place.mkdir(parents=True)
    for name in names:
        (place / f"{name}.cu").write_text(
            KERNELS[name].source().read_text(encoding="utf-8"), encoding="utf-8"
        )
    async with editor(place, settings={"run": "manual", "profiles": {"max": count}}) as one:
        for name in names:
            one.open(f"{name}.cu")
        await one.status("noProfile", "idle")
        await asyncio.sleep(3)
        server = one.client._server.pid
        before = _resident_mib(server)
        for name in names:
            report = place / f"{name}.ncu-rep"
            report.write_bytes(write_report([sampled_launch(name)]))
            await one.execute("gpadvisor.server.importProfile", str(report))
        after = _resident_mib(server)
        workers = sum(_resident_mib(pid) for pid in descendants(server))
    return before, after, workers


async def first_lens(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Processor seconds to the lens of a known report, of importing the protocol's types, and their ratio.

    Medians; from the start of the server, its children included, in turn with a Python that only imports.
    """
    place = make_project(folder / "lens", "thermal_stencil", report=report_of("thermal_stencil"), name=NAME)
    cpu, bare = [], []
    types = Command(name="types", arguments=(sys.executable, "-c", "import lsprotocol.types"))
    for round_ in range(rounds + 1):
        async with editor(place) as one:
            one.open(NAME)
            await one.shown(NAME, lambda found: any("measured" in each.message for each in found))
            assert any(_is_gain(lens.command) for lens in await one.lenses(NAME))
            server = one.client._server.pid
            if round_:  # the first one analyses it
                cpu.append(sum(map(_processor_seconds, (server, *descendants(server)))))
        if round_:
            bare.append(run(types).cpu_seconds)
    ratios = [whole / part for whole, part in zip(cpu, bare, strict=True)]
    return statistics.median(cpu), statistics.median(bare), statistics.median(ratios)


def _is_gain(command: lsp.Command | None) -> bool:
    return command is not None and "GPU time" in command.title


def _processor_seconds(pid: int) -> float:
    """Of a process and its children that have ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
    return sum(sizes) / 1024


def main(rounds: int) -> None:
    """Measure and print, Markdown."""
    folder = FOLDER / "editor"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [KERNELS["thermal_stencil"].source().read_text(encoding="utf-8")]
    sources += [cuda_source(Size(instructions=size, kernels=1)) for size in (1_000, 5_000)]
    compile_text(sources[0], NAME, "sm_80")
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| source | compile + disassembly | save to diagnostics | ratio |\n|---|---:|---:|---:|")
    for what, bare, whole in asyncio.run(save_to_diagnostics(folder, sources, rounds)):
        print(f"| {what} | {bare:.2f} s | {whole:.2f} s | {whole / bare:.2f}x |", flush=True)
    times = asyncio.run(hovers(folder))
    print("\n| hover | number | median | 99th percentile |\n|---|---:|---:|---:|")
    for what, values in times.items():
        high = statistics.quantiles(values, n=100)[98]
        print(f"| {what} | {len(values)} | {1e3 * statistics.median(values):.1f} ms | {1e3 * high:.1f} ms |")
    cpu, bare, ratio = asyncio.run(first_lens(folder, rounds))
    print(f"\nlens of a known report: {cpu:.2f} s of processor time, {ratio:.2f}x of the types' {bare:.2f} s")
    before, after, workers = asyncio.run(memory(folder))
    print(
        f"\nserver: {before:.0f} MiB without a profile, {after:.0f} MiB with ten; workers: {workers:.0f} MiB"
    )


if __name__ == "__main__":
    main(7)
