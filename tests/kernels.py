# SPDX-License-Identifier: Apache-2.0
"""Our own kernels under ``fixtures/kernels``: what they are, compiled and disassembled for tests."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.kept import kept

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "fixtures" / "kernels"

COMPILED_AS = "/src"
"""Root of the paths in the line tables: the same on every machine, as in a report from elsewhere."""

Which = Literal["before", "after"]
Line = tuple[str, str]  # opcode with modifiers, operands

DEFAULT_ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """How a planted pattern shows in the machine code: bounds on matching instructions."""

    opcode: str  # regular expression on the whole mnemonic
    operands: str | None  # regular expression that must be found in the operands, too
    what: str
    before_min: int | None
    before_max: int | None
    after_min: int | None
    after_max: int | None

    def count(self, lines: list[Line]) -> int:
        """How many instructions show this sign."""
        return sum(
            1
            for opcode, operands in lines
            if re.search(self.opcode, opcode)
            and (self.operands is None or re.search(self.operands, operands))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The launch a kernel is meant for."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One folder of ``fixtures/kernels``."""

    name: str  # of the folder
    title: str
    entry: str  # name of the __global__ function
    plants: str  # code of the optimizer that should find it; in a trap, that should not
    trap: bool  # whether following the advice gains nothing: none, or a low expected value, is right
    quiet: tuple[str, ...]  # codes that the machine code alone must not bring up
    checked: Literal["host", "gpu only"]  # where before and after are shown to compute the same
    static: bool  # whether the machine code alone shows it
    wording: tuple[str, str] | None  # a word the finding has and one it lacks, where patterns share a code
    why: str
    needs_headers: bool  # CUDA's own device headers, which a bare NVRTC wheel has not
    architectures: tuple[str, ...]
    launch: Launch
    launch_after: Launch
    trip_counts: dict[str, int]  # by the beginning of the loop's source line
    markers: dict[str, str]  # "def" and "use" to the marker that stands on the line in before.cu
    signs: tuple[Sign, ...]

    def source(self, which: Which = "before") -> Path:
        """The CUDA source."""
        return FOLDER / self.name / f"{which}.cu"

    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """Name and text of the headers in the kernel's folder."""
        files = sorted((FOLDER / self.name).glob("*.cuh"))
        return tuple((path.name, path.read_text(encoding="utf-8")) for path in files)

    def planted_line(self, end: Literal["def", "use"]) -> int:
        """The 1-based line of before.cu that carries a marker."""
        lines = self.source().read_text(encoding="utf-8").splitlines()
        return next(i for i, line in enumerate(lines, 1) if f"// {self.markers[end]}" in line)


def _launch(table: dict[str, Any]) -> Launch:
    x, y, z = table["grid"]
    bx, by, bz = table["block"]
    return Launch(grid=(x, y, z), block=(bx, by, bz))


def _sign(table: dict[str, Any]) -> Sign:
    bounds = {key: table.get(key) for key in ("before_min", "before_max", "after_min", "after_max")}
    return Sign(opcode=table["opcode"], operands=table.get("operands"), what=table["what"], **bounds)


def read_kernel(folder: Path) -> Kernel:
    """Read one kernel.toml."""
    table = tomllib.loads((folder / "kernel.toml").read_text(encoding="utf-8"))
    wording = table.get("wording")
    return Kernel(
        name=folder.name,
        title=table["title"],
        entry=table["kernel"],
        plants=table["plants"],
        trap=table.get("trap", False),
        quiet=tuple(table.get("quiet", ())),
        checked=table.get("checked", "host"),
        static=table.get("static", False),
        wording=(wording["has"], wording["lacks"]) if wording else None,
        why=table["why"],
        needs_headers=table.get("headers", False),
        architectures=tuple(table.get("architectures", DEFAULT_ARCHITECTURES)),
        launch=_launch(table["launch"]),
        launch_after=_launch(table.get("launch_after", table["launch"])),
        trip_counts=dict(table.get("trip_counts", {})),
        markers=dict(table["planted"]),
        signs=tuple(_sign(sign) for sign in table["signs"]),
    )


