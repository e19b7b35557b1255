# SPDX-License-Identifier: Apache-2.0
"""Where the time of one run goes: ``python -m bench.stages structure|advise FILE``, seconds per stage."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpadvisor.__main__ import relax_collector

_STARTED: Final = time.perf_counter()

STAGES: Final = (
    ("read the report", "gpadvisor.store.isolation", "_profile"),
    ("read the ELF", "gpadvisor.cubin", "read_cubin"),
    ("nvdisasm itself", "gpadvisor.sandbox.tools", "run_tool"),
    ("parse its output", "gpadvisor.sass", "parse_json"),
    ("decode", "gpadvisor.sass", "decode"),
    ("lines and inlining", "gpadvisor.cubin", "decode_lines"),
    ("control flow", "gpadvisor.analyzer", "build_program"),
    ("blame", "gpadvisor.blamer", "blame"),
    ("match, estimate", "gpadvisor.advice.evaluate", "evaluate"),
    ("rank, sum up", "gpadvisor.advice.kernel", "advise_kernel"),
    ("render", "gpadvisor.report.text", "render_text"),
)


class StageClock:
    """Exclusive time per stage: a stage inside another, or in a thread, stops the clock of the one before."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = _STARTED

    def _charge(self) -> None:
        now = time.perf_counter()
        name = self._open[-1] if self._open else "imports and the rest"
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, on the clock."""

        @functools.wraps(function)
        def wrapper(*args: Any, **options: Any) -> Any:
            self._charge()
            self._open.append(name)
            try:
                return function(*args, **options)
            finally:
                self._charge()
                self._open.remove(name)  # a thread may have begun another one since

        return wrapper

    def finish(self) -> dict[str, float]:
        """Seconds by stage, in order."""
        self._charge()
        order = [*(name for name, _, _ in STAGES), "imports and the rest"]
        return {name: self.seconds[name] for name in order if name in self.seconds}


def put_on_the_clock(clock: StageClock) -> None:
    """Replace each stage's function wherever a module of the package has it under any name."""
    for name, module, attribute in STAGES:
        if module not in sys.modules:
            continue  # this job does without it
        original = getattr(sys.modules[module], attribute)
        wrapped = clock.timed(name, original)
        for loaded in [entry for key, entry in sys.modules.items() if key.startswith(("gpadvisor", "bench"))]:
            for key, value in list(vars(loaded).items()):
                if value is original:
                    setattr(loaded, key, wrapped)


def main(what: str, path: str) -> None:
    """Run one job with the clock on."""
    clock = StageClock()
    if what == "structure":
        importlib.import_module("gpadvisor.analyzer")  # imported later else, and not put on the clock
        job = importlib.import_module("bench.structure").structure
        relax_collector()
        put_on_the_clock(clock)
        job(Path(path))
    else:
        for lazy in ("gpadvisor.pipeline.advise", "gpadvisor.report.text", "gpadvisor.toolchain"):
            importlib.import_module(lazy)
        command_line = importlib.import_module("gpadvisor.cli").main
        relax_collector()
        put_on_the_clock(clock)
        with contextlib.redirect_stdout(io.StringIO()):
            code = command_line([what, path])
        if code:
            raise SystemExit(code)
    print(json.dumps(clock.finish()))


if __name__ == "__main__":
    main(*sys.argv[1:])
