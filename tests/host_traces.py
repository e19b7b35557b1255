# SPDX-License-Identifier: Apache-2.0
"""A host and a GPU that run by the clock, and the traces that tracers would write of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.hpctoolkit_writer import LEXICAL, LINE, Node, write_database

_COPIES = {"HtoD": (1, 0, 2), "DtoH": (2, 2, 0)}
_SHAPE = (1, 1, 1, 32, 1, 1)


class Call(NamedTuple):
    """Of the host."""

    start: int
    end: int
    name: str
    function: str
    line: int


class Done(NamedTuple):
    """By the GPU; ``call`` launched it."""

    start: int
    end: int
    call: int
    stream: int
    copy: tuple[str, bool] | None  # direction, and whether of pageable memory


@dataclass
class Host:
    """One thread, and streams that run in order."""

    name: str = "k"  # of the kernels
    now: int = 1_000
    calls: list[Call] = field(default_factory=list)
    work: list[Done] = field(default_factory=list)
    free: dict[int, int] = field(default_factory=dict)

    def call(
        self,
        name: str,
        lasts: int,
        function: str,
        line: int,
        *,
        kernel: int = 0,
        copy: tuple[int, str, bool] | None = None,
        stream: int = 7,
    ) -> None:
        """A call, and what it launches as it returns."""
        self.calls.append(Call(self.now, self.now + lasts, name, function, line))
        self.now += lasts
        length = kernel or (copy[0] if copy else 0)
        if length:
            start = max(self.now, self.free.get(stream, 0))
            self.free[stream] = start + length
            kind = None if copy is None else copy[1:]
            self.work.append(Done(start, start + length, len(self.calls) - 1, stream, kind))

    def wait(
        self, name: str, function: str, line: int, *, returns: int = 2_000, stream: int | None = None
    ) -> None:
        """For a stream or all of them; the call returns a little after."""
        ends = self.free.values() if stream is None else [self.free[stream]]
        done = max(self.now, *ends) + returns
        self.calls.append(Call(self.now, done, name, function, line))
        self.now = done

    def run(self, lasts: int) -> None:
        """Work of its own."""
        self.now += lasts

    @property
    def span(self) -> int:
        """Of the GPU's work."""
        return max(one.end for one in self.work) - min(one.start for one in self.work)


def write_host_trace(path: Path, host: Host) -> Path:
    """As an export of Nsight Systems with call chains, or a Chrome trace with frames of Python."""
    if path.suffix == ".sqlite":
        _write_export(path, host)
    else:
        path.write_text(json.dumps({"traceEvents": _events(host)}))
    return path


def _write_export(path: Path, host: Host) -> None:
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts) + 1)

    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, streamId, correlationId,
                mangledName, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, "end", deviceId, streamId, correlationId,
                copyKind, srcKind, dstKind);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", globalTid, correlationId, nameId,
                callchainId);
            CREATE TABLE CUDA_CALLCHAINS (id, symbol, module, unresolved, originalIP, stackDepth);
            CREATE TABLE StringIds (id, value);"""
        )
        for done in host.work:
            row = (done.start, done.end, 0, done.stream, done.call)
            if done.copy is None:
                name = number(host.name)
                database.execute(
                    f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * 13)})",
                    (*row, name, name, *_SHAPE),
                )
            else:
                kind, source, target = _COPIES[done.copy[0]]
                ends = [1 if memory == 0 and not done.copy[1] else memory for memory in (source, target)]
                database.execute(
                    f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({', '.join('?' * 8)})",
                    (*row, kind, *ends),
                )
        chains: dict[tuple[str, str, int], int] = {}
        for at, call in enumerate(host.calls):
            chain = chains.setdefault((call.name, call.function, call.line), len(chains) + 1)
            row = (call.start, call.end, 1, at, number(f"{call.name}_v7000"), chain)
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", row)
        for (name, function, line), chain in chains.items():
            frames = [
                ("0x7f00", "/usr/lib64/libcuda.so.525", 1, 1),
                (name, "/usr/local/cuda/lib64/libcudart.so.12", None, 2),
                (f"cudaError {name}<float>(float*)", "/opt/app", None, 3),
                (function, "/opt/app", None, line),
                ("main", "/opt/app", None, 5),
                ("__libc_start_main", "/lib64/libc-2.31.so", None, 6),
            ]
            for depth, (symbol, module, unresolved, place) in enumerate(frames):
                row = (chain, number(symbol), number(module), unresolved, place, depth)
                database.execute("INSERT INTO CUDA_CALLCHAINS VALUES (?, ?, ?, ?, ?, ?)", row)
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(n, t) for t, n in texts.items()])
        database.commit()


def _events(host: Host) -> list[dict[str, object]]:
    events: list[dict[str, object]] = []

    def event(start: int, end: int, **values: object) -> None:
        events.append({"ph": "X", "ts": start / 1000, "dur": (end - start) / 1000, **values})

    for done in host.work:
        about: dict[str, object] = {"device": 0, "stream": done.stream, "correlation": done.call}
        if done.copy is None:
            about |= {"grid": list(_SHAPE[:3]), "block": list(_SHAPE[3:])}
            event(done.start, done.end, cat="kernel", name=host.name, args=about)
        else:
            direction, pageable = done.copy
            memory = "Pageable" if pageable else "Pinned"
            name = f"Memcpy {direction} ({memory} -> Device)"
            event(done.start, done.end, cat="gpu_memcpy", name=name, args=about)
    thread = {"pid": 3, "tid": 4}
    end = max(call.end for call in host.calls) + 1_000
    event(0, end, cat="python_function", name="app/run.py(1): <module>", **thread)
    for at, call in enumerate(host.calls):
        inner = call.start, call.end
        event(*inner, cat="python_function", name=f"app/{call.function}.py(10): {call.function}", **thread)
        event(*inner, cat="python_function", name="torch/nn/modules/module.py(1501): _call_impl", **thread)
        event(*inner, cat="python_function", name="<built-in method run>", **thread)
        event(*inner, cat="cuda_runtime", name=call.name, args={"correlation": at}, **thread)
    return events


def write_waiting_database(folder: Path) -> Path:
    """A database of HPCToolkit: twenty kernels of /src/app.cu:3, each waited for in line 4."""
    work = Node(5, function=("work()", "x.gpubin", 64), values={(1, "GKER (sec)"): 1.0})
    launch = Node(
        6,
        function=("cudaLaunchKernel", "/bin/app", 1),
        children=[Node(4, function=("<gpu kernel>", "", 0), children=[work])],
    )
    wait = Node(8, function=("cudaDeviceSynchronize", "/bin/app", 2))
    lines = [
        Node(7, line=("/src/app.cu", 3), relation=LEXICAL, lexical=LINE, children=[launch]),
        Node(9, line=("/src/app.cu", 4), relation=LEXICAL, lexical=LINE, children=[wait]),
    ]
    tree = Node(2, function=("solve", "/bin/app", 0), children=lines)
    stream, thread = [], []
    for at in range(0, 20_000, 1_000):
        stream += [(at + 100, 5), (at + 700, 0)]
        thread += [(at, 7), (at + 100, 8), (at + 710, 2)]
    return write_database(
        folder,
        [Node(1, children=[tree])],
        ranks={1: {"GPUCONTEXT": 1, "GPUSTREAM": 7}, 2: {"THREAD": 0}},
        traces={1: stream, 2: [*thread, (20_000, 0)]},
    )
