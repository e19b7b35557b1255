# SPDX-License-Identifier: Apache-2.0
"""Messages over a pipe, each after its length: what the server and its workers say to each other."""

from __future__ import annotations

import asyncio
import struct
from typing import IO, Final

from gpadvisor.sandbox.codec import from_bytes, to_bytes
from gpadvisor.sandbox.messages import OfServer, OfWorker

HEAD: Final = struct.Struct("<Q")
MAX_BYTES: Final = 512 << 20
"""A worker reads what others wrote and may be wrong about its size."""


class FrameError(Exception):
    """What came is no frame."""


def pack(message: OfWorker | OfServer) -> bytes:
    """One frame."""
    body = to_bytes(message)
    return HEAD.pack(len(body)) + body


def read_blocking(stream: IO[bytes]) -> OfServer | None:
    """What the server says next; None at the end of the stream."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    body = stream.read(_checked(head))
    message: OfServer = from_bytes(body, OfServer)
    return message


async def read_body(stream: asyncio.StreamReader) -> bytes:
    """The next value's JSON text, not parsed: that of a large analysis takes too long for an event loop.

    Raises:
        EOFError: the stream has ended.
        FrameError: what came is no frame.
    """
    try:
        head = await stream.readexactly(HEAD.size)
        return await stream.readexactly(_checked(head))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise EOFError from error


def _checked(head: bytes) -> int:
    (size,) = HEAD.unpack(head)
    if size > MAX_BYTES:
        raise FrameError(f"{size} bytes announced, {MAX_BYTES} allowed")
    return int(size)
