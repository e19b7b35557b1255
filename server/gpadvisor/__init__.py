# SPDX-License-Identifier: Apache-2.0
"""GPAdvisor: advice for CUDA kernels from PC samples and machine code (GPA, CGO'21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gpadvisor.api import ProfiledBlock, Shell
    from gpadvisor.model.advice import Advice

__version__ = "0.1.0"


def advise(
    path: str | Path,
    *,
    kernel: str | None = None,
    launch: int | None = None,
    everything: bool = False,
    model: bool = False,
    source_root: str | Path | None = None,
) -> Advice:
    """The advice on a report, a snapshot, a cubin or a source, as values.

    Args:
        path: the input, as on the command line.
        kernel: a regular expression for names of kernels; None for all.
        launch: one launch of the report, by its number from 0; None for the kernels' own choice.
        everything: also what the thresholds hide, as ``--all``.
        model: simulate kernels without a profile whose launch is known, as ``--model``.
        source_root: the folder of the sources; None for the setting's.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault; its text says what to do.
    """
    from gpadvisor.api import advise as advise_path  # noqa: PLC0415 start-up cost

    return advise_path(
        path, kernel=kernel, launch=launch, everything=everything, model=model, source_root=source_root
    )


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
