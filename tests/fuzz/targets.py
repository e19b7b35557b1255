# SPDX-License-Identifier: Apache-2.0
"""What is fed, and what must hold: a value or one of our errors, samples conserved, memory in proportion."""

from __future__ import annotations

import contextlib
import resource
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from tests import collection_writer as collected
from tests.cubin_parts import (
    COPY,
    END,
    Part,
    Sym,
    address,
    advance,
    code,
    elf,
    file,
    inlined,
    line,
    record,
    unit,
)
from tests.fuzz.found import deep_chains, many_rows, overflowing, shared_names
from tests.kernels import compile_text
from tests.ncu_writer import FrameSpec, LaunchSpec, RuleSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.cubin import line_table_damage, read_cubin, section_lines
from gpadvisor.errors import GpadvisorError
from gpadvisor.files import scratch_folder
from gpadvisor.store.collection import layout
from gpadvisor.store.collection.layout import RecordKind
from gpadvisor.store.collection.profile import read_collection
from gpadvisor.store.load import load_bytes
from gpadvisor.store.snapshot import parquet, snapshot_bytes
from gpadvisor.store.snapshot.redaction import redacted

CORPUS = Path(__file__).with_name("corpus")
_MEMORY_BYTES = 1 << 30
"""How much more one input of some kilobytes may take at most."""
_SECONDS = 20.0
"""Far more than any of them takes."""
_KERNEL = """
__device__ __forceinline__ float twice(float x) { return x + x; }
__global__ void scale(float *data, int n) {
    __shared__ float tile[64];
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        tile[i & 63] = twice(data[i]);
        __syncthreads();
        data[i] = twice(sinf(tile[(i + 1) & 63]));
    }
}
"""


@cache
def _cubins() -> list[bytes]:
    """Cubins with a line table of each version."""
    program = address() + COPY + file(2) + inlined(1, 3) + line(4) + COPY + advance(128) + END
    return [
        elf(
            [
                Part(".text.k", code(8)),
                Part(".nv.info", record(0x2F, 1, 40) + record(0x12, 1, 8)),
                Part(".debug_line", (table := unit(program, version=version))[0]),
                Part(".rel.debug_line", struct.pack("<QQ", table[1] + 3, 1 << 32 | 2)),
                Part(".nv.merc.debug_line", unit(program, version=3)[0]),
                Part(".debug_str", b"\0f\0g\0"),
            ],
            [Sym("k", ".text.k", 0, 128)],
        )
        for version in (2, 4, 5)
    ]


@cache
def seeds() -> dict[str, list[bytes]]:
    """Sound inputs of each kind, and what was found before."""
    cubin = tiny_cubin({"k": [("helper", 64)], "other": []})
    lines = _cubins()
    spec = LaunchSpec(
        kernel="k",
        cubin=lines[0],
        samples={("k", 16, "wait"): (5, 4), ("k", 32, "selected"): (7, 0)},
        counts={("k", 0): (1, 32)},
        pc_metrics={"memory_type": {("k", 0): 1.0}},
        rules=[RuleSpec(identifier="a", message="b", speedup_percent=3.0)],
        call_stack=[FrameSpec(module="m", address=1, function="f", file="/home/me/f.cc", line=3)],
        sources={"/home/me/a.cu": "text"},
    )
    other = LaunchSpec(kernel="k", cubin=cubin, samples={("k", 16, "wait"): (5, 4)})
    report = write_report([spec, other], host="box", command="./app")
    found: dict[str, list[bytes]] = {
        "report": [report, write_report([spec], numbers="float", layout="loaded", family="warp_stall")],
        "cubin": [
            *(cubin, *lines, *_compiled()),
            *(shared_names((b"\x01\x1f",), step, length=6000, count=40) for step in (0, 1)),
            *(many_rows(5000), deep_chains(40)),
        ],
        "collection": [_collection(lines[0], mode) for mode in (1, 2)],
        "snapshot": [snapshot := snapshot_bytes(load_bytes(report)), overflowing(snapshot)],
    }
    for path in sorted(CORPUS.glob("*-*")):
        found[path.name.partition("-")[0]].append(path.read_bytes())
    return found


