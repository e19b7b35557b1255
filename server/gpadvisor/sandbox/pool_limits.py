# SPDX-License-Identifier: Apache-2.0
"""What a job of the pool may use, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.errors import GpadvisorError, ToolError
from gpadvisor.model.compiler_message import CompilerMessage


class WorkerError(ToolError):
    """A worker process died, hung or ran out of memory; the server goes on."""


class JobError(GpadvisorError):
    """A job ended with a sentence for the user; with what a compiler said, where that is the reason."""

    def __init__(self, sentence: str, kind: str = "", messages: tuple[CompilerMessage, ...] = ()) -> None:
        super().__init__(sentence)
        self.kind = kind  # name of the error's class, such as "NoDeviceCodeError"
        self.messages = messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one worker may use."""

    memory_bytes: int = 8 << 30
    count: int = 2  # long jobs at the same time
