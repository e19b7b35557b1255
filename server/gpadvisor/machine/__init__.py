# SPDX-License-Identifier: Apache-2.0
"""Hardware numbers by architecture, each with its source (GPA section III, "architectural features")."""

from __future__ import annotations

from gpadvisor.machine.code import code_form
from gpadvisor.machine.every_gpu import every_gpu
from gpadvisor.machine.tables import architectures, base_architecture, load, load_file, scaled

__all__ = ["architectures", "base_architecture", "code_form", "every_gpu", "load", "load_file", "scaled"]
