# SPDX-License-Identifier: Apache-2.0
"""What a worker does for a tool: the answer is made there, and only its page comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpadvisor.agents import advising, code, views
from gpadvisor.agents.answers import DEFAULT_BYTES, Answer
from gpadvisor.agents.request import ToolCall
from gpadvisor.sandbox.worker import JobFunction


def answer_tool(arguments: dict[str, Any], progress: Callable[[str], None]) -> object:
    """The page of a call (``CheckedCall``)."""
    values = arguments["arguments"]
    call = ToolCall(given=values, roots=tuple(map(Path, arguments["roots"])), progress=progress)
    answer = ANSWERS[str(arguments["tool"])](call)
    return answer.page(int(values.get("start", 0)), int(values.get("max_bytes", DEFAULT_BYTES)))


ANSWERS: Final[dict[str, Callable[[ToolCall], Answer]]] = {
    "list_kernels": advising.list_kernels,
    "advise": advising.advise,
    "simulate": advising.simulate,
    "why": advising.why,
    "explain": advising.explain_name,
    "blame": code.blame,
    "source": code.source,
    "limits": views.limits,
    "compare": views.compare,
    "doctor": views.doctor,
}
JOBS: Final[dict[str, JobFunction]] = {"tool": answer_tool}
