# SPDX-License-Identifier: Apache-2.0
"""Listings by every form, and what happens when nvdisasm refuses, crashes, hangs or leaves something out."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cubin_parts import Part, Sym, code, elf
from tests.kernels import compile_text, nvdisasm_path
from tests.tools import tool

from gpadvisor.cubin import read_cubin, stamped
from gpadvisor.errors import CancelledError, CubinError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.sass.listing import Listing
from gpadvisor.toolchain import disassembly, discovery
from gpadvisor.toolchain.disassembly import disassemble

real = [pytest.mark.toolkit, pytest.mark.nvdisasm]

SOURCE = """
__device__ __noinline__ float f(float x, int n) { for (int i = 0; i < n; i++) x = sinf(x); return x; }
extern "C" __global__ void small(int *a) { a[threadIdx.x] += 1; }
extern "C" __global__ void loops(float *a, int n) {
    for (int i = 0; i < n; i++) if (a[i] > 2.0f) a[i] = f(a[i], n) / a[n];
}
extern "C" __global__ void twice(double *a, int n) { while (n--) a[n] = a[n] / a[threadIdx.x]; }
"""


def cubin_of(arch: str = "sm_86") -> bytes:
    return compile_text(SOURCE, "/src/three.cu", arch)


def loaded(data: bytes, base: int = 0x7F12_3400_0000) -> bytes:
    """The image as a driver stores it: device addresses in the symbols of kernels."""
    out = bytearray(data)
    addresses = {s.index: base + 0x10000 * s.index for s in read_cubin(data).sections}
    entries = {
        s.elf_index: addresses[c.index] for c in read_cubin(data).sections for s in c.symbols if s.is_entry
    }
    table = struct.unpack_from("<Q", out, 40)[0]
    count = struct.unpack_from("<H", out, 60)[0]
    symbols = next(
        row[4] for i in range(count) if (row := struct.unpack_from("<IIQQQQ", out, table + 64 * i))[1] == 2
    )
    for index, value in entries.items():
        struct.pack_into("<Q", out, symbols + 24 * index + 8, value)
    return bytes(out)


def plain(listing: Listing) -> dict[str, list[tuple[str | None, str, str]]]:
    """Lines without spaces and commas; forms differ in how they name what a call goes to and returns from."""
    return {
        name: [
            (line.predicate, line.opcode, re.sub(r"[ ,]", "", line.operands))
            if not line.opcode.startswith(("CALL", "RET"))
            else (line.predicate, line.opcode, "")
            for line in lines
        ]
        for name, lines in listing.items()
    }


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> object:
    """Look for tools in given folders only."""
    for name in ("NVDISASM", "CUOBJDUMP"):
        monkeypatch.delenv(f"GPADVISOR_{name}", raising=False)

    def set_folders(*folders: Path) -> None:
        monkeypatch.setattr(discovery, "toolkit_folders", lambda: iter(folders))
        monkeypatch.setattr(discovery, "_package_folders", lambda: iter(()))

    set_folders()
    return set_folders


def passing_on(condition: str, otherwise: str) -> str:
    """A script that misbehaves under a condition and else is the real nvdisasm."""
    return f"""
if {condition}:
    {otherwise}
