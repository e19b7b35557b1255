# SPDX-License-Identifier: Apache-2.0
"""Worker processes: what dies, hangs, eats memory or is cancelled is gone, children and all, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gpadvisor.sandbox import pool as workers
from gpadvisor.sandbox.pool import Workers
from gpadvisor.sandbox.pool_limits import JobError, Limits, WorkerError
from gpadvisor.sandbox.processes import descendants

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
]

JOBS = '''
import itertools, json, os, signal, subprocess, sys, time
from gpadvisor.errors import ProfileFormatError, ToolError
from gpadvisor.sandbox import children
from gpadvisor.sandbox.frames import HEAD
from gpadvisor.sandbox.codec import from_bytes
from gpadvisor.source.facts import SourceFacts

def echo(arguments, said):
    return arguments

def talk(arguments, said):
    print("words on standard output", flush=True)
    os.write(1, b"bytes on file descriptor 1\\n")
    subprocess.run(["echo", "words of a child"], check=True)
    said("half done")
    return sys.stdin.read() if arguments.get("read") else "done"

def die(arguments, said):
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

def eat(arguments, said):
    return len(bytearray(64 << 30))

def refuse(arguments, said):
    raise ProfileFormatError("the file is empty")

def break_(arguments, said):
    return 1 // 0

def linger(arguments, said):
    """Children in sessions of their own; with "deaf", Python cannot react to a signal, either."""
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    said(f"{os.getpid()} {child.pid}")
    if arguments.get("deaf"):
        sum(itertools.repeat(0))
    try:
        time.sleep(1000)
    finally:
        if not arguments.get("deaf"):
            child.kill()
            child.wait()

def call(arguments):
    """The facts of a source, parsed in a process of its own."""
    limits = {"timeout_seconds": 60, "memory_bytes": 2 << 30, "output_bytes": 64 << 20}
    limits |= {name: arguments[name] for name in limits if name in arguments}
    begun = time.monotonic()
    given_up = lambda: arguments.get("give_up") and time.monotonic() > begun + 0.05
    request = json.dumps([["k.cu", arguments.get("source", "")]]).encode()
    entry = arguments.get("entry", "gpadvisor.source.reading:answer")
    return children.call(entry, request, cancelled=given_up, **limits)

def parse(arguments, said):
    (facts,) = from_bytes(call(arguments), list[SourceFacts])
    return len(facts.of_text(arguments["source"].count("\\n") + 1).kernels)

def limits(arguments, said):
    try:
        return str(call(arguments))
    except ToolError as error:
        return f"{type(error).__name__}: {error}"

def forge(arguments, said):
    """What no worker of ours says, between its frames."""
    (server,) = (cell.cell_contents for cell in said.__closure__)
    body = json.dumps(arguments["document"]).encode()
    server._wire.write(HEAD.pack(len(body)) + body)
    return "done"

JOBS = {"forge": forge, "echo": echo, "talk": talk, "die": die, "eat": eat, "refuse": refuse}
JOBS |= {"break": break_, "linger": linger, "parse": parse, "limits": limits}
'''


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers with jobs of ours, which do what no job should."""
    (tmp_path / "odd_jobs.py").write_text(JOBS, encoding="utf-8")
    ours = f"sys.path.insert(0, {str(tmp_path)!r}); "
    code = workers._START.replace("from gpadvisor", ours + "from gpadvisor")
    monkeypatch.setattr(workers, "_START", code)


@asynccontextmanager
async def pool(**limits: Any) -> AsyncIterator[Workers]:
    before = set(descendants(os.getpid()))  # another test's library may keep a process for all that follow
    one = Workers("odd_jobs:JOBS", Limits(**limits))
    try:
        yield one
        assert one.busy == 0
    finally:
        await one.close()
        assert not [pid for pid in descendants(os.getpid()) if pid not in before and alive(pid)]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state != b"Z"


async def gone(pid: int) -> None:
    for _ in range(600):
        if not alive(pid):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"process {pid} lives on")