KERNELS: dict[str, Kernel] = {
    path.parent.name: read_kernel(path.parent) for path in sorted(FOLDER.glob("*/kernel.toml"))
}


def nvrtc_available() -> bool:
    """Whether NVRTC can be called in this process."""
    try:
        return importlib.util.find_spec("cuda.bindings.nvrtc") is not None
    except ModuleNotFoundError:
        return False


def wheel_file(*parts: str) -> Path | None:
    """A file that one of the CUDA wheels installed, such as ``wheel_file("bin", "nvdisasm")``."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place, "cu13", *parts)
        if path.exists():
            return path
    return None


def nvdisasm_path() -> Path | None:
    """nvdisasm, from its wheel first so that every machine sees the same listing."""
    found = shutil.which("nvdisasm")
    return wheel_file("bin", "nvdisasm") or (Path(found) if found else None)


@functools.cache
def compile_text(
    text: str,
    name: str,
    arch: str = "sm_80",
    *options: str,
    headers: tuple[tuple[str, str], ...] = (),
    lines: bool = True,
) -> bytes:
    """Compile CUDA text by NVRTC, in this process; once in a run."""
    asked = ("nvrtc", name, arch, *options, repr(headers), str(lines))
    return kept(
        asked,
        text.encode(),
        lambda: _compiled(text, name, arch, *options, headers=headers, lines=lines),
        of_tool=True,
    )


def _compiled(
    text: str, name: str, arch: str, *options: str, headers: tuple[tuple[str, str], ...], lines: bool
) -> bytes:
    from cuda.bindings import nvrtc

    names = [header.encode() for header, _ in headers]
    texts = [content.encode() for _, content in headers]
    error, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), len(headers), texts, names)
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, error
    try:
        flags = [
            f"--gpu-architecture={arch}".encode(),
            *([b"-lineinfo"] if lines else []),
            *(o.encode() for o in options),
        ]
        (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size  # filled in place, as the bindings have it
            nvrtc.nvrtcGetProgramLog(program, log)
            raise AssertionError(f"{name} for {arch}: {log.decode(errors='replace')}")
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin: bytes = b" " * size  # filled in place, as the bindings have it
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def compile_kernel(name: str, which: Which = "before", arch: str = "sm_80", *, lines: bool = True) -> bytes:
    """The cubin of one of our kernels; its line table names ``/src/fixtures/kernels/NAME/WHICH.cu``."""
    kernel = KERNELS[name]
    path = kernel.source(which)
    options: list[str] = []
    if kernel.needs_headers:
        headers = wheel_file("include")
        assert headers is not None, "the nvidia-cuda-runtime wheel brings the headers"
        options.append(f"--include-path={headers}")
    name_in_lines = f"{COMPILED_AS}/{path.relative_to(ROOT).as_posix()}"
    text = path.read_text(encoding="utf-8")
    return compile_text(text, name_in_lines, arch, *options, headers=kernel.own_headers(), lines=lines)


def nvdisasm_json(cubin: bytes) -> str:
    """What nvdisasm prints of a cubin; it is asked once in a run."""
    tool = nvdisasm_path()
    assert tool is not None, "nvdisasm is missing"

    def ask() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "code.cubin")
            path.write_bytes(cubin)
            command = [os.fspath(tool), "-json", os.fspath(path)]
            return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout

    return kept(("nvdisasm -json",), cubin, ask, of_tool=True).decode()


@functools.cache
def disassemble(cubin: bytes) -> dict[str, list[Line]]:
    """Machine code by function, straight from nvdisasm: independent of the package's own reader."""
    functions = json.loads(nvdisasm_json(cubin))[1]
    return {
        function["function-name"]: [
            (row["opcode"], row.get("operands", "")) for row in function["sass-instructions"]
        ]
        for function in functions
    }


def kernel_lines(name: str, which: Which = "before", arch: str = "sm_80") -> list[Line]:
    """Every instruction of a kernel's section, its device functions included."""
    functions = disassemble(compile_kernel(name, which, arch))
    return [line for lines in functions.values() for line in lines]
