# SPDX-License-Identifier: Apache-2.0
"""The forms of the disassembly agree with each other and with the encoding, on code compiled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.oracle.operands.corpus import HERE, compile_cubin, disassembly, tool

from gpadvisor.machine import code_form
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.sass import SassLine, decode, parse_cuobjdump, parse_hex_text, parse_json
from gpadvisor.sass.branches import printed_target, relative_target
from gpadvisor.sass.control import code_words, guard_fields

pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.nvdisasm,
    pytest.mark.skipif(
        tool("nvcc") is None or tool("nvdisasm") is None, reason="nvcc and nvdisasm are not installed"
    ),
]


@pytest.fixture(
    scope="module", params=[("control", "sm_75"), ("memory", "sm_86"), ("async", "sm_100")], ids="-".join
)
def cubin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    name, arch = request.param
    return compile_cubin(HERE / f"{name}.cu", arch, tmp_path_factory.mktemp("forms")), arch


def _sections(path: Path) -> dict[str, bytes]:
    with path.open("rb") as file:
        return {s.name[6:]: s.data() for s in ELFFile(file).iter_sections() if s.name.startswith(".text.")}


def _essence(instruction: Instruction) -> tuple[object, ...]:
    """All but the operand text, which names data symbols, and descriptors of sm_80 to sm_89, differently."""
    i = instruction
    return (
        i.pc,
        i.opcode,
        i.modifiers,
        i.guard,
        i.defs,
        i.uses,
        i.info,
        i.control,
        i.target,
        i.partial_wait,
        i.width_bytes,
    )


def _same_but_for_names(first: Instruction, second: Instruction) -> bool:
    return first.operands == second.operands or "@" in first.operands or "desc" in first.operands


def test_json_and_text_give_the_same_instructions(cubin: tuple[Path, str]) -> None:
    path, arch = cubin
    from_json, from_text = parse_json(disassembly(path, "-json")), parse_hex_text(disassembly(path, "-hex"))
    compared = 0
    for name, code in _sections(path).items():
        first, problems = decode(arch, code, from_json[name])
        second, _ = decode(arch, code, from_text[name])
        assert not problems
        for one, other in zip(first, second, strict=True):
            assert _essence(one) == _essence(other)
            assert one.callee == other.callee
            assert _same_but_for_names(one, other), (one.text, other.text)
            compared += 1
    assert compared > 400


def test_cuobjdump_gives_the_same_instructions(cubin: tuple[Path, str]) -> None:
    path, arch = cubin
    dumper = tool("cuobjdump")
    if dumper is None:
        pytest.skip("cuobjdump is not installed")
    text = subprocess.run(
        [str(dumper), "-sass", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PATH": str(dumper.parent)},
    ).stdout
    listing, from_json = parse_cuobjdump(text), parse_json(disassembly(path, "-json"))
    for name, code in _sections(path).items():
        first, second = decode(arch, code, from_json[name])[0], decode(arch, code, listing[name])[0]
        assert [_essence(i) for i in first] == [_essence(i) for i in second]


def test_guards_and_targets_are_what_the_encoding_says(cubin: tuple[Path, str]) -> None:
    path, arch = cubin
    form = code_form(arch)
    listing = parse_json(disassembly(path, "-json"))
    guards = targets = 0
    for name, code in _sections(path).items():
        words = code_words(code)
        for index, (line, guard) in enumerate(zip(listing[name], guard_fields(words).tolist(), strict=True)):
            assert _guard(line) == guard
            guards += guard != 7
            last = line.operands.rpartition(",")[2]
            if line.opcode.split(".")[0] in ("BRA", "BSSY") and printed_target(last) is not None:
                low, high = words[index].tolist()
                short = line.opcode.startswith("BSSY")
                assert relative_target(form, 16 * index, low, high, short=short) == printed_target(last), line
                targets += 1
    assert guards > 10
    assert targets > 10


def _guard(line: SassLine) -> int:
    if line.predicate is None:
        return 7
    return (7 if line.predicate.endswith("T") else int(line.predicate[-1])) | (
        8 if "!" in line.predicate else 0
    )


def test_calls_inside_a_section_have_a_target(tmp_path: Path) -> None:
    path = compile_cubin(HERE / "control.cu", "sm_90", tmp_path)
    listing = parse_json(disassembly(path, "-json"))
    calls = [
        (instruction, code)
        for name, code in _sections(path).items()
        for instruction in decode("sm_90", code, listing[name])[0]
        if instruction.info.opclass is OpcodeClass.CALL and instruction.callee is not None
    ]
    direct = [(i, code) for i, code in calls if "REL" in i.modifiers]
    assert len(direct) > 5
    assert all(i.target is not None and 0 < i.target < len(code) for i, code in direct)
