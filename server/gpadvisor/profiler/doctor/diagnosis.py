# SPDX-License-Identifier: Apache-2.0
"""From what was seen on a machine to what works, what blocks, and the one next command.

Which user may read GPU counters: NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with Performance Counters".
What profiles under MPS, MIG and confidential computing: NVIDIA, "CUPTI", Special Configurations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from gpadvisor.profiler.doctor.permission import permission_check
from gpadvisor.profiler.doctor.situation import Container, Situation
from gpadvisor.profiler.doctor.verdicts import Check, CheckLayer, CheckStatus
from gpadvisor.profiler.doctor.versions import cupti_packages, version_checks


class Ladder(Enum):
    """How much can be known of a kernel here, best first."""

    PC_SAMPLES = "PC samples"  # evidence measured
    COUNTS = "executed counts"  # evidence counted
    MODEL = "the model"  # evidence modelled
    STATIC = "machine code alone"  # evidence static


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer of the doctor."""

    checks: tuple[Check, ...]
    step: Ladder
    reason: str  # why this step and no better one
    next_command: str  # the one thing to do

    @property
    def blocked(self) -> tuple[Check, ...]:
        """What keeps PC samples away."""
        return tuple(check for check in self.checks if check.status is CheckStatus.BLOCKED)


def diagnose(situation: Situation) -> Diagnosis:
    """Decide from what was seen; nothing is looked at here."""
    checks = tuple(_checks(situation))
    blocked = [check for check in checks if check.status is CheckStatus.BLOCKED]
    step, reason = _step(situation, blocked)
    if not blocked:
        command = "gpadvisor profile -- ./app"
    else:
        command = next((check.action for check in blocked if check.action), "gpadvisor advise kernel.cu")
    return Diagnosis(checks=checks, step=step, reason=reason, next_command=command)


def _step(situation: Situation, blocked: list[Check]) -> tuple[Ladder, str]:
    if not blocked:
        return Ladder.PC_SAMPLES, "nothing that was looked at stands in the way"
    names = {check.name for check in blocked}
    why = blocked[0].found
    if names == {"counter permission"} and situation.ncu is not None:
        return Ladder.COUNTS, f"{why}; executed counts need no permission, by NVIDIA's Profiling Guide"
    if situation.disassembler is not None:
        return Ladder.MODEL, why
    return Ladder.STATIC, f"{why}, and no nvdisasm is here"


def _checks(situation: Situation) -> Iterator[Check]:
    yield _driver(situation)
    if situation.driver is not None or situation.wsl or situation.tegra:
        yield _devices(situation)
        yield permission_check(situation)
    yield from _sharing(situation)
    yield from _occupied(situation)
    yield _collectors(situation)
    yield from version_checks(situation)
    yield _compiler(situation)
    if situation.binary is not None:
        yield _line_info(situation)


def _driver(situation: Situation) -> Check:
    if situation.driver is not None:
        kind = "open kernel module" if situation.open_module else "kernel module"
        return Check(
            name="driver", status=CheckStatus.OK, found=f"{kind} {'.'.join(map(str, situation.driver))}"
        )
    if situation.system != "Linux":
        return Check(
            name="driver",
            status=CheckStatus.BLOCKED,
            found=f"this is {situation.system or 'an unknown system'}",
            meaning="gpadvisor collects on Linux; reports and snapshots from elsewhere open here",
            layer=CheckLayer.HARDWARE,
            action="gpadvisor profile --host user@gpu-box -- ./app",
            retry_helps=False,
        )
    if situation.wsl or situation.tegra:
        return Check(
            name="driver",
            status=CheckStatus.OK,
            found="the driver of " + ("Windows" if situation.wsl else "the board"),
        )
    return Check(
        name="driver",
        status=CheckStatus.BLOCKED,
        found="no NVIDIA kernel module is loaded",
        meaning="there is no GPU here, or its driver is not installed",
        layer=CheckLayer.HOST if situation.container else CheckLayer.HARDWARE,
        action="gpadvisor profile --host user@gpu-box -- ./app",
        retry_helps=False,
    )


def _devices(situation: Situation) -> Check:
    if situation.gpus:
        names = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in situation.gpus[:4])
        more = f" and {len(situation.gpus) - 4} more" if len(situation.gpus) > 4 else ""
        return Check(name="GPU", status=CheckStatus.OK, found=names + more)
    if situation.device_nodes or situation.tegra:
        return Check(
            name="GPU",
            status=CheckStatus.NOTE,
            found=f"{', '.join(situation.device_nodes[:4]) or 'a board with a GPU'}; {situation.smi_problem}",
            meaning="the device is there, its name is not known",
        )
    if situation.container is not None:
        return Check(
            name="GPU",
            status=CheckStatus.BLOCKED,
            found="the host has a driver, this container sees no GPU",
            meaning="the container was started without GPUs",
            layer=CheckLayer.CONTAINER,
            action=_container_start(situation.container, counters=False),
            retry_helps=False,
        )
    return Check(
        name="GPU",
        status=CheckStatus.BLOCKED,
        found=f"the driver is loaded, no GPU answers: {situation.smi_problem or 'nvidia-smi lists none'}",
        meaning="the device nodes are missing or the driver and its libraries do not fit each other",
        layer=CheckLayer.HOST,
        action="nvidia-smi",
        admin_text=(
            "nvidia-smi lists no GPU although the kernel module is loaded; please check the driver's "
            "installation (often a reboot after an upgrade) and that /dev/nvidia* exist."
        ),
    )


