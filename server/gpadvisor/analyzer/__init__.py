# SPDX-License-Identifier: Apache-2.0
"""Static analyzer: functions, control flow, loops, data flow and occupancy of a cubin (GPA section III)."""

from __future__ import annotations

from gpadvisor.analyzer.build import build_program

__all__ = ["build_program"]
