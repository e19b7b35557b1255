# SPDX-License-Identifier: Apache-2.0
"""Tries changes in copies of one process that has imported and collected all: a test run is a fork, no start.

Of a change only the tests that run the changed function are asked, those that run its line and the quickest
first. It is set into the function itself, so that all who hold it run it; another value of a module is bound
wherever it was imported.
"""

from __future__ import annotations

import ast
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing import Pipe
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

import pytest

CPU_SECONDS: Final = 10
"""Of one change, beside twice what its tests took before; one that needs more does not end, and is caught."""
Line = tuple[str, int]
Functions = Mapping[str, Sequence[FunctionType]]


@dataclass(frozen=True, slots=True)
class Change:
    """A changed tree of a module, and the first line of the statement or expression that it changes."""

    file: str
    line: int
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class Known:
    """Which tests run a line, how long each takes, and which fail without any change."""

    tests: dict[Line, set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def changed_functions(change: Change, functions: Functions) -> dict[FunctionType, CodeType]:
    """Functions with the code that the change gives them; none where it is of no function."""
    new = {_key(code): code for code in _codes(compile(change.tree, change.file, "exec", dont_inherit=True))}
    return {
        function: new[_key(function.__code__)]
        for function in functions.get(change.file, ())
        if new.get(_key(function.__code__), function.__code__) != function.__code__
    }


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and all that stands inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def functions_by_file() -> Functions:
    """All that there are now."""
    found: dict[str, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            found.setdefault(one.__code__.co_filename, []).append(one)
    return found


def changed_value(change: Change) -> tuple[ModuleType, str, ast.expr] | None:
    """The module's name that a change gives another value; None where it changes something else."""
    files = {getattr(one, "__file__", None): one for one in list(sys.modules.values())}
    for statement in change.tree.body:
        if statement.lineno <= change.line <= (statement.end_lineno or 0) and change.file in files:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    return files[change.file], name, value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    return files[change.file], name, value
    return None


class Fate(Enum):
    """What became of a change: the exit status of the process that tried it."""

    SURVIVED = 0
    CAUGHT = 1
    UNDECIDED = 2  # it could not be made, or not everywhere
    UNTRIED = 3  # there was no time


class Trials:
    """A pytest plugin that, in place of running the tests once, tries changes with those that run them."""

    def __init__(self, folder: str, changes: Iterable[Change], jobs: int, end: float) -> None:
        """Of changes below a folder, so many at a time, until that time of the monotonic clock."""
        self._folder = folder
        self._changes = changes
        self._jobs = jobs
        self._end = end
        self._items: dict[str, pytest.Item] = {}
        self._known = Known()
        self._functions: Functions = {}
        self.fates: dict[
            int, Fate
        ] = {}  # by the number of the change; not of those for which there was no time
        self.failed: list[str] = []  # without any change

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Which tests run what, then each change in a process of its own."""
        self._items = {item.nodeid: item for item in session.items}
        self._known = _in_fork(self._learn, self._end) or Known()
        self.failed = self._known.failed
        self._functions = functions_by_file()
        gc.freeze()  # a collection in a copy would copy all the memory that it looks at
        running: dict[int, int] = {}
        for number, change in enumerate(() if self.failed else self._changes):
            if time.monotonic() >= self._end:
                break
            if len(running) >= self._jobs:
                self._await(running)
            pid = os.fork()
            if pid == 0:
                fate = Fate.CAUGHT  # where the changed module does not even start
                try:
                    fate = self._fate(change)
                finally:
                    os._exit(fate.value)
            running[pid] = number
        while running:
            self._await(running)
        gc.unfreeze()
        return True

    def _await(self, running: dict[int, int]) -> None:
        while not (ended := [pair for pid in running if (pair := os.waitpid(pid, os.WNOHANG))[0]]):
            if time.monotonic() >= self._end:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for pid, status in ended:
            number, code = running.pop(pid), os.waitstatus_to_exitcode(status)
            if code != -signal.SIGKILL or time.monotonic() < self._end:
                self.fates[number] = Fate(code) if code in {0, 2} else Fate.CAUGHT

    def _learn(self) -> Known:
        known = Known()
        until = (time.monotonic() + self._end) / 2  # the other half is for the changes
        lines: set[Line] = set()

        def step(frame: FrameType, _: str, __: object) -> Any:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            return step

        def call(frame: FrameType, event: str, argument: object) -> Any:
            return step(frame, event, argument) if frame.f_code.co_filename.startswith(self._folder) else None

        for name, item in self._items.items():
            if time.monotonic() >= until:
                break
            lines.clear()
            started = time.process_time()
            sys.settrace(call)
            _run(item, None, known.failed.append)
            sys.settrace(None)
            known.seconds[name] = time.process_time() - started
            for line in lines:
                known.tests.setdefault(line, set()).add(name)
        return known

    def _fate(self, change: Change) -> Fate:
        _be_silent()
        chosen: set[str] = set()
        functions = changed_functions(change, self._functions)
        for function, code in functions.items():
            chosen |= self._of(function.__code__)
            if function.__code__.co_freevars != code.co_freevars:
                return Fate.UNDECIDED
            function.__code__ = code
        value = None if functions else changed_value(change)
        if value is not None:
            chosen = self._bind(*value)
        run = self._known.tests.get((change.file, change.line), ())
        names = sorted(chosen, key=lambda name: (name not in run, self._known.seconds[name]))
        seconds = CPU_SECONDS + int(2 * sum(map(self._known.seconds.__getitem__, names)))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        tests = [self._items[name] for name in names]
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            _run(item, following, lambda _: os._exit(Fate.CAUGHT.value))
        return Fate.SURVIVED if functions else Fate.UNDECIDED

    def _bind(self, module: ModuleType, name: str, value: ast.expr) -> set[str]:
        """Give a name another value wherever it is; the tests that run a function which uses it."""
        old = vars(module)[name]
        code = compile(ast.Expression(value), str(module.__file__), "eval", dont_inherit=True)
        new = eval(code, vars(module))
        users = {
            one.__file__: one
            for key, one in list(sys.modules.items())
            if key.startswith("gpadvisor") and vars(one).get(name) is old
        }
        for user in users.values():
            vars(user)[name] = new
        return {
            test
            for user in users
            for function in self._functions.get(user, ())
            if any(name in one.co_names for one in _codes(function.__code__))
            for test in self._of(function.__code__)
        }

    def _of(self, code: CodeType) -> set[str]:
        """The tests that run a line of a function."""
        lines = {line for one in _codes(code) for *_, line in one.co_lines()}
        return {
            test
            for line in lines
            if line is not None
            for test in self._known.tests.get((code.co_filename, line), ())
        }


def _run(item: pytest.Item, following: pytest.Item | None, tell: Callable[[str], None]) -> None:
    """Run a test, and say its name if it fails."""
    failures = _Failures(tell)
    plugins = item.config.pluginmanager
    plugins.register(failures)
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    plugins.unregister(failures)


def _in_fork(work: Callable[[], Known], end: float) -> Known | None:
    """What is found out in a process of its own, which leaves nothing behind here; None if too late."""
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        _be_silent()
        try:
            sender.send(work())
        finally:
            os._exit(0)
    sender.close()
    known = receiver.recv() if receiver.poll(max(0.0, end - time.monotonic())) else None
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return known


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


class _Failures:
    """Says the first of each test that fails."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A setup, a test or a teardown has ended."""
        if report.failed:
            self._tell(report.nodeid)
