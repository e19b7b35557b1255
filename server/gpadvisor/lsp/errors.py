# SPDX-License-Identifier: Apache-2.0
"""Errors that a client is to show: one sentence in the answer to its request, and no traceback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lsprotocol.types import LSPErrorCodes
from pygls.exceptions import JsonRpcException

from gpadvisor.errors import GpadvisorError

T = TypeVar("T")


class RequestFailed(JsonRpcException):
    """A request that failed for a reason that the user should read."""

    CODE = LSPErrorCodes.RequestFailed.value


class Stopped(JsonRpcException):
    """A request whose work the user has stopped."""

    CODE = LSPErrorCodes.ServerCancelled.value


@contextmanager
def request_errors() -> Iterator[None]:
    """Errors with a sentence become an answer with that sentence."""
    try:
        yield
    except GpadvisorError as error:
        raise RequestFailed(str(error)) from None


async def answered(work: Awaitable[T]) -> T:
    """The result of work, or an answer that says why there is none."""
    with request_errors():
        try:
            return await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Stopped("stopped") from None
