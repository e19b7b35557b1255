# SPDX-License-Identifier: Apache-2.0
"""A call of a tool, whoever brought it: arguments by schema, paths inside of the roots, a worker's answer.

Nothing that others have written is parsed here: workers are limited in time and memory.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpadvisor.agents.answers import DEFAULT_BYTES, Answer, Json, short
from gpadvisor.agents.roots import path_inside
from gpadvisor.agents.tools import TOOLS, AgentTool
from gpadvisor.errors import UsageError
from gpadvisor.sandbox.commands import CommandSettings, run_command
from gpadvisor.sandbox.pool import Workers

JOB: Final = "tool"
_SECONDS: Final = 300.0
_PROFILE_SECONDS: Final = 3600.0
_NAMES: Final = CommandSettings(command="the command", timeout="the time that it may take")
Said = Callable[[str], None]


def tools(*, allow_run: bool) -> Mapping[str, AgentTool]:
    """Those that are offered, by name."""
    return {name: tool for name, tool in TOOLS.items() if allow_run or not tool.runs}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A tool with arguments that are of its schema."""

    tool: AgentTool
    given: Mapping[str, Any]

    async def answer(self, roots: Sequence[Path], workers: Workers, progress: Said) -> Json:
        """The page that answers it.

        Raises:
            GpadvisorError: a path leads out of the roots, an input is at fault, or the program failed.
        """
        values = dict(self.given)
        for name, argument in self.tool.arguments.items():
            if argument.is_path and name in values:
                values[name] = str(path_inside(values[name], roots))
        if self.tool.runs:
            return await _profile(values, roots, progress)
        arguments = {"tool": self.tool.name, "arguments": values, "roots": list(map(str, roots))}
        page: Json = await workers.run(JOB, arguments, timeout_seconds=_SECONDS, progress=progress)
        return page


def checked(name: str, arguments: Mapping[str, object], *, allow_run: bool) -> CheckedCall:
    """A call as it came.

    Raises:
        UsageError: there is no such tool, or an argument is not what it should be.
    """
    offered = tools(allow_run=allow_run)
    tool = offered.get(name)
    if tool is None:
        raise UsageError(f"there is no tool '{short(name, 80)}'; there are {', '.join(offered)}")
    return CheckedCall(tool=tool, given=tool.checked(arguments))


async def _profile(values: Mapping[str, Any], roots: Sequence[Path], progress: Said) -> Json:
    words, kernel = [str(word) for word in values["command"]], str(values.get("kernel") or "")
    if not words or not roots:
        raise UsageError("'command' is empty" if not words else "the client names no folder that is here")
    target = roots[0] / "gpadvisor-profiles" / time.strftime("%Y%m%d-%H%M%S.gpadvisor")
    target.parent.mkdir(exist_ok=True)
    chosen = ["--kernel", re.escape(kernel)] if kernel else []
    command = [sys.executable, "-P", "-m", "gpadvisor", "profile", "-o", str(target), *chosen, "--", *words]
    await run_command(command, roots[0], _PROFILE_SECONDS, _NAMES, progress)
    return Answer(
        items=[{"snapshot": str(target), "evidence": "observed", "source": "gpadvisor profile"}],
        evidence="observed",
        source="gpadvisor profile",
        verify=["gpadvisor", "advise", str(target)],
    ).page(limit=DEFAULT_BYTES)
