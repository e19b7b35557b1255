# SPDX-License-Identifier: Apache-2.0
"""The machine table of an architecture, or the user's own."""

from __future__ import annotations

from pathlib import Path

from gpadvisor import machine
from gpadvisor.model.machine import MachineModel
from gpadvisor.pipeline.opening import read_machine
from gpadvisor.pipeline.request import Request


def machine_model(arch: str, request: Request) -> MachineModel:
    """The table of an architecture, or the user's own.

    Raises:
        MachineModelError: no table is known, or the user's file is malformed.
    """
    if request.settings.machine is not None:
        return machine.load_file(read_machine(Path(request.settings.machine)))
    return machine.load(arch)