os.execv({os.fspath(nvdisasm_path() or "")!r}, ["nvdisasm", *sys.argv[1:]])
"""


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_120"])
def test_every_instruction_of_every_section(arch: str) -> None:
    data = cubin_of(arch)
    result = disassemble(data)
    counts = {s.name: s.instruction_count for s in read_cubin(data).sections}
    assert {name: len(lines) for name, lines in result.listing.items()} == counts
    assert result.form == "json"
    assert result.tool.startswith("nvdisasm ")
    assert result.problems == ()


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_loaded_images_go_raw_and_say_the_same(arch: str) -> None:
    data = cubin_of(arch)
    result = disassemble(loaded(data))
    assert result.form == "raw"
    assert result.problems == ()
    assert plain(result.listing) == plain(disassemble(data).listing)
    part = disassemble(loaded(data), sections={"twice", "small"})
    assert plain(part.listing) == {
        name: lines for name, lines in plain(result.listing).items() if name != "loops"
    }


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_a_part_of_a_large_cubin(monkeypatch: pytest.MonkeyPatch) -> None:
    data = cubin_of()
    whole = disassemble(data).listing
    commands: list[list[str]] = []
    run = disassembly.run_tool

    def record(command, **limits):  # type: ignore[no-untyped-def]  # passes everything on
        commands.append([str(word) for word in command])
        return run(command, **limits)

    monkeypatch.setattr(disassembly, "run_tool", record)
    assert disassemble(data, sections={"small"}).listing == {"small": whole["small"]}
    assert "-fun" not in commands[-1]
    monkeypatch.setattr(disassembly, "_PART_PAYS_INSTRUCTIONS", 10)
    assert disassemble(data, sections={"small"}).listing == {"small": whole["small"]}
    assert "-fun" in commands[-1]
    both = disassemble(data, sections={"small", "twice"}).listing
    assert both == {name: whole[name] for name in both}


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize(
    ("condition", "otherwise", "form", "words"),
    [
        ("'-json' in sys.argv", "os.kill(os.getpid(), signal.SIGSEGV)", "text", "SIGSEGV"),
        ("'-json' in sys.argv", "time.sleep(600)", "text", "did not end"),
        ("'-json' in sys.argv", "print('[{}, [{'); sys.exit()", "text", "damaged"),
        ("'-json' in sys.argv", "print('[{}, []]'); sys.exit()", "text", "were not printed"),
        ("'-b' not in sys.argv", "sys.exit('nvdisasm error : no')", "raw", "no"),
    ],
)
def test_simpler_forms_take_over(
    only, tmp_path: Path, condition: str, otherwise: str, form: str, words: str
) -> None:
    only(tmp_path)
    tool(tmp_path / "nvdisasm", passing_on(condition, otherwise))
    limit = 24.0 if "sleep" in otherwise else 120.0  # of which the hang takes half
    result = disassemble(cubin_of(), timeout_seconds=limit)
    assert result.form == form
    assert {p.code for p in result.problems} == {ProblemCode.TOOL_FALLBACK}
    assert words in result.problems[0].message
    only(Path(os.fspath(nvdisasm_path() or "")).parent)
    assert plain(result.listing) == plain(disassemble(cubin_of()).listing)


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_another_copy_is_tried_before_another_form(only, tmp_path: Path) -> None:
    only(tmp_path / "bad", tmp_path / "good")
    tool(tmp_path / "bad" / "nvdisasm", passing_on("'-json' in sys.argv", "sys.exit(1)"), version="13.0.1")
    tool(tmp_path / "good" / "nvdisasm", passing_on("False", "pass"))
    result = disassemble(cubin_of())
    assert (result.tool, result.form) == ("nvdisasm 13.5.37", "json")
    assert len(result.problems) == 1


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_a_copy_without_the_structured_form_is_no_problem(only, tmp_path: Path) -> None:
    only(tmp_path)
    tool(
        tmp_path / "nvdisasm", passing_on("'-json' in sys.argv", "sys.exit(1)"), version="13.0.1", json=False
    )
    result = disassemble(cubin_of())
    assert (result.form, result.problems) == ("text", ())


CUBIN = elf([Part(".text.k", code(6)), Part(".text.l", code(2))], [
    Sym("k", ".text.k", 0, 96), Sym("$k$f", ".text.k", 64, 32, other=0), Sym("l", ".text.l", 0, 32),
])  # fmt: skip


def function(name: str, start: int, *operands: str) -> dict[str, object]:
    lines = [{"opcode": "LDG.E", "operands": text} for text in operands]
    return {"function-name": name, "start": start, "length": 16 * len(lines), "sass-instructions": lines}


def test_helpers_and_commas_of_nvdisasm_12(only, tmp_path: Path) -> None:
    only(tmp_path)
    functions = [
        function("k", 0, "R0[R2.64]", "R0,[R2.64]", "R4,c[0x0][0x28]", "URZ[UR4]"),
        function("$k$f", 64, "P0[R2]", "R0,desc[UR4][R2.64]"),
        function("l", 0, "R0[R2.64]", "R1"),
    ]
    tool(tmp_path / "nvdisasm", f"print({json.dumps([{}, functions])!r})", version="12.8.55")
    result = disassemble(CUBIN)
    assert result.form == "json"
    assert [line.operands for line in result.listing["k"]] == [
        "R0,[R2.64]",
        "R0,[R2.64]",
        "R4,c[0x0][0x28]",
        "URZ,[UR4]",
        "P0,[R2]",
        "R0,desc[UR4][R2.64]",
    ]
    assert set(result.listing) == {"k", "l"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("sys.exit('nvdisasm fatal   : nothing works')", ToolFailedError),
        ("time.sleep(600)", ToolTimeoutError),
        ("os.write(1, b'x' * (1 << 26))", ToolFailedError),
    ],
)
def test_when_nothing_works(only, tmp_path: Path, body: str, error: type[Exception]) -> None:
    only(tmp_path)
    tool(tmp_path / "nvdisasm", body)
    with pytest.raises(error, match="no disassembler could read this cubin") as caught:
        disassemble(CUBIN, timeout_seconds=6 if "sleep" in body else 120)
    assert "\n" not in str(caught.value)


def test_cancelling_ends_all_attempts(only, tmp_path: Path) -> None:
    only(tmp_path)
    tool(tmp_path / "nvdisasm", "time.sleep(600)")
    with pytest.raises(CancelledError):
        disassemble(CUBIN, cancelled=lambda: True)


def test_requests_that_cannot_be_met(only) -> None:
    with pytest.raises(CubinError, match="no code section nothing"):
        disassemble(CUBIN, sections={"nothing"})
    with pytest.raises(CubinError, match="empty"):
        disassemble(b"")
    with pytest.raises(ToolNotFoundError, match="nvidia-cuda-nvdisasm"):
        disassemble(CUBIN)


@pytest.mark.reports
@pytest.mark.nvdisasm
def test_cubins_inside_real_reports() -> None:
    seen = 0
    for path in sorted(Path(os.environ["GPADVISOR_REPORTS"]).glob("*.ncu-rep")):
        data = path.read_bytes()
        for match in re.finditer(rb"\x7fELF", data):
            image = data[match.start() :]
            # The image runs to the furthest of its section headers, which stand at its end.
            table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
            cubin = read_cubin(image[: table + 64 * count + 56 * struct.unpack_from("<H", image, 56)[0]])
            result = disassemble(image)
            assert result.problems == ()
            assert result.form == ("raw" if cubin.is_loaded else "json")
            assert {name: len(lines) for name, lines in result.listing.items()} == {
                section.name: section.instruction_count for section in cubin.sections
            }
            seen += 1
    assert seen


@pytest.mark.toolkit
@pytest.mark.nvdisasm
class TestVolta:
    """Code for sm_70 and a disassembler that has dropped it: real code of sm_75, stamped anew."""

    PLAIN = """