def _container_start(container: Container, *, counters: bool) -> str:
    if container is Container.APPTAINER:
        return "apptainer exec --nv IMAGE ./app"
    if container is Container.KUBERNETES:
        return "kubectl edit pod: resources.limits nvidia.com/gpu: 1"
    tool = (
        "podman run --device nvidia.com/gpu=all" if container is Container.PODMAN else "docker run --gpus all"
    )
    return f"{tool}{' --cap-add=SYS_ADMIN' if counters else ''} IMAGE ./app"


def _sharing(situation: Situation) -> Iterator[Check]:
    """Ways of sharing a GPU that profilers know little about."""
    if any(gpu.mig for gpu in situation.gpus):
        yield Check(
            name="MIG",
            status=CheckStatus.WARNING,
            found="a GPU is divided into instances (MIG)",
            meaning="a compute instance that shares nothing can be profiled; a shared one gives no counters",
            layer=CheckLayer.HOST,
            action="nvidia-smi -L",
            admin_text=(
                "For profiling I need a MIG GPU instance with a single compute instance of its full size, "
                "or a GPU with MIG off (nvidia-smi -mig 0)."
            ),
        )
    if situation.mps:
        yield Check(
            name="MPS",
            status=CheckStatus.BLOCKED,
            found="the CUDA Multi-Process Service runs",
            meaning="Nsight Compute does not support clients of MPS",
            layer=CheckLayer.HOST,
            action="echo quit | nvidia-cuda-mps-control",
            admin_text="For profiling I need a node on which the MPS control daemon does not run.",
        )
    if situation.confidential_compute:
        yield Check(
            name="confidential computing",
            status=CheckStatus.BLOCKED,
            found="the GPU runs in confidential-computing mode",
            meaning="its counters are closed to every tool, whoever asks",
            layer=CheckLayer.PROVIDER,
            action="gpadvisor profile --host user@gpu-box -- ./app",
            admin_text="For profiling I need a GPU whose confidential-computing mode is off or devtools.",
            retry_helps=False,
        )


def _occupied(situation: Situation) -> Iterator[Check]:
    """What holds the counters already."""
    if situation.dcgm:
        yield Check(
            name="DCGM",
            status=CheckStatus.WARNING,
            found="NVIDIA's data centre monitor (DCGM) runs",
            meaning="when it collects profiling metrics it holds the counters, and a profiler is refused",
            layer=CheckLayer.HOST,
            action="dcgmi profile --pause",
            admin_text="Please pause DCGM's profiling metrics (dcgmi profile --pause) while I profile.",
        )
    if situation.other_profiler is not None:
        yield Check(
            name="other profiler",
            status=CheckStatus.BLOCKED,
            found=situation.other_profiler,
            meaning="one profiler at a time can use a GPU's counters",
            layer=CheckLayer.USER,
            action="pgrep -a 'ncu|nsys'",
        )
    if situation.injection is not None:
        yield Check(
            name="injection",
            status=CheckStatus.WARNING,
            found=f"CUDA_INJECTION64_PATH is set to {situation.injection}",
            meaning="the driver loads one injected library; gpadvisor's takes its place while it profiles",
            layer=CheckLayer.USER,
            action="unset CUDA_INJECTION64_PATH",
        )


def _collectors(situation: Situation) -> Check:
    have = []
    if situation.ncu is not None:
        have.append(f"ncu {_dotted(situation.ncu.version)}")
    if situation.cupti is not None and situation.c_compiler is not None:
        have.append(f"CUPTI {_dotted(situation.cupti.version)} with a C compiler")
    if have:
        return Check(name="collectors", status=CheckStatus.OK, found=", ".join(have))
    missing = (
        "CUPTI is here but no C compiler" if situation.cupti is not None else "neither ncu nor CUPTI is here"
    )
    return Check(
        name="collectors",
        status=CheckStatus.BLOCKED,
        found=missing,
        meaning="PC samples come from Nsight Compute, or from CUPTI through a small library built once",
        layer=CheckLayer.USER,
        action="apt-get install gcc" if situation.cupti is not None else cupti_packages(situation.driver),
    )


def _compiler(situation: Situation) -> Check:
    versions = [
        f"{name} {_dotted(tool.version)}"
        for name, tool in (("nvcc", situation.nvcc), ("nvdisasm", situation.disassembler))
        if tool is not None
    ]
    if situation.disassembler is None:
        return Check(
            name="CUDA tools",
            status=CheckStatus.WARNING,
            found="no nvdisasm" + (f"; {versions[0]}" if versions else ""),
            meaning="machine code cannot be read here; snapshots, which carry their disassembly, open",
            layer=CheckLayer.USER,
            action="pip install nvidia-cuda-nvdisasm",
        )
    return Check(name="CUDA tools", status=CheckStatus.OK, found=", ".join(versions))


def _line_info(situation: Situation) -> Check:
    if situation.binary_has_line_info is None:
        return Check(
            name="line information",
            status=CheckStatus.NOTE,
            found=f"{situation.binary}: {situation.binary_problem or 'it holds no CUDA code of its own'}",
            meaning="code compiled while the application runs brings its own line information, or none"
            + (f" ({situation.line_info_change})" if situation.line_info_change else ""),
        )
    if situation.binary_has_line_info:
        return Check(name="line information", status=CheckStatus.OK, found=f"{situation.binary} has it")
    return Check(
        name="line information",
        status=CheckStatus.WARNING,
        found=f"{situation.binary} has none",
        meaning="advice then names addresses; -lineinfo does not change the machine code. The command below "
        "builds it once without a change"
        + (f"; for good, {situation.line_info_change}" if situation.line_info_change else ""),
        layer=CheckLayer.APPLICATION,
        action=situation.line_info_command or "NVCC_APPEND_FLAGS=-lineinfo nvcc ...",
    )


def _dotted(version: tuple[int, ...] | None) -> str:
    return "of unknown version" if version is None else ".".join(map(str, version))