@pytest.mark.usefixtures("start")
async def test_what_jobs_print_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gpadvisor.sandbox.pool")
    said: list[str] = []
    async with pool() as one:
        assert await one.run("talk", {}, timeout_seconds=60, progress=said.append) == "done"
        assert await one.run("talk", {"read": True}, timeout_seconds=60) == "", "standard input is empty"
        assert await one.run("echo", {"a": [1, None, "ü"]}, timeout_seconds=60) == {"a": [1, None, "ü"]}
    assert said == ["half done"]
    for words in ("words on standard output", "bytes on file descriptor 1", "words of a child"):
        assert any(words in record.getMessage() for record in caplog.records)


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(
    ("job", "error", "words"),
    [
        ("die", WorkerError, r"SIGKILL \(last words\) and was replaced"),
        ("eat", WorkerError, "more memory than gpadvisor.analysis.memoryMib allows"),
        ("refuse", JobError, "^the file is empty$"),
        ("break", WorkerError, "internal error, ZeroDivisionError"),
        ("unknown", WorkerError, "was replaced"),
    ],
)
async def test_a_failure_is_one_sentence_and_the_next_job_works(
    job: str, error: type[Exception], words: str
) -> None:
    async with pool(memory_bytes=4 << 30) as one:
        with pytest.raises(error, match=words) as caught:
            await one.run(job, {}, timeout_seconds=60)
        assert "\n" not in str(caught.value)
        assert await one.run("echo", {"n": 1}, timeout_seconds=60) == {"n": 1}


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "too long"])
async def test_what_is_stopped_takes_its_children_along(*, deaf: bool, how: str) -> None:
    said: list[str] = []
    async with pool() as one:
        await one.run("echo", {}, timeout_seconds=60)
        limit = 3.0 if how == "too long" else 600.0
        task = asyncio.ensure_future(
            one.run("linger", {"deaf": deaf}, timeout_seconds=limit, progress=said.append)
        )
        while not said:
            await asyncio.sleep(0.02)
        pids = [int(word) for word in said[0].split()]
        assert all(map(alive, pids))
        if how == "cancelled":
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(WorkerError, match="took longer than 3 s and was stopped"):
                await task
        for pid in pids:
            await gone(pid)
        assert await one.run("echo", {"n": 1}, timeout_seconds=60) == {"n": 1}


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(
    "document",
    [
        [],
        "progress",
        {},
        {"progress": 1},
        {"more": 1},
        {"result": 1, "more": 1},
        {"failure": {"error": "ToolError"}},
        {"failure": {"error": "ToolError", "message": "x"}, "messages": [1]},
        {"stop": "0"},
        {"start": 0},
        {"start": 0, "call": {"entry": "gpadvisor.source.reading:answer"}},
    ],
)
async def test_what_no_worker_says_ends_it(document: object) -> None:
    async with pool() as one:
        with pytest.raises(WorkerError, match="was replaced"):
            await one.run("forge", {"document": document}, timeout_seconds=60)
        assert await one.run("echo", {"text": "on"}, timeout_seconds=60) is not None


@pytest.mark.usefixtures("start")
async def test_workers_end_with_their_server() -> None:
    """The pipe closes as it does when the server is killed."""
    async with pool() as one:
        said: list[str] = []
        task = asyncio.ensure_future(one.run("linger", {}, timeout_seconds=600, progress=said.append))
        while not said:
            await asyncio.sleep(0.02)
        (busy,) = one._busy
        assert busy.process.stdin is not None
        busy.process.stdin.close()
        for pid in map(int, said[0].split()):
            await gone(pid)
        with pytest.raises(WorkerError):
            await task
        assert not busy.starter.folder.exists()


@pytest.mark.usefixtures("start")
async def test_a_quick_job_does_not_wait_for_long_ones() -> None:
    async with pool(count=1) as one:
        said: list[str] = []
        task = asyncio.ensure_future(one.run("linger", {}, timeout_seconds=600, progress=said.append))
        while not said:
            await asyncio.sleep(0.02)
        assert await one.run("echo", {"n": 2}, timeout_seconds=60, quick=True) == {"n": 2}
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.usefixtures("start")
async def test_what_is_wanted_most_when_a_worker_is_free_is_next() -> None:
    """Ranks may change while jobs wait; jobs that are cancelled meanwhile take no turn."""
    ranks = dict.fromkeys(range(6), 0)
    done: list[int] = []
    async with pool(count=1) as one:
        said: list[str] = []
        first = asyncio.ensure_future(one.run("linger", {}, timeout_seconds=600, progress=said.append))

        async def job(number: int) -> None:
            await one.run("echo", {}, timeout_seconds=60, rank=lambda: ranks[number])
            done.append(number)

        while not said:
            await asyncio.sleep(0.02)
        waiting = [asyncio.ensure_future(job(number)) for number in ranks]
        await asyncio.sleep(0)
        ranks |= {3: 1, 4: 2}
        waiting[1].cancel()
        first.cancel()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        assert done == [4, 3, 0, 2, 5]
        assert await one.run("echo", {"n": 1}, timeout_seconds=60) == {"n": 1}


