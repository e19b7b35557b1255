# SPDX-License-Identifier: Apache-2.0
"""GPAdvisor: advice for CUDA kernels from PC samples and machine code (GPA, CGO'21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpadvisor.api import advise, load_ipython_extension, profile

__version__ = "0.1.0"
__all__ = ["advise", "load_ipython_extension", "profile"]


def __getattr__(name: str) -> Any:
    """What ``gpadvisor.api`` offers, imported when asked for: a look at the version is quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpadvisor import api  # noqa: PLC0415 start-up cost

    return getattr(api, name)
