# SPDX-License-Identifier: Apache-2.0
"""What runs in a child process of ``children``: limits first, then one function, whose answer is written."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from gpadvisor.sandbox.limits import end_with_parent, limit_memory, limit_time_and_files


def main(arguments: list[str]) -> None:
    """Answer a request.

    ``arguments``: ``module:function``, the files of request and answer, bytes and seconds at most.
    """
    entry, request, answer, memory_bytes, cpu_seconds = arguments
    end_with_parent()
    limit_memory(int(memory_bytes))
    limit_time_and_files(int(cpu_seconds), int(memory_bytes))
    os.dup2(2, 1)  # what a library prints
    module, _, function = entry.partition(":")
    Path(answer).write_bytes(getattr(import_module(module), function)(Path(request).read_bytes()))