@pytest.mark.usefixtures("start")
async def test_a_spare_is_there_before_it_is_needed() -> None:
    async with pool() as one:
        one.keep_spare()
        one.keep_spare()
        assert len(one._tasks) == 1, "one is being started"
        end = time.monotonic() + 60
        while not one._idle and time.monotonic() < end:
            await asyncio.sleep(0.02)
        (spare,) = one.pids
        assert await one.run("echo", {}, timeout_seconds=60) == {}
        assert spare in one.pids


@pytest.mark.usefixtures("start")
async def test_beside_a_job_a_spare_waits_until_the_processors_have_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    load = [1000.0, 1000.0, 0.0]

    def answer() -> tuple[float, float, float]:
        asked.append(load[len(asked)])
        return asked[-1], 0.0, 0.0

    monkeypatch.setattr(os, "getloadavg", answer)
    monkeypatch.setattr(workers, "_SPARE_SECONDS", 0.1)
    async with pool() as one:
        said: list[str] = []
        task = asyncio.ensure_future(one.run("linger", {}, timeout_seconds=600, progress=said.append))
        end = time.monotonic() + 60
        while not one._idle and time.monotonic() < end:
            assert asked == load or not one._is_adding
            await asyncio.sleep(0.02)
        assert asked == load
        assert len(one.pids) == 2
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def parents(words: str) -> set[int]:
    """Who started the processes below this one that have some words in their command."""
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if words.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1]))
    return found


@pytest.mark.usefixtures("start")
async def test_no_child_is_inside_of_another() -> None:
    """What a job reads in a process of its own is started beside its worker."""
    source = "".join(f"__global__ void k{at}(float *p) {{ p[{at}] = {at}; }}\n" for at in range(3000))
    async with pool() as one:
        await one.run("echo", {}, timeout_seconds=60)
        job = asyncio.ensure_future(one.run("parse", {"source": source}, timeout_seconds=300))
        seen: set[int] = set()
        while not job.done():
            seen |= parents("sandbox.child")
            await asyncio.sleep(0.01)
        assert await job == 3000
        assert seen == {os.getpid()}


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"timeout_seconds": 0.01}, "ToolTimeoutError: .* did not end within 0.01 s"),
        ({"memory_bytes": 1 << 20}, "ToolFailedError: "),
        ({"output_bytes": 10}, "ToolFailedError: .*is larger than the 10 bytes"),
        ({"entry": "os:abort"}, "ToolFailedError: os:abort is not started for a worker"),
        ({"entry": "gpadvisor.source.nothing:answer"}, "ToolFailedError: .*ModuleNotFoundError"),
    ],
)
async def test_a_call_of_a_worker_has_its_own_limits(asked: dict[str, Any], words: str) -> None:
    async with pool() as one:
        assert re.match(words, await one.run("limits", asked, timeout_seconds=60))
        assert await one.run("parse", {"source": "__global__ void k() {}"}, timeout_seconds=60) == 1


@pytest.mark.usefixtures("start")
async def test_a_call_ends_with_what_asked_for_it() -> None:
    """Stopped by the job itself, and with the job."""
    source = "__global__ void k() { x = (((1))); }\n" * 20_000
    async with pool() as one:
        said = await one.run("limits", {"source": source, "give_up": True}, timeout_seconds=60)
        assert said.startswith("CancelledError: ")
        job = asyncio.ensure_future(one.run("parse", {"source": source}, timeout_seconds=300))
        while not parents("sandbox.child"):
            await asyncio.sleep(0.01)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        while parents("sandbox.child"):
            await asyncio.sleep(0.01)
