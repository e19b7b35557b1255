# SPDX-License-Identifier: Apache-2.0
"""Shipped machine tables, the strict loader, and the tables a user brings."""

from __future__ import annotations

import pytest

from gpadvisor import machine
from gpadvisor.errors import MachineModelError, UnknownArchitectureError
from gpadvisor.machine.schema import STATUSES
from gpadvisor.model.instruction import MemorySpace

TINY = """
schema = 1
arch = "sm_86"
inherits = "sm_86"

[sources.own]
status = "measured"
text = "a bench of ours"

[[latency]]
opcode = "MUFU"
min_cycles = 17
max_cycles = 40
source = "own"
"""


def test_all_architectures_of_the_issue_have_a_table() -> None:
    known = machine.architectures()
    assert {
        f"sm_{number}" for number in (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121)
    } <= set(known)
    assert list(known) == sorted(known, key=lambda name: int(name[3:]))


@pytest.mark.parametrize("arch", machine.architectures())
def test_every_number_has_a_known_source_and_is_in_order(arch: str) -> None:
    model = machine.load(arch)
    assert model.arch == arch
    for text in model.sources.values():
        assert text.partition(":")[0] in STATUSES
    for row in model.latencies:
        assert 1 <= row.min_cycles <= row.max_cycles
        assert set(row.source.split(", ")) <= set(model.sources)
    for space, bound in model.memory_latency_bound_cycles.items():
        assert bound.source in model.sources
        assert MemorySpace(space)
    assert model.sm.max_threads.value == model.sm.max_warps.value * model.sm.warp_size.value
    assert model.sm.shared_carveouts_bytes.value[-1] == model.sm.shared_bytes.value


@pytest.mark.parametrize(
    ("arch", "warps", "blocks", "shared_kib"),
    [
        ("sm_70", 64, 32, 96),
        ("sm_72", 64, 32, 96),
        ("sm_75", 32, 16, 64),
        ("sm_80", 64, 32, 164),
        ("sm_86", 48, 16, 100),
        ("sm_89", 48, 24, 100),
        ("sm_90", 64, 32, 228),
        ("sm_107", 32, 16, 228),
        ("sm_110", 48, 24, 228),
        ("sm_120", 48, 24, 100),
    ],
)
def test_limits(arch: str, warps: int, blocks: int, shared_kib: int) -> None:
    sm = machine.load(arch).sm
    assert (sm.max_warps.value, sm.max_blocks.value) == (warps, blocks)
    assert sm.shared_bytes.value == shared_kib * 1024


def test_the_longest_pattern_wins() -> None:
    model = machine.load("sm_80")
    plain, wide = model.latency("IMAD", ()), model.latency("IMAD", ("WIDE", "U32"))
    assert plain is not None
    assert wide is not None
    assert (plain.pattern, wide.pattern) == ("IMAD", "IMAD.WIDE")
    assert model.latency("NO_SUCH_OPCODE", ()) is None


def test_a_child_overrides_its_parent_and_keeps_the_rest() -> None:
    parent, child = machine.load("sm_80"), machine.load("sm_86")
    assert parent.latency("DFMA", ()) != child.latency("DFMA", ())
    assert parent.latency("MUFU", ()) == child.latency("MUFU", ())


def test_both_names_of_one_architecture_have_the_same_numbers() -> None:
    older, newer = machine.load("sm_101"), machine.load("sm_110")
    assert (older.sm, older.latencies) == (newer.sm, newer.latencies)
    assert older.memory_latency_bound_cycles == newer.memory_latency_bound_cycles


@pytest.mark.parametrize("text", ["sm_90a", "compute_90", "90", "sm_90"])
def test_names_of_one_architecture(text: str) -> None:
    assert machine.load(text).arch == "sm_90"


@pytest.mark.parametrize(
    ("arch", "nearest"), [("sm_104", "sm_103"), ("sm_999", "sm_121"), ("gfx90a", "sm_70")]
)
def test_an_unknown_architecture_names_the_nearest(arch: str, nearest: str) -> None:
    with pytest.raises(
        UnknownArchitectureError, match=f"no machine table for '{arch}'; the nearest is {nearest}"
    ):
        machine.load(arch)


def test_a_gpu_before_volta_has_no_nearest() -> None:
    with pytest.raises(
        UnknownArchitectureError, match=r"sm_61 is a GPU before Volta.* sm_70 and newer are known"
    ):
        machine.load("sm_61")


