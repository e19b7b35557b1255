# SPDX-License-Identifier: Apache-2.0
"""Why a source was not analysed: what the compiler said of it, or what else went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpadvisor.lsp.paths import read_text
from gpadvisor.model.compiler_message import CompilerMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What kept a source from being analysed."""

    path: str
    sentence: str
    messages: tuple[CompilerMessage, ...]
    text: str | None  # of the source at that time


def complaint(path: str, sentence: str, messages: Sequence[CompilerMessage]) -> Complaint:
    """The complaint about a source as it is on disk."""
    return Complaint(path=path, sentence=sentence, messages=tuple(messages), text=read_text(path))
