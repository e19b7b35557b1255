# SPDX-License-Identifier: Apache-2.0
"""Run an application with the injection library in it, and see to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gpadvisor.profiler.cupti.options import Collection, CollectOptions, Heartbeat


def collect(
    command: Sequence[str],
    output: Path,
    options: CollectOptions | None = None,
    *,
    progress: Callable[[Heartbeat], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Collection:
    """Run ``command`` under the collector; its standard streams stay the caller's.

    Ctrl-C and ``cancelled`` send SIGINT to the application, so that it ends as it would want; what was
    collected until then is kept. Nothing of the application's process group outlives this call.

    Args:
        command: the program and its arguments; no shell takes part.
        output: a directory to be made for the collection; it must not exist or be empty.
        options: how to collect.
        progress: called about twice a second with what there is so far.
        cancelled: asked as often; when true, the application is stopped and ``Ending.CANCELLED`` returned.

    Raises:
        ToolNotFoundError: no C compiler, no CUPTI headers, or the program does not exist.
        ToolFailedError: the library could not be built.
        ProfileError: ``output`` cannot be used.
    """
    raise NotImplementedError