def test_the_same_table_is_loaded_once() -> None:
    assert machine.load("sm_90") is machine.load("sm_90")


def test_a_user_file_inherits_and_overrides() -> None:
    model = machine.load_file(TINY, "lab.toml")
    row = model.latency("MUFU", ("RCP",))
    assert row is not None
    assert (row.min_cycles, row.max_cycles, row.source) == (17, 40, "own")
    assert model.sources["own"] == "measured: a bench of ours"
    assert model.sm == machine.load("sm_86").sm


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 2", "lab.toml: schema is 2, expected 1"),
        ("schema = 1", "schema = 1\nspeed = 3", "lab.toml: unknown key 'speed'"),
        ('arch = "sm_86"', 'arch = "gfx90a"', "lab.toml: arch is 'gfx90a'"),
        ('inherits = "sm_86"', 'inherits = "sm_1"', "lab.toml: inherits 'sm_1', which has no table"),
        ('inherits = "sm_86"', "", "lab.toml: sm.[a-z0-9_]+ is missing"),
        ('status = "measured"', 'status = "certain"', "lab.toml: sources.own: status is 'certain'"),
        ('text = "a bench of ours"', "", "lab.toml: sources.own: text is missing"),
        ("min_cycles = 17", "min_cycles = 41", "latency row 1: min_cycles 41 is larger than max_cycles 40"),
        ("min_cycles = 17", "min_cycles = true", "lab.toml: latency row 1: min_cycles and max_cycles must"),
        ("min_cycles = 17", "min_cycles = 1.5", "lab.toml: latency row 1: min_cycles and max_cycles must"),
        ('source = "own"', 'source = "hearsay"', "lab.toml: latency of MUFU names the source 'hearsay'"),
        ('source = "own"', "", "lab.toml: latency row 1: source is missing"),
        ('opcode = "MUFU"', 'opcode = "MUFU"\ncycles = 3', "lab.toml: latency row 1: unknown key 'cycles'"),
        ('opcode = "MUFU"', "", "lab.toml: latency row 1: give either opcode or opcodes"),
        ('opcode = "MUFU"', 'opcodes = ["MUFU", "MUFU"]', "lab.toml: latency row 1: MUFU stands twice"),
        ("[[latency]]", "[sm]\nwarps = { value = 1, source = 'own' }\n[[latency]]", "sm.warps: unknown key"),
        ("[[latency]]", "[sm]\nmax_warps = 64\n[[latency]]", "lab.toml: sm.max_warps: expected"),
        (
            "[[latency]]",
            "[sm]\nmax_warps = { value = 0, source = 'own' }\n[[latency]]",
            "lab.toml: sm.max_warps: value is 0",
        ),
        (
            "[[latency]]",
            "[sm]\nshared_carveouts_bytes = { value = [8, 4], source = 'own' }\n[[latency]]",
            "not in ascending order",
        ),
        (
            "[[latency]]",
            "[memory_latency_bound_cycles]\nmoon = { value = 1, source = 'own' }\n[[latency]]",
            "memory_latency_bound_cycles.moon is not one of",
        ),
        (
            "[sources.own]",
            "[sources.mined]\nstatus = 'read'\ntext = 'x'\n[sources.own]",
            "sources.mined says something else",
        ),
        ("schema = 1", "schema = ", "lab.toml: not a TOML machine table"),
    ],
)  # fmt: skip
def test_a_malformed_file_names_itself_and_the_row(old: str, new: str, said: str) -> None:
    assert old in TINY
    with pytest.raises(MachineModelError, match=said):
        machine.load_file(TINY.replace(old, new, 1), "lab.toml")


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\x00", b"a = " + b"[" * 100_000, b"latency = 3", b"x" * ((1 << 20) + 1)]
)
def test_bytes_that_are_no_table(data: bytes) -> None:
    with pytest.raises(MachineModelError, match=r"lab\.toml"):
        machine.load_file(data, "lab.toml")


def test_scaling_moves_latencies_only() -> None:
    model = machine.load("sm_80")
    half = machine.scaled(model, 0.5)
    double = machine.scaled(model, 2.0)
    for low, middle, high in zip(half.latencies, model.latencies, double.latencies, strict=True):
        assert low.min_cycles <= middle.min_cycles < high.min_cycles
        assert high.max_cycles == 2 * middle.max_cycles
    assert double.memory_latency_bound_cycles["global"].value == 2200
    assert double.sm == model.sm
