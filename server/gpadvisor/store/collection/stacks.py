# SPDX-License-Identifier: Apache-2.0
"""Host call stacks: Python's frames first, then native ones, innermost first, without the profiler's own."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from gpadvisor.cubin import demangle
from gpadvisor.model.profile import CallFrame, LaunchPath
from gpadvisor.store.collection.executions import ExecutionGroup
from gpadvisor.store.collection.files import HostLine
from gpadvisor.store.collection.process import Process, Symbol

_MEASURING: Final = ("libgpadvisor_inject", "libcupti.so", "libcuda.so")


HostLines: TypeAlias = Mapping[tuple[str, int], HostLine]


def call_stack(process: Process, path: int, lines: HostLines) -> tuple[CallFrame, ...]:
    """The frames of a recorded path; ``lines`` knows more of native ones than the loader did."""
    python, native = process.paths.get(path, ((), ()))
    frames = [_python(process, frame) for frame in python if frame in process.frames]
    measuring = True
    for address in native:
        frame = _native(process, address, lines)
        measuring = measuring and _is_measuring(frame.module)
        if not measuring:
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


def _native(process: Process, address: int, lines: HostLines) -> CallFrame:
    symbol = process.symbols.get(address)
    if symbol is None:
        return CallFrame(module=None, address=address, function=None, file=None, line=None)
    module = module_of(process, symbol)
    function, file, line = lines.get((module or "", symbol.offset), (None, None, None))
    exported = process.name(symbol.function)
    if function is None and exported is not None:
        function = demangle(exported)
    return CallFrame(module=module, address=symbol.offset, function=function, file=file, line=line)


def module_of(process: Process, symbol: Symbol) -> str | None:
    """The file that an address lies in."""
    module = process.name(symbol.module)
    return process.executable or module if module == "/proc/self/exe" else module


def _is_measuring(module: str | None) -> bool:
    """Whether a frame belongs to what measures or to the driver, and so says nothing of the application."""
    return module is not None and posixpath.basename(module).startswith(_MEASURING)


def launch_paths(groups: Iterable[ExecutionGroup], lines: HostLines) -> Iterator[LaunchPath]:
    """All paths of kernels that are launched on more than one and whose samples are of all launches."""
    by_kernel: defaultdict[tuple[str, str | None], list[ExecutionGroup]] = defaultdict(list)
    for executed in groups:
        by_kernel[executed.key.kernel, executed.key.binary].append(executed)
    for (kernel, binary), same in by_kernel.items():
        if all(len(executed.paths) < 2 for executed in same):
            continue
        for executed in same:
            timed = executed.duration_ns is not None
            for path, (launches, nanoseconds) in executed.paths.items():
                yield LaunchPath(
                    kernel=kernel,
                    binary=binary,
                    launches=int(launches),
                    duration_ns=nanoseconds if timed else None,
                    frames=call_stack(executed.process, path, lines),
                )
