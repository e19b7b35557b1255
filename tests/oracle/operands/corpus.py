# SPDX-License-Identifier: Apache-2.0
"""Compiling the corpus: our kernels, and device algorithms of CUB from its wheel."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent / "corpus"
FIXTURES = Path(__file__).parents[3] / "fixtures" / "kernels"
ARCHITECTURES = (
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_89",
    "sm_90",
    "sm_90a",
    "sm_100",
    "sm_100a",
    "sm_120",
    "sm_120a",
)
FURTHER = ("sm_87", "sm_88", "sm_103", "sm_107", "sm_110", "sm_121")
"""The others that the pinned compiler knows; nvdisasm prints life ranges for them, too."""
_SUFFIXED_ONLY = (
    "warpgroup",
    "matrix",
    "warp",
)  # the others compile to the same code with and without the suffix


def tool(name: str) -> Path | None:
    """A compiler tool: of the pinned wheels, so that the code is the same everywhere, else of PATH."""
    wheel = Path(sysconfig.get_path("platlib")) / "nvidia" / "cu13" / "bin" / name
    found = str(wheel) if wheel.is_file() else shutil.which(name)
    return Path(found) if found else None


def own_sources() -> tuple[Path, ...]:
    """Our corpus without CUB."""
    return tuple(path for path in sorted(HERE.glob("*.cu")) if not path.name.startswith("cub_"))


def cub_sources() -> tuple[Path, ...]:
    """The corpus files that instantiate CUB."""
    return tuple(sorted(HERE.glob("cub_*.cu")))


def fixture_sources() -> tuple[Path, ...]:
    """The kernels that the project ships as examples."""
    return tuple(sorted(FIXTURES.glob("*/before.cu")))


def sensible(source: Path, arch: str) -> bool:
    """Whether this architecture adds code that the plain one, without its suffix, does not have."""
    return not arch.endswith("a") or source.stem in _SUFFIXED_ONLY


def compile_cubin(source: Path, arch: str, folder: Path) -> Path:
    """The cubin of one source, kept in ``folder``."""
    name = source.stem if source.parent == HERE else source.parent.name
    cubin = folder / f"{name}.{arch}.cubin"
    if cubin.is_file():
        return cubin
    compiler = tool("nvcc")
    if compiler is None:
        raise FileNotFoundError("nvcc")
    cub = compiler.parents[1] / "include" / "cccl"
    include = ["-I", str(cub)] if cub.is_dir() else []
    partial = cubin.with_suffix(".partial")
    command = [
        str(compiler),
        "-std=c++17",
        "-w",
        "-cubin",
        f"-arch={arch}",
        *include,
        "-o",
        str(partial),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name} for {arch}: {done.stderr[-2000:]}")
    return partial.rename(cubin)


def disassembly(cubin: Path, *options: str) -> str:
    """What nvdisasm prints for a cubin."""
    disassembler = tool("nvdisasm")
    if disassembler is None:
        raise FileNotFoundError("nvdisasm")
    command = [str(disassembler), *options, str(cubin)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
