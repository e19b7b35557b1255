# SPDX-License-Identifier: Apache-2.0
"""What was found on a machine that decides whether a GPU can be profiled there; None means not known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Container(Enum):
    """What kind of container the process is in."""

    DOCKER = "Docker"
    PODMAN = "Podman"
    KUBERNETES = "Kubernetes"
    APPTAINER = "Apptainer"
    LXC = "LXC"
    GVISOR = "gVisor"
    OTHER = "a container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as the driver lists it."""

    index: int
    name: str
    capability: tuple[int, int] | None
    mig: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """A program with its version."""

    path: str
    version: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One machine, as this process sees it."""

    system: str  # "Linux", "Windows", ...
    architecture: str  # "x86_64", "aarch64"
    driver: tuple[int, ...] | None  # kernel module's version
    open_module: bool | None
    device_nodes: tuple[str, ...]  # /dev/nvidia0, /dev/dxg
    gpus: tuple[Gpu, ...]
    smi_problem: str | None  # why nvidia-smi gave no list
    admin_only: bool | None  # RmProfilingAdminOnly of the kernel module
    root: bool
    capabilities: int  # effective ones, a bit mask
    user_namespace: bool  # root here need not be root of the host
    container: Container | None
    wsl: bool
    tegra: bool
    mps: bool
    dcgm: bool
    confidential_compute: bool | None
    other_profiler: str | None  # what else is attached or running
    injection: str | None  # CUDA_INJECTION64_PATH as it is set already
    ncu: FoundTool | None
    cupti: FoundTool | None
    c_compiler: FoundTool | None
    nvcc: FoundTool | None
    disassembler: FoundTool | None
    binary: str | None = None  # the application that was asked about
    binary_has_line_info: bool | None = None
    binary_problem: str | None = None  # why nothing is known of it
    line_info_command: str | None = None  # builds it with line information, once
    line_info_change: str | None = None  # what to change in its build, or in a script

    def holds(self, capability: int) -> bool:
        """Whether the process has a Linux capability, by its number."""
        return bool(self.capabilities >> capability & 1)
