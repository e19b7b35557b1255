# SPDX-License-Identifier: Apache-2.0
"""Host call stacks: Python's frames first, then native ones, innermost first, without the profiler's own."""

from __future__ import annotations

import posixpath
from typing import Final

from gpadvisor.model.profile import CallFrame
from gpadvisor.store.collection.process import Process

_MEASURING: Final = ("libgpadvisor_inject", "libcupti.so", "libcuda.so")


def call_stack(process: Process, path: int) -> tuple[CallFrame, ...]:
    """The frames of a recorded path."""
    python, native = process.paths.get(path, ((), ()))
    frames = [_python(process, frame) for frame in python if frame in process.frames]
    own = True
    for address in native:
        frame = _native(process, address)
        own = own and _is_measuring(frame.module)
        if not own:
            frames.append(frame)
    return tuple(frames)


def _python(process: Process, identifier: int) -> CallFrame:
    file, function, line = process.frames[identifier]
    return CallFrame(
        module="python",
        address=None,
        function=process.name(function),
        file=process.name(file),
        line=line or None,
    )


def _native(process: Process, address: int) -> CallFrame:
    symbol = process.symbols.get(address)
    if symbol is None:
        return CallFrame(module=None, address=address, function=None, file=None, line=None)
    module = process.name(symbol.module)
    if module == "/proc/self/exe":
        module = process.executable or module
    return CallFrame(
        module=module, address=symbol.offset, function=process.name(symbol.function), file=None, line=None
    )


def _is_measuring(module: str | None) -> bool:
    """Whether a frame belongs to what measures or to the driver, and so says nothing of the application."""
    return module is not None and posixpath.basename(module).startswith(_MEASURING)