def _collection(image: bytes, mode: int) -> bytes:
    """A file of the cupti collector, with a record of each kind."""
    stalls = ["smsp__pcsamp_warps_issue_stalled_wait", "smsp__pcsamp_warps_issue_stalled_wait_not_issued"]
    records = [
        *(collected.process(mode=mode), collected.device(), collected.context(mode=mode)),
        collected.reasons([*enumerate(stalls), (7, "smsp__pcsamp_sample_count")]),
        *(collected.module(image), collected.name("k"), collected.name("/usr/lib/libm.so")),
        collected.record(RecordKind.FRAME, layout.FRAME.pack(5, *[collected.name_of("k")] * 2, 3, 0)),
        collected.record(RecordKind.SYMBOL, layout.SYMBOL.pack(9, collected.name_of("k"), 0, 64)),
        collected.record(RecordKind.PATH, layout.PATH.pack(4, 1, 1) + struct.pack("<2Q", 5, 9)),
        *(collected.launch("k", 1, path=4), collected.launch("k", 2), collected.kernel("k", 1)),
        collected.record(RecordKind.FAILED, layout.FAILED.pack(2, 700)),
        collected.samples(
            [(77, 16, "k", 1, 0, 9), (77, 16, "k", 1, 1, 4), (77, 32, "k", 1, 7, 9)], dropped=2
        ),
        collected.note(5, 3),
    ]
    return collected.header() + collected.segment(records)


def _compiled() -> list[bytes]:
    """A cubin as compilers write them, where there is one."""
    with contextlib.suppress(ImportError, OSError, RuntimeError):
        return [compile_text(_KERNEL, "/home/me/scale.cu")]
    return []


@contextlib.contextmanager
def quick() -> Iterator[None]:
    """One database for all tables, which takes as long to begin as a snapshot to read; files in memory."""
    begin, place = parquet.connect, tempfile.tempdir
    databases: list[Any] = []

    def cursor(memory_bytes: int) -> Any:
        if not databases:
            databases.append(begin(memory_bytes))
        found = databases[-1].cursor()
        try:
            found.execute("SELECT 1").fetchall()
        except duckdb.Error:  # some errors end a whole database
            databases.append(begin(memory_bytes))
            return databases[-1].cursor()
        return found

    parquet.connect = cursor
    if Path("/dev/shm").is_dir():
        tempfile.tempdir = "/dev/shm"
    try:
        yield
    finally:
        parquet.connect, tempfile.tempdir = begin, place
        for database in databases:
            database.close()


def wrong(kind: str, data: bytes, *, stored: bool = True) -> str | None:
    """What is wrong with how an input ends, also as a snapshot; None where it ends as it should."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    late = f"takes more than {_SECONDS} s of processor time"
    try:
        with _limited() as is_late:
            return _wrong(kind, data, stored=stored) or _memory(before)
    except GpadvisorError:
        return late if is_late() else _memory(before)
    except (KeyboardInterrupt, SystemExit):
        if not is_late():
            raise
        return late
    except BaseException as error:  # noqa: BLE001 what else comes is what is looked for
        return late if is_late() else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _limited() -> Iterator[Callable[[], bool]]:
    """End what takes too long; what is yielded tells whether it did, whatever became of the exception."""
    late: list[bool] = []

    def end(*_: object) -> None:
        late.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield lambda: bool(late)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _wrong(kind: str, data: bytes, *, stored: bool) -> str | None:
    if kind == "cubin":
        cubin = read_cubin(data)
        line_table_damage(cubin)
        counts = [
            (len(section_lines(cubin, section)), section.instruction_count) for section in cubin.sections
        ]
        odd = [pair for pair in counts if pair[0] != pair[1]]
        return f"{odd[0][0]} lines of {odd[0][1]} instructions" if odd else None
    if kind == "collection":
        with scratch_folder() as folder:
            profile = read_collection(collected.write(folder / "run", data, images=_cubins()[:1]))
    else:
        profile = load_bytes(data)
    samples = [kernel.total_samples for kernel in profile.kernels]
    if any(not 0 <= kernel.latency_samples <= kernel.total_samples < 1 << 53 for kernel in profile.kernels):
        return "samples that cannot be"
    if not stored:
        return None
    if [kernel.total_samples for kernel in load_bytes(snapshot_bytes(profile)).kernels] != samples:
        return "samples were lost on the way through a snapshot"
    redacted(profile)
    return None


def _memory(before: int) -> str | None:
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{grown >> 10} MiB more" if grown > _MEMORY_BYTES >> 10 and sys.platform == "linux" else None