extern "C" __global__ void plain(float *a) { a[threadIdx.x] = a[threadIdx.x] * 2.0f + 1.0f; }
"""
    MATRIX = """
extern "C" __global__ void matrix(unsigned *a) {
    unsigned x;
    asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(a[0]));
    a[threadIdx.x] = x;
}
"""

    @pytest.fixture(autouse=True)
    def only_the_wheel(self, only: Callable[..., None]) -> None:
        path = nvdisasm_path()
        assert path is not None
        only(path.parent)
        if discovery.find_tools("nvdisasm")[0].knows("sm_70"):
            pytest.skip("nvdisasm: this one knows sm_70 itself")

    @pytest.mark.parametrize("load", [False, True])
    def test_it_is_read_as_sm_75(self, load: bool) -> None:
        turing = compile_text(self.PLAIN, "/src/plain.cu", "sm_75")
        turing = loaded(turing) if load else turing
        volta = stamped(turing, 70)
        assert read_cubin(volta).arch == "sm_70"
        found = disassemble(volta)
        assert (found.listing, found.form, found.problems) == (
            disassemble(turing).listing,
            "raw" if load else "json",
            (),
        )

    def test_what_sm_70_does_not_have_is_told(self) -> None:
        (problem,) = disassemble(stamped(compile_text(self.MATRIX, "/src/m.cu", "sm_75"), 70)).problems
        assert problem.code is ProblemCode.TOOL_FALLBACK
        assert re.search(r"code of sm_70 for sm_75 .* does not have \(.*LDSM", problem.message)
