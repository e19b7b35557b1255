# SPDX-License-Identifier: Apache-2.0
"""What the user wants to see, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from gpadvisor.model.stalls import KNOWN_REASONS


class Severity(Enum):
    """How loudly a finding is shown; there is no error, as slow code is none."""

    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"
    OFF = "off"


class Annotations(Enum):
    """The master switch of everything that stands beside the code."""

    OFF = "off"  # nothing but hovers on demand
    MINIMAL = "minimal"  # diagnostics and the gutter
    NORMAL = "normal"  # and lenses and hints on hot lines
    ALL = "all"  # and hints on every line with samples


class Stale(Enum):
    """What becomes of findings on lines that were edited since the profile."""

    REMAP = "remap"  # kept where the lines went, with full weight; edited ones say so
    DIM = "dim"  # edited ones are faded
    HIDE = "hide"  # edited ones are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of what is shown; the analysis does not depend on them."""

    annotations: Annotations = Annotations.NORMAL
    diagnostics: bool = True
    code_lens: bool = True
    inlay_hints: bool = True
    hover: bool = True
    heat: bool = True
    stale: Stale = Stale.DIM
    warning_low: float = 1.05  # a measured and fresh finding that gives the run this at least is a warning
    least_gain: float = 1.03  # of the run; what is expected to give less is a hint
    hint_share: float = 0.03  # of a kernel's samples; lines below get no inlay hint
    heat_share: float = 0.01  # of a kernel's samples; lines below get no colour
    max_per_file: int = 20
    severity: Mapping[str, Severity] = field(default_factory=lambda: MappingProxyType({}))  # by rule code
    chosen: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # mangled by base name
    rule_page: str | None = None  # address with {code} and {slug}, "https://.../{code}-{slug}.md"

    def page(self, code: str, slug: str) -> str | None:
        """The address of a rule's page."""
        if self.rule_page is None:
            return None
        return self.rule_page.replace("{code}", code).replace("{slug}", slug)

    def stall_page(self, reason: str) -> str | None:
        """The address of a stall reason's page, which lies beside those of the rules."""
        return self.page("stall", reason) if reason in KNOWN_REASONS else None
