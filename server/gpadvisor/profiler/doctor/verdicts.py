# SPDX-License-Identifier: Apache-2.0
"""One thing that was checked, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CheckStatus(Enum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"  # worth knowing, changes nothing
    WARNING = "warning"  # may get in the way
    BLOCKED = "blocked"  # PC samples are impossible until it changes


class CheckLayer(Enum):
    """Who can change a thing."""

    APPLICATION = "your build"
    USER = "you, on this machine"
    CONTAINER = "whoever starts the container"
    HOST = "the administrator of the host"
    PROVIDER = "the provider of the machine"
    HARDWARE = "nobody: it is the machine itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check; the texts are whole sentences without the final stop."""

    name: str
    status: CheckStatus
    found: str  # what was seen
    meaning: str = ""  # what it means for profiling
    layer: CheckLayer | None = None  # who can change it
    action: str = ""  # the command that helps, or shows more
    admin_text: str = ""  # what to send to an administrator where the user cannot change it
    retry_helps: bool = True  # False: the same attempt cannot end otherwise, whatever is varied here
