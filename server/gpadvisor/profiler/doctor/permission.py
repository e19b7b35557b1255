# SPDX-License-Identifier: Apache-2.0
"""May this user read GPU performance counters, and who can change that?

NVIDIA, "ERR_NVGPUCTRPERM": the kernel module's parameter NVreg_RestrictProfilingToAdminUsers, else the
capability CAP_SYS_ADMIN, else, from driver 565 on, CAP_PERFMON. In a container both are given at its start.
"""

from __future__ import annotations

from typing import Final

from gpadvisor.profiler.doctor.situation import Container, Situation
from gpadvisor.profiler.doctor.verdicts import Check, CheckLayer, CheckStatus

CAP_SYS_ADMIN: Final = 21
CAP_PERFMON: Final = 38
_PERFMON_DRIVER: Final = 565

_ADMIN_TEXT: Final = """\
I need to profile CUDA kernels, and the NVIDIA kernel module of this host allows performance counters
to administrators only (RmProfilingAdminOnly: 1). Please either
  - write "options nvidia NVreg_RestrictProfilingToAdminUsers=0" to a file in /etc/modprobe.d, rebuild
    the initial ramdisk where the distribution keeps the module there, and reboot; or
  - let my jobs run with the capability CAP_SYS_ADMIN (CAP_PERFMON from driver 565 on).
Background: https://developer.nvidia.com/ERR_NVGPUCTRPERM"""


def counters_allowed(situation: Situation) -> bool | None:
    """Whether counters may be read; None where only trying tells."""
    if situation.admin_only is False:
        return True
    if situation.user_namespace:  # a capability in a namespace of its own is none on the host
        return None if situation.admin_only is None else False
    if situation.holds(CAP_SYS_ADMIN):
        return True
    if situation.holds(CAP_PERFMON) and situation.driver is not None:
        return situation.driver[0] >= _PERFMON_DRIVER or _unknown(situation)
    return _unknown(situation)


def _unknown(situation: Situation) -> bool | None:
    return None if situation.admin_only is None else False


def permission_check(situation: Situation) -> Check:
    """The counter permission as a check."""
    if situation.container is Container.GVISOR:
        return _gvisor()
    allowed = counters_allowed(situation)
    if allowed:
        return Check(name="counter permission", status=CheckStatus.OK, found=_granted(situation))
    if allowed is None:
        return _untold(situation)
    return _refused(situation)


def _granted(situation: Situation) -> str:
    if situation.admin_only is False:
        return "the kernel module lets every user read the counters"
    return (
        "this process has CAP_SYS_ADMIN" if situation.holds(CAP_SYS_ADMIN) else "this process has CAP_PERFMON"
    )


def _untold(situation: Situation) -> Check:
    if situation.wsl:
        return Check(
            name="counter permission",
            status=CheckStatus.NOTE,
            found="Windows decides, and does not tell WSL",
            meaning=(
                "in the NVIDIA Control Panel of Windows: Developer, Manage GPU Performance Counters, "
                "allow access to all users"
            ),
            layer=CheckLayer.HOST,
        )
    return Check(
        name="counter permission",
        status=CheckStatus.NOTE,
        found="the kernel module's parameters cannot be read here",
        meaning="only trying tells whether the counters are open",
        action="gpadvisor profile -- ./app",
    )


def _refused(situation: Situation) -> Check:
    text = "the kernel module allows counters to administrators only (RmProfilingAdminOnly: 1)"
    if situation.container is None:
        return Check(
            name="counter permission",
            status=CheckStatus.BLOCKED,
            found=text,
            meaning="ERR_NVGPUCTRPERM: this user is refused, whichever ncu or CUDA version asks",
            layer=CheckLayer.HOST,
            action="sudo -E env PATH=$PATH gpadvisor profile -- ./app",
            admin_text=_ADMIN_TEXT,
            retry_helps=False,
        )
    start = {
        Container.KUBERNETES: "securityContext.capabilities.add: [SYS_ADMIN] in the pod's description",
        Container.APPTAINER: "sudo apptainer exec --nv --add-caps CAP_SYS_ADMIN IMAGE ./app",
        Container.PODMAN: "sudo podman run --device nvidia.com/gpu=all --cap-add=SYS_ADMIN IMAGE ./app",
    }.get(situation.container, "docker run --gpus all --cap-add=SYS_ADMIN IMAGE ./app")
    who = "root" if situation.root else "the user"
    return Check(
        name="counter permission",
        status=CheckStatus.BLOCKED,
        found=f"{text}, and this container has no CAP_SYS_ADMIN",
        meaning=(
            f"ERR_NVGPUCTRPERM: being {who} of the container does not help, nor does another image, "
            "another CUDA version or another ncu: the host refuses"
        ),
        layer=CheckLayer.CONTAINER,
        action=start,
        admin_text=_ADMIN_TEXT,
        retry_helps=False,
    )


def _gvisor() -> Check:
    return Check(
        name="counter permission",
        status=CheckStatus.BLOCKED,
        found="the sandbox gVisor stands between this process and the driver",
        meaning="it does not pass the counters' interface on, whoever asks",
        layer=CheckLayer.PROVIDER,
        action="gpadvisor profile --host user@gpu-box -- ./app",
        retry_helps=False,
    )
