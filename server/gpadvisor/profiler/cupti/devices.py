# SPDX-License-Identifier: Apache-2.0
"""The GPUs that this process sees, as the driver describes them to cuda-python."""

from __future__ import annotations

from typing import Any, Final

from gpadvisor.errors import ToolFailedError, ToolNotFoundError
from gpadvisor.model.profile import Device

_MISSING: Final = "cuda-python is needed to ask for GPUs; pip install cuda-bindings"
_REFUSED: Final = "the CUDA driver cannot be asked for GPUs ({why}); gpadvisor doctor says what is missing"


def visible_devices() -> tuple[Device, ...]:
    """Every GPU that ``CUDA_VISIBLE_DEVICES`` leaves, in the driver's order.

    Raises:
        ToolNotFoundError: cuda-python is not installed.
        ToolFailedError: there is no driver, or it refuses.
    """
    try:
        from cuda.bindings import driver  # noqa: PLC0415 - an extra: only who profiles needs it
    except ImportError as error:
        raise ToolNotFoundError(_MISSING) from error
    try:
        _value(driver.cuInit(0))
        return tuple(_device(driver, index) for index in range(_value(driver.cuDeviceGetCount())))
    except RuntimeError as error:  # of cuda-python, where no libcuda can be loaded or it is too old
        raise ToolFailedError(_REFUSED.format(why="cuda-python finds none that it can load")) from error


def _device(driver: Any, index: int) -> Device:
    device = _value(driver.cuDeviceGet(index))

    def fact(name: str) -> int:
        which = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(_value(driver.cuDeviceGetAttribute(which, device)))

    name = _value(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode("utf-8", "replace")
    return Device(
        name=name,
        arch=f"sm_{fact('COMPUTE_CAPABILITY_MAJOR')}{fact('COMPUTE_CAPABILITY_MINOR')}",
        sms=fact("MULTIPROCESSOR_COUNT"),
        clock_hz=fact("CLOCK_RATE") * 1e3,
        max_warps_per_sm=fact("MAX_THREADS_PER_MULTIPROCESSOR") // fact("WARP_SIZE"),
        schedulers_per_sm=None,  # the driver does not say
        registers_per_sm=fact("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        shared_bytes_per_sm=fact("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        l2_bytes=fact("L2_CACHE_SIZE"),
    )


def _value(answer: tuple[Any, ...]) -> Any:
    """What a call returned beside its status."""
    status, *values = answer
    if int(status) != 0:
        raise ToolFailedError(_REFUSED.format(why=status.name))
    return values[0] if values else None
