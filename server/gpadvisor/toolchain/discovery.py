# SPDX-License-Identifier: Apache-2.0
"""Finding nvdisasm, cuobjdump and nvcc: setting, toolkit, wheel, Triton; and what each copy can do."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError, ToolNotFoundError
from gpadvisor.machine.code import read_as
from gpadvisor.sandbox.tools import run_tool

_log = logging.getLogger(__name__)

_QUESTION_SECONDS: Final = 20.0
_VERSION: Final = re.compile(r"\bV(\d+)\.(\d+)\.(\d+)")
_SM: Final = re.compile(r"'(?:SM|sm_)(\d+[af]?)'")
_ABI_CUDA_13: Final = 8
# The first nvdisasm that reads the newer ELF layout.
_ABI_CUDA_13_SINCE: Final = (12, 8, 0)


@dataclass(frozen=True, slots=True)
class Tool:
    """One copy of an external tool."""

    path: Path
    name: str  # "nvdisasm"
    version: tuple[int, int, int]
    origin: str  # where it was found, for messages: "setting", "toolkit", "wheel", "triton"
    architectures: frozenset[str]  # "80", "90a"; empty when it does not tell
    prints_json: bool  # nvdisasm from CUDA 12 on

    def __str__(self) -> str:
        """The name and version, as reports show them."""
        return f"{self.name} {'.'.join(map(str, self.version))}"

    def knows(self, arch: str, abi: int | None = None) -> bool:
        """Whether it can read code of an architecture in an ELF layout."""
        if abi is not None and abi >= _ABI_CUDA_13 and self.version < _ABI_CUDA_13_SINCE:
            return False
        number = _number(arch)
        return not self.architectures or not self.architectures.isdisjoint((number, number.rstrip("af")))


def find_tools(name: str, *, explicit: Path | None = None) -> tuple[Tool, ...]:
    """Every working copy of a tool, in the order of preference.

    Raises:
        ToolNotFoundError: the copy that a setting names does not work.
    """
    tools: list[Tool] = []
    paths: set[Path] = set()
    for path, origin in _candidates(name, explicit):
        real = path.resolve()
        if real in paths:
            continue
        paths.add(real)
        tool = _examine(path, name, origin)
        if tool is not None:
            tools.append(tool)
        elif origin == "setting":
            raise ToolNotFoundError(
                f"{path}, which the settings name as {name}, is no working {name}; "
                "correct or remove the setting"
            )
    return tuple(tools)


def disassemblers(arch: str, abi: int | None, *, explicit: Path | None = None) -> tuple[Tool, ...]:
    """The copies of nvdisasm that know an architecture and an ELF layout, best first.

    Where it may be read as another one, copies that know that come behind.

    Raises:
        ToolNotFoundError: there is none; the message names what to install.
    """
    tools = find_tools("nvdisasm", explicit=explicit)
    fitting = [tool for tool in tools if tool.knows(arch, abi)]
    if other_arch := read_as(arch):
        fitting += [tool for tool in tools if tool not in fitting and tool.knows(other_arch, abi)]
        fitting.sort(key=lambda tool: tool.origin != "setting")
    if not fitting:
        raise ToolNotFoundError(_missing("nvdisasm", arch, tools))
    if abi is not None and abi >= _ABI_CUDA_13:
        # The first releases that know this layout crash on some cubins.
        fitting.sort(key=lambda tool: (tool.origin != "setting", tool.version < (13, 0, 0)))
    return tuple(fitting)


def _missing(name: str, arch: str, tools: Sequence[Tool]) -> str:
    """Why no copy fits, and what to install."""
    have = ", ".join(f"{tool} ({tool.origin})" for tool in tools)
    reason = f"{have} cannot read this architecture or ELF layout" if have else f"no copy of {name} is here"
    verb = "update" if any(tool.origin == "wheel" for tool in tools) else "install"
    return f"{name} for {arch} was not found: {reason}; {verb} the package nvidia-cuda-nvdisasm"


def _number(arch: str) -> str:
    """The architecture as the tools' own lists write it: "90a" for "sm_90a"."""
    return arch.removeprefix("sm_")


def _candidates(name: str, explicit: Path | None) -> Iterator[tuple[Path, str]]:
    """Paths where a copy may lie; those of a setting even when nothing is there."""
    setting = os.environ.get(f"GPADVISOR_{name.upper()}")
    if explicit is not None:
        yield explicit, "setting"
    if setting:
        yield Path(setting), "setting"
    places = [*((folder, "toolkit") for folder in toolkit_folders()), *_package_folders()]
    for folder, origin in places:
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            yield path, origin


def toolkit_folders() -> Iterator[Path]:
    """Folders of programs of installed CUDA toolkits, the user's choice first."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin"
    for tool in ("nvcc", "nvdisasm", "cuobjdump"):
        path = shutil.which(tool)
        if path is not None:
            yield Path(path).parent
    yield Path("/usr/local/cuda/bin")
    yield from sorted(Path("/usr/local").glob("cuda-*/bin"), reverse=True)
    yield from (Path("/opt/cuda/bin"), Path("/usr/lib/nvidia-cuda-toolkit/bin"))


def _package_folders() -> Iterator[tuple[Path, str]]:
    """Folders of programs inside installed Python packages."""
    yield Path(sys.prefix) / "bin", "wheel"
    for root in package_roots("nvidia"):
        for folder in sorted(root.glob("*/bin"), reverse=True):
            yield folder, "wheel"
    for root in package_roots("triton"):
        yield root / "backends" / "nvidia" / "bin", "triton"


@functools.cache
def machine_arch() -> str | None:
    """The architecture of this machine's first GPU, by nvidia-smi; None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None or not Path("/dev/nvidiactl").exists():
        return None
    try:
        output = run_tool(
            [program, "--query-gpu=compute_cap", "--format=csv,noheader"], timeout_seconds=_QUESTION_SECONDS
        )
    except ToolError as error:
        _log.info("%s: %s", program, error)
        return None
    match = re.match(rb"(\d+)\.(\d)\s", output.stdout)
    return None if match is None else f"sm_{match[1].decode()}{match[2].decode()}"


def package_roots(package: str) -> tuple[Path, ...]:
    """Where a top-level package lies, without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ()
    if spec is None or spec.submodule_search_locations is None:
        return ()
    return tuple(Path(place) for place in spec.submodule_search_locations)


def _examine(path: Path, name: str, origin: str) -> Tool | None:
    """The tool at a path, or None when it does not answer like one."""
    try:
        status = path.stat()
    except OSError:
        return None
    answer = _ask(path, status.st_mtime_ns, status.st_size)
    if answer is None:
        _log.info("%s does not answer --version and is ignored", path)
        return None
    version, architectures, prints_json = answer
    return Tool(
        path=path,
        name=name,
        version=version,
        origin=origin,
        architectures=architectures,
        prints_json=prints_json,
    )


@functools.cache
def _ask(path: Path, _mtime_ns: int, _size: int) -> tuple[tuple[int, int, int], frozenset[str], bool] | None:
    """Version, architectures and abilities that a program states; asked once per content."""
    texts = []
    for option in ("--version", "--help"):
        try:
            texts.append(
                run_tool([path, option], timeout_seconds=_QUESTION_SECONDS).stdout.decode("utf-8", "replace")
            )
        except ToolError as error:
            _log.info("%s %s: %s", path, option, error)
            return None
    match = _VERSION.search(texts[0])
    if match is None:
        return None
    version = (int(match[1]), int(match[2]), int(match[3]))
    return version, frozenset(_SM.findall(texts[1])), "-json" in texts[1]
