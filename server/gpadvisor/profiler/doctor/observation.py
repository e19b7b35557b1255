# SPDX-License-Identifier: Apache-2.0
"""Looks at the machine: files below a root, the environment, and the version of a few programs.

Everything is read, nothing is changed, and nothing that cannot be read is an error.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError
from gpadvisor.profiler.cupti.discovery import find_cupti
from gpadvisor.profiler.doctor.situation import Container, FoundTool, Gpu, Situation
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.toolchain.discovery import package_roots

_MAX_FILE_BYTES: Final = 1 << 16
_MAX_PROCESSES: Final = 20_000
_QUESTION_SECONDS: Final = 20.0
_PROFILERS: Final = frozenset({"ncu", "ncu-ui", "nsys", "nv-nsight-cu-cli", "nvprof", "hpcrun", "cuda-gdb"})
_VERSION: Final = re.compile(r"\b(\d+)\.(\d+)(?:\.(\d+))?")
_DRIVER: Final = re.compile(r"^NVRM version:.*?\b(\d{3,4}\.\d+(?:\.\d+)?)\b", re.MULTILINE)
_SMI_QUERY: Final = ("--query-gpu=index,name,compute_cap,mig.mode.current", "--format=csv,noheader")
_CONTAINERS: Final = (
    ("kubepods", Container.KUBERNETES),
    ("docker", Container.DOCKER),
    ("libpod", Container.PODMAN),
    ("lxc", Container.LXC),
    ("containerd", Container.OTHER),
)

Ask = Callable[[Sequence[str]], str]
"""Runs a program and gives its output; raises a ToolError when it fails."""


def ask(command: Sequence[str]) -> str:
    """What a program prints.

    Raises:
        ToolError: it cannot be started, fails, or takes too long.
    """
    output = run_tool(list(command), timeout_seconds=_QUESTION_SECONDS, memory_bytes=16 << 30)
    return output.stdout.decode("utf-8", "replace")


def installed_cupti() -> FoundTool | None:
    """The CUPTI that the collector would build against, whatever the driver; None without its headers."""
    try:
        cupti = find_cupti(driver=0)
    except ToolError:
        return None
    return FoundTool(path=str(cupti.library or cupti.includes[0]), version=(cupti.major,))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where to look; tests put a recorded machine here."""

    root: Path = Path("/")
    environment: Mapping[str, str]
    find: Callable[[str], str | None] = shutil.which
    ask: Ask = ask
    packages: Callable[[str], tuple[Path, ...]] = package_roots
    cupti: Callable[[], FoundTool | None] = installed_cupti
    system: str
    architecture: str
    user_id: int


def this_machine() -> World:
    """The machine that this process runs on."""
    return World(
        environment=os.environ,
        system=platform.system(),
        architecture=platform.machine(),
        user_id=os.geteuid() if hasattr(os, "geteuid") else -1,
    )


def observe(world: World | None = None) -> Situation:
    """Everything that decides whether profiling works here."""
    world = world or this_machine()
    version = _read(world, "proc/driver/nvidia/version")
    names = _process_names(world)
    gpus, smi_problem = _gpus(world)
    kernel = _read(world, "proc/version").lower()
    return Situation(
        system=world.system,
        architecture=world.architecture,
        driver=_driver(version),
        open_module="Open Kernel Module" in version if version else None,
        device_nodes=_device_nodes(world),
        gpus=gpus,
        smi_problem=smi_problem,
        admin_only=_admin_only(world),
        root=world.user_id == 0,
        capabilities=_capabilities(world),
        user_namespace=_user_namespace(world),
        container=_container(world),
        wsl="microsoft" in kernel,
        tegra=(world.root / "etc/nv_tegra_release").exists(),
        mps=_mps(world, names),
        dcgm=any(name in {"nv-hostengine", "dcgm-exporter", "dcgmi"} for name in names),
        confidential_compute=_confidential(world) if gpus else None,
        other_profiler=_other_profiler(world, names),
        injection=world.environment.get("CUDA_INJECTION64_PATH") or None,
        ncu=_tool(world, _ncu_paths(world), "--version"),
        cupti=world.cupti(),
        c_compiler=_tool(world, _on_path(world, "cc", "gcc", "clang"), "--version"),
        nvcc=_tool(world, [*_on_path(world, "nvcc"), *_glob(world, "usr/local/cuda*/bin/nvcc")], "--version"),
        disassembler=_tool(
            world, [*_on_path(world, "nvdisasm"), *_wheel(world, "*/bin/nvdisasm")], "--version"
        ),
    )


def _read(world: World, path: str) -> str:
    """The beginning of a file; "" where it cannot be read."""
    try:
        with (world.root / path).open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _driver(text: str) -> tuple[int, ...] | None:
    match = _DRIVER.search(text)
    return None if match is None else tuple(int(part) for part in match[1].split("."))


def _admin_only(world: World) -> bool | None:
    match = re.search(
        r"^RmProfilingAdminOnly:\s*(\d+)", _read(world, "proc/driver/nvidia/params"), re.MULTILINE
    )
    return None if match is None else match[1] != "0"


def _capabilities(world: World) -> int:
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]{1,16})$", _read(world, "proc/self/status"), re.MULTILINE)
    return 0 if match is None else int(match[1], 16)


