# SPDX-License-Identifier: Apache-2.0
"""The opcode table: complete rows, sources, and what depends on the architecture."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from gpadvisor.model.instruction import InOrderQueue, MemorySpace, OpcodeClass, Pipe
from gpadvisor.sass import opcode_info
from gpadvisor.sass.opcodes import UNKNOWN_OPCODE, opcode_table


def test_every_block_names_known_sources() -> None:
    text = resources.files("gpadvisor.sass.data").joinpath("opcodes.toml").read_text(encoding="utf-8")
    root = tomllib.loads(text)
    used = {source for block in root["block"] for source in block["sources"]}
    assert used == set(root["sources"])
    assert all(block["opcodes"] for block in root["block"])
    assert len(opcode_table()) > 300


def test_memory_opcodes_have_a_space_and_others_have_none() -> None:
    spaceless = {"ALD", "AST", "IPA", "ISBERD", "ISBEWR", "LDTRAM", "OUT", "STP", "TTULD", "TTUST", "VILD"}
    for name, row in opcode_table().items():
        memory = row.opclass in (
            OpcodeClass.LOAD,
            OpcodeClass.STORE,
            OpcodeClass.ATOMIC,
            OpcodeClass.REDUCTION,
            OpcodeClass.ASYNC_COPY,
        )
        if memory and name not in spaceless:
            assert row.space is not None, name


@pytest.mark.parametrize(
    ("mnemonic", "opclass", "space"),
    [
        ("LDG.E.64.CONSTANT", OpcodeClass.LOAD, MemorySpace.GLOBAL),
        ("LD.E", OpcodeClass.LOAD, MemorySpace.GENERIC),
        ("LDL", OpcodeClass.LOAD, MemorySpace.LOCAL),
        ("LDS.U.128", OpcodeClass.LOAD, MemorySpace.SHARED),
        ("LDC.64", OpcodeClass.LOAD, MemorySpace.CONSTANT),
        ("LDCU.128", OpcodeClass.LOAD, MemorySpace.CONSTANT),
        ("ULDC", OpcodeClass.LOAD, MemorySpace.CONSTANT),
        ("LDTM.x8", OpcodeClass.LOAD, MemorySpace.TENSOR),
        ("TEX.LL", OpcodeClass.LOAD, MemorySpace.TEXTURE),
        ("SULD.D.BA.2D", OpcodeClass.LOAD, MemorySpace.TEXTURE),
        ("STG.E", OpcodeClass.STORE, MemorySpace.GLOBAL),
        ("STAS", OpcodeClass.STORE, MemorySpace.DISTRIBUTED_SHARED),
        ("ATOMS.ADD", OpcodeClass.ATOMIC, MemorySpace.SHARED),
        ("REDG.E.ADD", OpcodeClass.REDUCTION, MemorySpace.GLOBAL),
        ("LDGSTS.E.128", OpcodeClass.ASYNC_COPY, MemorySpace.GLOBAL),
        ("UTMALDG.2D", OpcodeClass.ASYNC_COPY, MemorySpace.GLOBAL),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", OpcodeClass.MBARRIER, MemorySpace.SHARED),
        ("USYNCS.ARRIVE.TRANS64.ACT0", OpcodeClass.MBARRIER, MemorySpace.SHARED),
        ("BAR.SYNC.DEFER_BLOCKING", OpcodeClass.BARRIER, None),
        ("UCGABAR_WAIT", OpcodeClass.CLUSTER_BARRIER, None),
        ("MEMBAR.SC.GPU", OpcodeClass.MEMORY_BARRIER, None),
        ("LDGDEPBAR", OpcodeClass.DEPENDENCY_BARRIER, None),
        ("IMAD.MOV.U32", OpcodeClass.MOVE, None),
        ("IMAD.WIDE.U32", OpcodeClass.INTEGER_MULTIPLY, None),
        ("IMAD.IADD", OpcodeClass.INTEGER, None),
        ("BRX", OpcodeClass.INDIRECT_BRANCH, None),
        ("RET.REL.NODEC", OpcodeClass.RETURN, None),
    ],
)
def test_classes(mnemonic: str, opclass: OpcodeClass, space: MemorySpace | None) -> None:
    info = opcode_info("sm_90", mnemonic)
    assert info.known
    assert (info.opclass, info.space) == (opclass, space)


@pytest.mark.parametrize(
    ("mnemonic", "variable", "fixed"),
    [
        (
            "DFMA",
            ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_101", "sm_103", "sm_110", "sm_120"],
            ["sm_90", "sm_90a", "sm_100", "sm_107"],
        ),
        ("HMMA.884.F32.F32.STEP0", ["sm_70", "sm_75"], ["sm_80", "sm_90", "sm_120"]),
        ("IMMA.16816.S8.S8", ["sm_75", "sm_103", "sm_107"], ["sm_80", "sm_100"]),
        ("R2UR", ["sm_75", "sm_89"], ["sm_90", "sm_100"]),
        ("BREV", ["sm_70", "sm_90", "sm_100"], []),
        ("LDCU", ["sm_100", "sm_120"], []),
        ("ULDC", [], ["sm_75", "sm_90"]),
        ("MUFU.RCP", ["sm_70", "sm_121"], []),
        ("FFMA", [], ["sm_70", "sm_121"]),
    ],
)
def test_latency_by_architecture(mnemonic: str, variable: list[str], fixed: list[str]) -> None:
    assert all(opcode_info(arch, mnemonic).variable_latency for arch in variable)
    assert not any(opcode_info(arch, mnemonic).variable_latency for arch in fixed)


def test_pipes_and_queues() -> None:
    assert opcode_info("sm_80", "HFMA2").pipe is Pipe.FP16
    assert opcode_info("sm_86", "HFMA2").pipe is Pipe.FMA
    assert opcode_info("sm_90", "HFMA2.MMA").pipe is Pipe.FP16
    assert opcode_info("sm_86", "LDS").queue is InOrderQueue.MIO
    assert opcode_info("sm_86", "SHFL.IDX").queue is InOrderQueue.MIO
    assert opcode_info("sm_86", "TLD4").queue is InOrderQueue.TEX
    assert opcode_info("sm_86", "LDG.E").queue is None


def test_one_value_per_mnemonic() -> None:
    assert opcode_info("sm_86", "LDG.E.64") is opcode_info("sm_86", "LDG.E.64")


@pytest.mark.parametrize("mnemonic", ["FROBNICATE.64", "", ".", "ldg"])
def test_unknown_opcodes_are_conservative(mnemonic: str) -> None:
    info = opcode_info("sm_86", mnemonic)
    assert info is UNKNOWN_OPCODE
    assert info.variable_latency
    assert not info.known
