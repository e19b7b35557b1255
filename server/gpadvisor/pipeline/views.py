# SPDX-License-Identifier: Apache-2.0
"""What a view shows of the kernels of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.files import cache_folder
from gpadvisor.pipeline.advise import AdvisedFile, AdvisedKernel, advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.request import Progress, Request

ShownT = TypeVar("ShownT")


def view_kernels(
    path: Path, request: Request, progress: Progress, show: Callable[[AdvisedKernel], ShownT]
) -> tuple[list[ShownT], list[str]]:
    """Each kernel that was asked for and can be shown, and why the others cannot.

    Raises:
        ProfileMismatchError: the file has no run, or no wanted kernel has what is shown.
        GpadvisorError: the input or a tool is at fault.
    """
    return shown_kernels(path, advised_run(path, request, progress), show)


def advised_run(path: Path, request: Request, progress: Progress) -> AdvisedFile:
    """The advice of a file with a run.

    Raises:
        ProfileMismatchError: the file has no run.
        GpadvisorError: the input or a tool is at fault.
    """
    if input_kind(path) is not InputKind.PROFILE:
        raise ProfileMismatchError(
            f"{path} has no run; give a report or a snapshot ('gpadvisor profile' makes one)"
        )
    return advise_file(path, request, progress, Cache(cache_folder()))


def shown_kernels(
    path: Path, advised: AdvisedFile, show: Callable[[AdvisedKernel], ShownT]
) -> tuple[list[ShownT], list[str]]:
    """The same of a file whose advice is there.

    Raises:
        ProfileMismatchError: no wanted kernel has what is shown.
    """
    shown, missing = [], []
    for kernel in advised.kernels:
        try:
            shown.append(show(kernel))
        except ProfileMismatchError as error:
            missing.append(str(error))
    if not shown:
        raise ProfileMismatchError(f"{path}: {missing[0]}")
    return shown, missing
