# SPDX-License-Identifier: Apache-2.0
"""GPAdvisor: advice for CUDA kernels from PC samples and machine code (GPA, CGO'21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gpadvisor.api import ProfiledBlock, Shell

__version__ = "0.1.0"


def profile(
    *,
    mode: str = "continuous",
    period: int | None = None,
    call_stacks: bool = True,
    cupti_library: str | Path | None = None,
) -> ProfiledBlock:
    """Profile a block of this process: ``with gpadvisor.profile() as p: ...``, then ``print(p.advice())``.

    Args:
        mode: "continuous" or "serialized", which runs one kernel at a time and ties samples to launches.
        period: one sample every 2**period cycles, 5 to 31; None leaves it to CUPTI.
        call_stacks: whether to record where each launch comes from.
        cupti_library: the libcupti to load; None for the one that fits the driver.
    """
    # Imported here, so that looking at the version costs nothing.
    from gpadvisor.api import profile as block  # noqa: PLC0415 start-up cost

    return block(mode=mode, period=period, call_stacks=call_stacks, cupti_library=cupti_library)


def load_ipython_extension(shell: Shell) -> None:
    """``%load_ext gpadvisor`` gives a notebook ``%gpadvisor`` and ``%%gpadvisor``."""
    from gpadvisor.api import register_magic  # noqa: PLC0415 start-up cost

    register_magic(shell)
