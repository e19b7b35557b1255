# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas that the package publishes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def published_schema(package: str, name: str) -> Any:
    """The schema of ``gpadvisor.PACKAGE`` that is called ``NAME.schema.json``."""
    return json.loads(
        files(f"gpadvisor.{package}").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    )
