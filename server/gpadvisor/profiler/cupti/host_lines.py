# SPDX-License-Identifier: Apache-2.0
"""Functions and source lines of native host frames, asked of addr2line once the application has ended."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from gpadvisor.errors import CancelledError, ToolError
from gpadvisor.sandbox.tools import run_tool
from gpadvisor.store.collection.files import HostLine
from gpadvisor.store.paths import HOST_LINES

_PER_CALL: Final = 500
_ALL_SECONDS: Final = 10.0  # a library with debug information can take its time; the rest stays unnamed
_UNKNOWN: Final = "??"


def name_host_frames(
    output: Path,
    addresses: Mapping[str, frozenset[int]],
    *,
    cancelled: Callable[[], bool] | None = None,
) -> None:
    """Write beside the collection what its native frames are; without addr2line, nothing.

    Args:
        output: the collection.
        addresses: by module, offsets in its image.
        cancelled: asked while addr2line runs; when true, what is known so far is written.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return
    by_module: dict[str, dict[int, HostLine]] = {}
    deadline = time.monotonic() + _ALL_SECONDS
    with contextlib.suppress(CancelledError):
        # The application's own code first: it has the fewest addresses and the most interest.
        for module in sorted(addresses, key=lambda name: len(addresses[name])):
            seconds_left = deadline - time.monotonic()
            if seconds_left > 0 and Path(module).is_file():
                by_module[module] = _lines(tool, module, sorted(addresses[module]), seconds_left, cancelled)
    document = {
        module: {str(offset): line for offset, line in lines.items()}
        for module, lines in by_module.items()
        if lines
    }
    if document:
        with contextlib.suppress(OSError):  # names are a comfort, and no reason to lose a run
            (output / HOST_LINES).write_text(json.dumps(document), encoding="utf-8")


def _lines(
    tool: str, module: str, offsets: list[int], seconds: float, cancelled: Callable[[], bool] | None
) -> dict[int, HostLine]:
    result: dict[int, HostLine] = {}
    for index in range(0, len(offsets), _PER_CALL):
        batch = offsets[index : index + _PER_CALL]
        command = [tool, "-f", "-C", "-e", module, *(hex(offset) for offset in batch)]
        try:
            output = run_tool(command, timeout_seconds=seconds, cancelled=cancelled)
        except CancelledError:
            raise
        except ToolError:  # no symbols, or not in time
            return result
        rows = output.stdout.decode("utf-8", "replace").splitlines()
        result |= dict(_named(batch, rows))
    return result


def _named(offsets: list[int], rows: list[str]) -> Iterable[tuple[int, HostLine]]:
    """Two rows for each address: the function, then the file and line."""
    if len(rows) != 2 * len(offsets):
        return
    for offset, function, place in zip(offsets, rows[::2], rows[1::2], strict=True):
        file, _, number = place.partition(" (")[0].rpartition(":")
        has_name = function != _UNKNOWN or not file.startswith(_UNKNOWN)
        if has_name:
            yield (
                offset,
                (
                    None if function == _UNKNOWN else function,
                    None if file.startswith(_UNKNOWN) else file,
                    int(number) if number.isdigit() and int(number) else None,
                ),
            )
