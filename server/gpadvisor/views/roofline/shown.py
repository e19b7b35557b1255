# SPDX-License-Identifier: Apache-2.0
"""One kernel's roofline with what is suggested for it: what every form of the view shows."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.views.roofline.advice import Proposal
from gpadvisor.views.roofline.model import Roofline


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKernel:
    """A kernel as it is shown."""

    roofline: Roofline
    proposals: tuple[Proposal, ...]
    time_share: float | None  # of all kernel time in the profile
