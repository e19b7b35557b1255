# SPDX-License-Identifier: Apache-2.0
"""Our kernels on the host: both versions against the reference in their folder, in two orders of threads."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.kept import FOLDER as KEPT
from tests.kernels import FOLDER, Which

SHIM = Path(__file__).resolve().parent
ORDERS: tuple[Literal["ascending", "descending"], ...] = ("ascending", "descending")

_FLAGS = ("-std=c++20", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing")
_FOLDERS = ("-I", SHIM, "-I", FOLDER)
_BEGIN = """
#include "reference.h"
#include "cuda_pipeline_primitives.h"
#include "mma.h"
"""
_DRIVER = """
#include "begin.h"

#define {entry} before_{entry}
namespace before {{
#include "{folder}/before.cu"
}}
#undef {entry}
#define {entry} after_{entry}
namespace after {{
#include "{folder}/after.cu"
}}
#undef {entry}

struct Before {{
    static constexpr bool kIsBefore = true;
    template <class... Arguments>
    static void launch(dim3 grid, dim3 block, Arguments... arguments) {{
        emulation::launch(grid, block, [&] {{ before::before_{entry}(arguments...); }});
    }}
}};

struct After {{
    static constexpr bool kIsBefore = false;
    template <class... Arguments>
    static void launch(dim3 grid, dim3 block, Arguments... arguments) {{
        emulation::launch(grid, block, [&] {{ after::after_{entry}(arguments...); }});
    }}
}};

#include "{folder}/reference.hpp"

int main(int, char** words) {{
    emulation::descending = strcmp(words[2], "descending") == 0;
    strcmp(words[1], "before") == 0 ? reference<Before>() : reference<After>();
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One output of a kernel beside what the reference says."""

    output: str
    elements: int
    relative: float  # tolerance
    absolute: float  # tolerance, added to it
    worst: float  # largest difference, in units of what is allowed
    at: int  # element where that is
    got: float
    expected: float
    varied: bool  # whether the expected values differ among themselves: constants would prove nothing

    @property
    def agrees(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.elements > 0 and self.worst <= 1.0


class EmulationError(Exception):
    """A kernel or its reference does not compile on the host, or does not run to its end."""


def compiler() -> str | None:
    """The host's C++ compiler."""
    return shutil.which("g++") or shutil.which("c++")


@functools.cache
def _begin(tool: str) -> Path:
    """A folder with what every program begins with, compiled once: two thirds of a short one's time."""
    header = Path(tempfile.mkdtemp(dir=os.environ.get(KEPT)), "begin.h")
    header.write_text(_BEGIN, encoding="utf-8")
    compiled = header.with_suffix(".h.gch")
    subprocess.run([tool, *_FLAGS, *_FOLDERS, "-x", "c++-header", "-o", compiled, header], check=True)
    return header.parent


@functools.cache
def build(folder: Path, entry: str, output: Path) -> Path:
    """Compile both versions of a kernel with their reference to one program."""
    tool = compiler()
    assert tool is not None, "no C++ compiler"
    source = output / f"{entry}.cpp"
    source.write_text(_DRIVER.format(entry=entry, folder=folder.as_posix()), encoding="utf-8")
    program = output / entry
    done = subprocess.run(
        [tool, *_FLAGS, "-I", _begin(tool), *_FOLDERS, "-o", program, source],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode != 0:
        raise EmulationError(f"{folder.name} does not compile on the host: {done.stderr[:4000]}")
    return program


def run(program: Path, which: Which, order: str) -> list[Comparison]:
    """Run one version and compare its outputs."""
    done = subprocess.run([program, which, order], capture_output=True, text=True, timeout=120)
    if done.returncode == -11:
        raise EmulationError(f"{program.name} {which}: access behind the end of an array")
    if done.returncode != 0:
        raise EmulationError(
            f"{program.name} {which}: status {done.returncode}: {done.stderr.strip()[:2000]}"
        )
    return [Comparison(**json.loads(line)) for line in done.stdout.splitlines()]