def _user_namespace(world: World) -> bool:
    """Whether user ids here are mapped: the initial namespace maps all of them to themselves."""
    rows = _read(world, "proc/self/uid_map").split()
    return bool(rows) and rows[:3] != ["0", "0", "4294967295"]


def _device_nodes(world: World) -> tuple[str, ...]:
    nodes = [*_glob(world, "dev/nvidia[0-9]*"), *_glob(world, "dev/dxg")]
    return tuple(f"/dev/{Path(path).name}" for path in nodes)


def _gpus(world: World) -> tuple[tuple[Gpu, ...], str | None]:
    smi = next(iter([*_on_path(world, "nvidia-smi"), *_glob(world, "usr/lib/wsl/lib/nvidia-smi")]), None)
    if smi is None:
        return (), "nvidia-smi was not found"
    try:
        text = world.ask([smi, *_SMI_QUERY])
    except ToolError as error:
        return (), str(error)
    return tuple(gpu for line in text.splitlines() if (gpu := _gpu(line)) is not None), None


def _gpu(line: str) -> Gpu | None:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) < 4 or not fields[0].isdigit():
        return None
    match = _VERSION.fullmatch(fields[-2])
    mig = {"Enabled": True, "Disabled": False}.get(fields[-1])
    capability = None if match is None else (int(match[1]), int(match[2]))
    return Gpu(index=int(fields[0]), name=", ".join(fields[1:-2]), capability=capability, mig=mig)


def _confidential(world: World) -> bool | None:
    for smi in _on_path(world, "nvidia-smi"):
        try:
            text = world.ask([smi, "conf-compute", "-f"])
        except ToolError:
            return None
        match = re.search(r"\bCC status:\s*(ON|OFF)\b", text)
        return None if match is None else match[1] == "ON"
    return None


def _container(world: World) -> Container | None:
    environment = world.environment
    if "KUBERNETES_SERVICE_HOST" in environment:
        return Container.KUBERNETES
    if "APPTAINER_NAME" in environment or "SINGULARITY_NAME" in environment:
        return Container.APPTAINER
    if "gvisor" in (_read(world, "proc/version") + _read(world, "proc/sys/kernel/version")).lower():
        return Container.GVISOR
    if (world.root / "run/.containerenv").exists():
        return Container.PODMAN
    if (world.root / ".dockerenv").exists():
        return Container.DOCKER
    text = _read(world, "proc/1/cgroup") + _read(world, "proc/self/mountinfo")[:4096]
    return next((kind for word, kind in _CONTAINERS if word in text), None)


def _process_names(world: World) -> frozenset[str]:
    names = set()
    for number, path in enumerate(_glob(world, "proc/[0-9]*/comm")):
        if number >= _MAX_PROCESSES:
            break
        try:
            names.add(Path(path).read_text(encoding="utf-8", errors="replace").strip())
        except OSError:  # it has ended meanwhile
            continue
    return frozenset(names)


def _mps(world: World, names: frozenset[str]) -> bool:
    if any(name.startswith("nvidia-cuda-mps") for name in names):
        return True
    pipe = world.environment.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")  # noqa: S108 the driver's default
    return (world.root / pipe.lstrip("/") / "control").exists()


def _other_profiler(world: World, names: frozenset[str]) -> str | None:
    running = sorted(names & _PROFILERS)
    if running:
        return f"{running[0]} is running"
    if "NSYS_PROFILING_SESSION_ID" in world.environment:
        return "this process runs inside nsys"
    if "cuda-memcheck" in names or "compute-sanitizer" in names:
        return "compute-sanitizer is running"
    return None


def _on_path(world: World, *names: str) -> list[str]:
    return [path for name in names if (path := world.find(name)) is not None]


def _glob(world: World, pattern: str) -> Iterator[str]:
    try:
        yield from sorted((str(path) for path in world.root.glob(pattern)), reverse=True)
    except OSError:
        return


def _ncu_paths(world: World) -> list[str]:
    homes = [world.environment.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    return [
        *_on_path(world, "ncu"),
        *(str(Path(home) / "bin/ncu") for home in homes if home and (Path(home) / "bin/ncu").is_file()),
        *_glob(world, "usr/local/cuda*/bin/ncu"),
        *_glob(world, "opt/nvidia/nsight-compute/*/ncu"),
    ]


def _tool(world: World, paths: Sequence[str], option: str) -> FoundTool | None:
    """The first program that answers."""
    for path in paths:
        try:
            text = world.ask([path, option])
        except ToolError:
            continue
        # nvcc and nvdisasm give the release of the toolkit before their own number.
        match = re.search(r"\bV(\d+)\.(\d+)\.(\d+)", text) or re.search(
            r"\b(20\d\d)\.(\d+)(?:\.(\d+))?", text
        )
        version = match or _VERSION.search(text)
        parts = () if version is None else tuple(int(part) for part in version.groups() if part is not None)
        return FoundTool(path=path, version=parts or None)
    return None


def _wheel(world: World, pattern: str) -> list[str]:
    """Files inside NVIDIA's installed Python packages, which are not imported."""
    roots = world.packages("nvidia")
    return [str(path) for place in roots for path in sorted(place.glob(pattern), reverse=True)]
