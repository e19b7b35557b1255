# SPDX-License-Identifier: Apache-2.0
"""What the server and its workers say to each other; a worker may say anything, and the codec reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from gpadvisor.model.compiler_message import CompilerMessage
from gpadvisor.sandbox.children import ChildCall
from gpadvisor.sandbox.codec import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """The next job."""

    job: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded:
    """A child that a worker wanted has come to its end."""

    ended: int
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReady:
    """A worker has imported what it needs."""

    ready: int  # its process


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBegun:
    """It has got a job."""

    begun: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What it is about."""

    progress: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What a job gives, which its caller reads."""

    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """Why a job gives nothing."""

    failure: Failure
    messages: tuple[CompilerMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChild:
    """A worker wants a child."""

    start: int  # its number among those of the worker
    call: ChildCall


@dataclass(frozen=True, slots=True, kw_only=True)
class StopChild:
    """It wants it no longer."""

    stop: int


OfWorker: TypeAlias = WorkerReady | JobBegun | JobProgress | JobResult | JobFailure | StartChild | StopChild
OfServer: TypeAlias = JobRequest | ChildEnded
