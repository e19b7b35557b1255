# SPDX-License-Identifier: Apache-2.0
"""The server's process: its stream stays clean, it ends when it should, and nothing else takes it down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from tests.kernels import KERNELS
from tests.lsp_client import PATIENCE_SECONDS, editor, plain
from tests.lsp_projects import make_project, report_of

from gpadvisor.sandbox.processes import descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

KERNEL = "thermal_stencil"
NAME = "kernel.cu"
COMPILERS = {"nvcc", "cicc", "cudafe++", "ptxas"}
SERVER = [sys.executable, "-m", "gpadvisor", "lsp"]
_NOISY = """
import os, subprocess, sys
import gpadvisor.lsp.server as server
def noise(where):
    print("stray print", where)
    sys.__stdout__.write("stray write\\n"); sys.__stdout__.flush()
    os.write(1, b"stray bytes\\n")
    subprocess.run(["echo", "stray child"])
before = server.Session.opened
def opened(self, params):
    noise("in a handler"); before(self, params)
server.Session.opened = opened
start = server.Server.__init__
server.Server.__init__ = lambda self: (noise("at the start"), start(self))[1]
from gpadvisor.cli import main
sys.exit(main(["lsp"]))
"""


def message(method: str, params: object, number: int | None = None) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        body["id"] = number
    data = json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


def messages(stream: bytes) -> list[dict[str, object]]:
    """Every message of a stream that holds nothing else; anything else is an assertion."""
    found = []
    while stream:
        head, separator, rest = stream.partition(b"\r\n\r\n")
        assert separator, stream[:200]
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        assert set(lines) <= {b"Content-Length", b"Content-Type"}, head
        size = int(lines[b"Content-Length"])
        found.append(json.loads(rest[:size]))
        stream = rest[size:]
    return found


IMPORT = "gpadvisor.server.importProfile"
INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}
TRUSTING = {**INITIALIZE, "initializationOptions": {"trusted": True}}


def test_nothing_that_is_printed_reaches_the_stream(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(_NOISY, encoding="utf-8")
    item = {"uri": (tmp_path / "a.txt").as_uri(), "languageId": "x", "version": 1, "text": ""}
    sent = (
        message("initialize", INITIALIZE, 1)
        + message("initialized", {})
        + message("textDocument/didOpen", {"textDocument": item})
        + message("shutdown", None, 2)
        + message("exit", None)
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "noisy.py")],
        input=sent,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, "GPADVISOR_CACHE": ""},
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = {one["id"]: one for one in messages(done.stdout) if "method" not in one}
    assert set(answers) == {1, 2}
    said = done.stderr.decode()
    for words in (
        "stray print at the start",
        "stray print in a handler",
        "stray bytes",
        "stray child",
        "stray write",
    ):
        assert words in said


def test_requests_that_are_none_are_answered(tmp_path: Path) -> None:
    document, nobody = {"uri": (tmp_path / "a.cu").as_uri()}, {"uri": "file:///%00.cu"}
    start = {"line": 0, "character": 0}
    sent = (
        message("initialize", INITIALIZE, 1)
        + message("initialized", {})
        + b"Content-Length: 4\r\n\r\n{not"
        + message("textDocument/hover", {"textDocument": document}, 2)
        + message("textDocument/hover", None, 3)
        + message("textDocument/hover", {"textDocument": nobody, "position": start}, 4)
        + message("gpadvisor/sass", {"uri": 5}, 5)
        + message("workspace/executeCommand", {"command": IMPORT, "arguments": ["\0"]}, 6)
        + message("textDocument/didOpen", {"textDocument": {**nobody, "languageId": "x", "version": 1}})
        + message("textDocument/hover", {"textDocument": document, "position": start}, 7)
        + message("shutdown", None, 8)
        + message("exit", None)
    )
    done = subprocess.run(SERVER, input=sent, capture_output=True, timeout=60, check=False, cwd=tmp_path)
    answers = {one["id"]: one for one in messages(done.stdout) if "method" not in one}
    assert [number for number, one in sorted(answers.items()) if "error" in one] == [2, 3, 5, 6]
    assert {4, 7, 8} <= set(answers)
    assert "Traceback" not in (done.stdout + done.stderr).decode()
    assert done.returncode == 0


def test_wrong_words_of_a_command_are_refused_in_a_sentence(tmp_path: Path) -> None:
    asked: dict[int, tuple[str, object]] = dict(
        enumerate(
            (
                ("applyFix", None),
                ("applyFix", ["x", 5]),
                ("checkFix", []),
                ("importProfile", ["\ud800"]),
                ("analyzeFile", [{}]),
                ("modelFile", ["file:///\ud800.cu"]),
                ("selectKernel", [None]),
                ("profile", []),
            ),
            start=10,
        )
    )
    sent = message("initialize", TRUSTING, 1) + message("initialized", {})
    for number, (command, arguments) in asked.items():
        words = {"command": f"gpadvisor.server.{command}", "arguments": arguments}
        sent += message("workspace/executeCommand", words, number)
    sent += message("shutdown", None, 3) + message("exit", None)
    done = subprocess.run(
        SERVER, input=sent, capture_output=True, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path
    )
    answers = {
        one["id"]: one for one in messages(done.stdout) if one.get("id") in asked and "method" not in one
    }
    assert answers.keys() == asked.keys()
    for number, answer in answers.items():
        error = answer["error"]
        assert isinstance(error, dict)
        assert error["code"] in {-32602, -32803}, asked[number]
        assert "traceback" not in json.dumps(answer).lower()
    assert "Traceback" not in done.stderr.decode()


def test_a_long_text_in_place_of_a_list_is_refused_at_once(tmp_path: Path) -> None:
    """Each letter would be a wrong diagnostic with an account of its own: minutes and a gigabyte."""
    document, start = {"uri": (tmp_path / "a.cu").as_uri()}, {"line": 0, "character": 0}
    asked = {"textDocument": document, "range": {"start": start, "end": start}}
    sent = (
        message("initialize", INITIALIZE, 1)
        + message("initialized", {})
        + message("textDocument/codeAction", {**asked, "context": {"diagnostics": "A" * 200_000}}, 2)
        + message("shutdown", None, 3)
        + message("exit", None)
    )
    done = subprocess.run(
        SERVER, input=sent, capture_output=True, timeout=PATIENCE_SECONDS, check=False, cwd=tmp_path
    )
    answers = {one["id"]: one for one in messages(done.stdout) if "method" not in one}
    assert answers[2]["error"] == {"code": -32602, "message": "Invalid Params"}
    assert "result" in answers[3]
    assert done.returncode == 0


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: abc\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Type: text\r\n\r\n",
        b'{"jsonrpc": "2.0", "method": "exit"}\n',
        b"x" * 10_000,
    ],
)
def test_a_message_whose_end_cannot_be_known_ends_the_server(tmp_path: Path, header: bytes) -> None:
    """The client's pipe stays open, as it does while an editor waits for an answer."""
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.write(message("initialize", INITIALIZE, 1) + header)
        server.stdin.flush()
        try:
            assert server.wait(PATIENCE_SECONDS) == 1
        finally:
            server.kill()
        said = server.stderr.read().decode()
    assert "the server ends" in said
    assert "Traceback" not in said


