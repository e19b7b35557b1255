# SPDX-License-Identifier: Apache-2.0
"""Instruction blamer: stalls attributed to their sources, and questions about the result (GPA section IV)."""

from __future__ import annotations

from gpadvisor.blamer.attribution import blame
from gpadvisor.blamer.rules import DEFAULT_RULES, GPA2021, PAPER, BlameRules

__all__ = ["DEFAULT_RULES", "GPA2021", "PAPER", "BlameRules", "blame"]
