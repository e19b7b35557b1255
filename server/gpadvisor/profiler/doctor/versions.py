# SPDX-License-Identifier: Apache-2.0
"""Do driver, tools and GPU fit each other?

Oldest driver of each major CUDA version: NVIDIA, "CUDA Compatibility", minor version compatibility.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpadvisor.profiler.cupti.discovery import install_command
from gpadvisor.profiler.doctor.situation import Situation
from gpadvisor.profiler.doctor.verdicts import Check, CheckLayer, CheckStatus

OLDEST_DRIVER: Final = {11: (450, 80), 12: (525, 60), 13: (580, 65)}
"""By major CUDA version, on Linux."""
_OLDEST_GPU: Final = (7, 0)
_OLDEST_GPU_OF_CUDA_13: Final = (7, 5)


def version_checks(situation: Situation) -> Iterator[Check]:
    """What does not fit; nothing where all does."""
    driver = situation.driver
    version = situation.cupti.version if situation.cupti is not None and situation.ncu is None else None
    # Some releases number the library by their year instead.
    needed = OLDEST_DRIVER.get(version[0]) if version else None
    if version and driver and needed and driver[:2] < needed:
        yield _too_old("CUPTI", version[0], driver, needed)
    for gpu in situation.gpus:
        if gpu.capability is None:
            continue
        text = f"{gpu.name} is of compute capability {gpu.capability[0]}.{gpu.capability[1]}"
        if gpu.capability < _OLDEST_GPU:
            yield Check(
                name="architecture",
                status=CheckStatus.BLOCKED,
                found=text,
                meaning="PC samples with these stall reasons exist from 7.0 (Volta) on",
                layer=CheckLayer.HARDWARE,
                action="gpadvisor profile --host user@gpu-box -- ./app",
                retry_helps=False,
            )
        elif gpu.capability < _OLDEST_GPU_OF_CUDA_13:
            yield Check(
                name="architecture",
                status=CheckStatus.NOTE,
                found=text,
                meaning="CUDA 13 no longer knows it: use the compiler, CUPTI and ncu of CUDA 12",
                layer=CheckLayer.USER,
                action=f"{install_command(12)} nvidia-cuda-nvrtc-cu12",
            )


def cupti_packages(driver: tuple[int, ...] | None) -> str:
    """The command that installs a CUPTI for this driver; none that is used fits one before CUDA 12."""
    return install_command(12 if driver and driver[:2] < OLDEST_DRIVER[13] else None)


def _too_old(name: str, major: int, driver: tuple[int, ...], needed: tuple[int, ...]) -> Check:
    return Check(
        name="versions",
        status=CheckStatus.BLOCKED,
        found=f"{name} is of CUDA {major}, the driver is {'.'.join(map(str, driver))}",
        meaning=f"CUDA {major} needs driver {needed[0]} or newer",
        layer=CheckLayer.USER,
        action=cupti_packages(driver) if driver[:2] >= OLDEST_DRIVER[12] else "",
        admin_text=f"Please update the NVIDIA driver to {needed[0]} or newer.",
        retry_helps=False,
    )