def test_headers_are_read_as_the_protocol_allows_them(tmp_path: Path) -> None:
    body = message("initialize", INITIALIZE, 1).partition(b"\r\n\r\n")[2]
    sent = b"content-type: x; charset=utf-8\r\ncontent-length:%d\r\n\r\n%s" % (len(body), body)
    sent += message("shutdown", None, 2) + message("exit", None)
    done = subprocess.run(SERVER, input=sent, capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert [one["id"] for one in messages(done.stdout) if "id" in one] == [1, 2]
    assert done.returncode == 0


@pytest.mark.toolkit
def test_killed_with_all_its_processes_the_next_server_cleans_up(tmp_path: Path) -> None:
    """As the end of memory, or of a container, ends them: nothing of theirs runs any more."""
    project = make_project(tmp_path / "project", KERNEL)
    place = tmp_path / "temporary"
    place.mkdir()
    item = {"uri": (project / NAME).as_uri(), "languageId": "cuda-cpp", "version": 1}
    item["text"] = (project / NAME).read_text(encoding="utf-8")
    opened = (
        message("initialize", {**TRUSTING, "rootUri": project.as_uri()}, 1)
        + message("initialized", {})
        + message("textDocument/didOpen", {"textDocument": item})
    )
    environment = {**os.environ, "TMPDIR": str(place), "GPADVISOR_CACHE": ""}
    left: set[Path] = set()
    for killed in (True, False):
        with subprocess.Popen(
            SERVER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=tmp_path, env=environment
        ) as server:
            assert server.stdin is not None
            server.stdin.write(opened)
            server.stdin.flush()
            end = time.monotonic() + PATIENCE_SECONDS
            while not any(_name(pid) in COMPILERS for pid in descendants(server.pid)):
                assert time.monotonic() < end, "no compiler was started"
                time.sleep(0.01)
            if killed:
                everyone = [server.pid, *descendants(server.pid)]
                _signal(everyone, signal.SIGSTOP)
                _signal(everyone, signal.SIGKILL)
                server.wait()
                left = set(place.iterdir())
                assert left, "the kill came too late to leave anything"
            else:
                assert not left & set(place.iterdir())
                server.stdin.write(message("shutdown", None, 2) + message("exit", None))
                server.stdin.flush()
                server.wait(PATIENCE_SECONDS)
    assert not list(place.iterdir())


def test_the_server_ends_when_its_input_does(tmp_path: Path) -> None:
    sent = message("initialize", INITIALIZE, 1) + message("initialized", {})
    done = subprocess.run(SERVER, input=sent, capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert messages(done.stdout)[0]["id"] == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.toolkit
@pytest.mark.parametrize("how", ["input ends", "output is closed", "signal", "shutdown and exit at once"])
def test_stopped_in_the_middle_of_an_analysis_it_ends_without_a_traceback(tmp_path: Path, how: str) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    item = {"uri": (project / NAME).as_uri(), "languageId": "cuda-cpp", "version": 1}
    item["text"] = (project / NAME).read_text(encoding="utf-8")
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=tmp_path
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(
            message("initialize", {**TRUSTING, "rootUri": project.as_uri()}, 1)
            + message("initialized", {})
            + message("textDocument/didOpen", {"textDocument": item})
        )
        server.stdin.flush()
        end = time.monotonic() + PATIENCE_SECONDS
        while not any(_name(pid) in COMPILERS for pid in descendants(server.pid)):
            assert time.monotonic() < end, "no compiler was started"
            time.sleep(0.01)
        if how == "output is closed":
            server.stdout.close()
            server.stdin.write(message("gpadvisor/debugInformation", None, 2))
            server.stdin.flush()
        elif how == "signal":
            server.terminate()
        elif how == "input ends":
            server.stdin.close()
        else:
            server.stdin.write(message("shutdown", None, 2) + message("exit", None))
            server.stdin.flush()
        code = server.wait(PATIENCE_SECONDS)
    assert code == (128 + signal.SIGTERM if how == "signal" else 0)
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")


def test_the_server_ends_with_the_client_though_the_pipe_stays_open(tmp_path: Path) -> None:
    parent = subprocess.Popen(["sleep", "1000"])
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as server:
        assert server.stdin is not None
        params = {**INITIALIZE, "processId": parent.pid}
        server.stdin.write(message("initialize", params, 1) + message("initialized", {}))
        server.stdin.flush()
        assert server.stdout is not None
        server.stdout.readline()
        parent.kill()
        parent.wait()
        assert server.wait(60) == 0


def test_nothing_is_imported_from_the_workspace(tmp_path: Path) -> None:
    """``python -m`` puts the current folder first, and editors start servers in the project's."""
    for name in ("numpy", "tree_sitter", "cattrs", "duckdb", "asyncio"):
        (tmp_path / f"{name}.py").write_text(
            "import pathlib; pathlib.Path('ran').touch()\n", encoding="utf-8"
        )
    sent = message("initialize", INITIALIZE, 1) + message("shutdown", None, 2) + message("exit", None)
    done = subprocess.run(
        [sys.executable, "-P", *SERVER[1:]],
        input=sent,
        capture_output=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert not (tmp_path / "ran").exists()


@pytest.mark.asyncio
@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_killed_workers_are_replaced(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL, report=report_of(KERNEL))
    async with editor(project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        await one.shown(NAME, lambda found: any("[measured" in each.message for each in found))
        await one.status("idle")
        server = one.client._server
        _signal(descendants(server.pid), signal.SIGKILL)
        assert "Strength Reduction" in str(await one.hover(NAME, KERNELS[KERNEL].planted_line("def") - 1))
        seen = len(one.own["gpadvisor/status"])
        one.edit(NAME, one.texts[NAME] + "// more\n")
        one.save(NAME)
        states = one.own["gpadvisor/status"]
        await one.until(lambda: "busy" in [plain(each)["state"] for each in states[seen:]])
        assert (await one.status("idle"))["findings"] > 0
        await one.execute("gpadvisor.server.analyzeFile", one.uri(NAME))
        assert one.diagnostics(NAME)


@pytest.mark.asyncio
@pytest.mark.toolkit
async def test_a_source_that_does_not_compile_keeps_what_was_shown(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KERNEL)
    async with editor(project, settings={"debounceMilliseconds": 0}) as one:
        one.open(NAME)
        before = await one.shown(NAME)
        one.edit(NAME, one.texts[NAME] + "this is no CUDA\n")
        one.save(NAME)
        said = await one.status("error")
        assert "does not compile" in said["detail"]
        found = await one.shown(NAME, lambda all_: any(each.code == "GPA908" for each in all_))
        wrong = [each for each in found if each.code == "GPA908"]
        assert wrong[0].range.start.line == one.texts[NAME].count("\n") - 1
        assert len(found) == len(before) + len(wrong)
        assert not one.client.messages, "the build says so already"
        one.edit(NAME, one.texts[NAME].removesuffix("this is no CUDA\n"))
        one.save(NAME)
        await one.status("idle")


@pytest.mark.asyncio
@pytest.mark.toolkit
@pytest.mark.nvdisasm
async def test_progress_can_be_cancelled_and_the_compiler_ends(tmp_path: Path) -> None:
    """A compile that takes minutes, stopped by the button of its progress, whose title is short."""
    project = tmp_path / "project"
    project.mkdir()
    name = f"{'owner_repository__' * 4}{NAME}"
    # Templates that double their work at each level; nothing is left of it in the machine code.
    slow = (
        "template <int N, int K> struct T\n"
        "{ static const int v = T<N - 1, 2 * K>::v + T<N - 1, 2 * K + 1>::v; };\n"
        "template <int K> struct T<0, K> { static const int v = 1; };\n"
        "__global__ void k(int *p) { *p = T<19, 0>::v; }\n"
    )
    (project / name).write_text(slow, encoding="utf-8")
    async with editor(project) as one:
        one.open(name)
        tokens = await one.until(
            lambda: [key for key, values in one.client.progress_reports.items() if values]
        )
        server = one.client._server
        one.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token=tokens[0]))
        said = await one.status("noProfile", "idle")
        assert said["findings"] == 0
        for _ in range(100):
            pids = descendants(server.pid)
            running = [pid for pid in pids if _name(pid) in COMPILERS]
            if not running:
                break
            await asyncio.sleep(0.1)
        assert not running
        assert plain(one.own["gpadvisor/status"][-1])["state"] != "busy"
        kinds = [type(value).__name__ for value in one.client.progress_reports[tokens[0]]]
        assert kinds[0] == "WorkDoneProgressBegin"
        begin = one.client.progress_reports[tokens[0]][0]
        assert begin.cancellable
        assert begin.title == "GPA: analysing ow...itory__kernel.cu"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _signal(pids: Iterable[int], sent: signal.Signals) -> None:
    """To each that is still there: a child may end by itself after it was listed."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, sent)
