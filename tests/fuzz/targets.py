# SPDX-License-Identifier: Apache-2.0
"""What is fed, and what must hold: a value or one of our errors, samples conserved, memory in proportion."""

from __future__ import annotations

import resource
import sys
from functools import cache
from pathlib import Path

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
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.cubin import line_table_damage, read_cubin, section_lines
from gpadvisor.errors import GpadvisorError
from gpadvisor.store import load_bytes
from gpadvisor.store.redaction import redacted
from gpadvisor.store.snapshot import snapshot_bytes

CORPUS = Path(__file__).with_name("corpus")
_MEMORY_BYTES = 1 << 30
"""How much more one input of some kilobytes may take at most."""


@cache
def seeds() -> dict[str, list[bytes]]:
    """Sound inputs of each kind, and what was found before."""
    cubin = tiny_cubin({"k": [("helper", 64)], "other": []})
    program = address() + COPY + file(2) + inlined(1, 3) + line(4) + COPY + advance(128) + END
    lines = [
        elf(
            [
                Part(".text.k", code(8)),
                Part(".nv.info", record(0x2F, 1, 40) + record(0x12, 1, 8)),
                Part(".debug_line", unit(program, version=version)[0]),
                Part(".nv.merc.debug_line", unit(program, version=3)[0]),
                Part(".debug_str", b"\0f\0g\0"),
            ],
            [Sym("k", ".text.k", 0, 128)],
        )
        for version in (2, 4, 5)
    ]
    spec = LaunchSpec(
        kernel="k", cubin=cubin, samples={("k", 16, "wait"): (5, 4), ("k", 32, "selected"): (7, 0)}
    )
    report = write_report([spec], host="box", command="./app")
    found: dict[str, list[bytes]] = {
        "report": [report],
        "cubin": [cubin, *lines],
        "snapshot": [snapshot_bytes(load_bytes(report))],
    }
    for path in sorted(CORPUS.glob("*-*")):
        found[path.name.partition("-")[0]].append(path.read_bytes())
    return found


def wrong(kind: str, data: bytes) -> str | None:
    """What is wrong with how an input ends; None where it ends as it should."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        if kind == "cubin":
            cubin = read_cubin(data)
            line_table_damage(cubin)
            for section in cubin.sections:
                entries = section_lines(cubin, section)
                if len(entries) != section.instruction_count:
                    return "another number of lines than of instructions"
        else:
            profile = load_bytes(data)
            for kernel in profile.kernels:
                if not 0 <= kernel.latency_samples <= kernel.total_samples < 1 << 53:
                    return "samples that cannot be"
            again = load_bytes(snapshot_bytes(profile))
            if [kernel.total_samples for kernel in again.kernels] != [
                kernel.total_samples for kernel in profile.kernels
            ]:
                return "samples were lost on the way through a snapshot"
            redacted(profile)
    except GpadvisorError:
        return _memory(before)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 what else comes is what is looked for
        return f"{type(error).__name__}: {error}"
    return _memory(before)


def _memory(before: int) -> str | None:
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{grown >> 10} MiB more" if grown > _MEMORY_BYTES >> 10 and sys.platform == "linux" else None
