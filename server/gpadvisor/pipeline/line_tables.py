# SPDX-License-Identifier: Apache-2.0
"""Line tables of cubins that anybody may have made, decoded in a child process with limits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from gpadvisor.cubin import Cubin, Lines, load_lines
from gpadvisor.errors import CancelledError, ToolError, ToolTimeoutError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.pipeline.cache import Cache
from gpadvisor.sandbox.children import call
from gpadvisor.sandbox.codec import to_bytes

_MEMORY_BYTES: Final = 4 << 30
_OUTPUT_BYTES: Final = 256 << 20


def read_lines(
    cubin: Cubin,
    data: bytes,
    key_parts: Mapping[str, object],
    *,
    timeout_seconds: float,
    cache: Cache,
    cancelled: Callable[[], bool],
) -> tuple[Lines, tuple[Problem, ...]]:
    """The lines of a cubin; none, and a problem, where the process that decodes them fails.

    Args:
        cubin: the image.
        data: its bytes.
        key_parts: what decides the answer, by name; the names of its ``sections``, or None for all.
        timeout_seconds: how long decoding may take.
        cache: where answers are kept.
        cancelled: asked now and then.

    Raises:
        CancelledError: as asked.
    """
    if not cubin.has_line_info:
        return Lines(), ()
    key = cache.key("lines", key_parts)
    with contextlib.suppress(ValueError):  # of another shape
        if (stored := cache.get(key)) is not None:
            return load_lines(stored, cubin), ()
    try:
        answer = call(
            "gpadvisor.cubin.decoded:answer",
            to_bytes(key_parts["sections"]) + b"\n" + data,
            timeout_seconds=timeout_seconds,
            memory_bytes=_MEMORY_BYTES,
            output_bytes=_OUTPUT_BYTES,
            cancelled=cancelled,
        )
        lines = load_lines(answer, cubin)
    except CancelledError:
        raise
    except ToolTimeoutError:
        return _failed(f"took longer than {timeout_seconds:g} s and was stopped")
    except ValueError:
        return _failed("gave no sensible answer")
    except ToolError:
        return _failed("failed or needed too much memory")
    if cache.is_on:
        cache.put(key, answer)
    return lines, ()


def _failed(text: str) -> tuple[Lines, tuple[Problem, ...]]:
    message = (
        f"the process that decodes the line table {text}: there are addresses in place of lines; "
        "compile again with -lineinfo"
    )
    return Lines(), (Problem(ProblemCode.LINES_NOT_READ, message),)
