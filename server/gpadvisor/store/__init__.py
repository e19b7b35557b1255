# SPDX-License-Identifier: Apache-2.0
"""Profile formats: Nsight Compute reports and gpadvisor's own snapshot, files to values and back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from gpadvisor.store.isolation import being_read, load_profile_isolated

if TYPE_CHECKING:
    from gpadvisor.store.load import load_bytes, load_profile
    from gpadvisor.store.snapshot import export_snapshot, write_snapshot

__all__ = [
    "being_read",
    "export_snapshot",
    "load_bytes",
    "load_profile",
    "load_profile_isolated",
    "write_snapshot",
]

_MODULES: Final = {
    "export_snapshot": "snapshot",
    "load_bytes": "load",
    "load_profile": "load",
    "write_snapshot": "snapshot",
}


def __getattr__(name: str) -> Any:
    """Import the readers when they are asked for: the child process starts long before numpy is there."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
