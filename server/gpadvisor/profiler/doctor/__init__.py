# SPDX-License-Identifier: Apache-2.0
"""What works on this machine, what stands in the way, whose layer it is, and the one next step.

``observe`` looks at the world, ``diagnose`` decides from what was seen, ``render_text`` says it.
"""

from __future__ import annotations

from gpadvisor.profiler.doctor.diagnosis import Diagnosis, Ladder, diagnose
from gpadvisor.profiler.doctor.observation import observe
from gpadvisor.profiler.doctor.rendering import render_json, render_text
from gpadvisor.profiler.doctor.situation import Container, FoundTool, Gpu, Situation
from gpadvisor.profiler.doctor.verdicts import Check, CheckLayer, CheckStatus

__all__ = [
    "Check",
    "CheckLayer",
    "CheckStatus",
    "Container",
    "Diagnosis",
    "FoundTool",
    "Gpu",
    "Ladder",
    "Situation",
    "diagnose",
    "observe",
    "render_json",
    "render_text",
]
