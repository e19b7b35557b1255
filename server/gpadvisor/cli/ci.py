# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor ci``: what the action for GitHub, the template for GitLab and the hook of pre-commit run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpadvisor.cli import advise, baseline, options, placing
from gpadvisor.cli.compare import limit
from gpadvisor.cli.messages import answer, say
from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.errors import NoDeviceCodeError, ToolNotFoundError, UsageError
from gpadvisor.files import read_file, write_atomically

if TYPE_CHECKING:
    from gpadvisor.ci.check import Checked

_BASELINE: Final = ".gpadvisor-baseline.jsonl"
_DESCRIPTION: Final = """\
What the action for GitHub (action.yml), the template for GitLab (templates/gpadvisor.yml) and the hook
of pre-commit run: an analysis in every form that their services read, and one comment about it.

  gpadvisor ci check kernel.cu --baseline base.jsonl --fail-on new
  gpadvisor ci comment gpadvisor-out/comment.md
"""
_CHECK: Final = """\
Analyse inputs once and write advice.json, advice.sarif, codequality.json, advice.md, comment.md and
verdict.json into a folder. Exit code 1 where a gate is met, fails or is inconclusive. Several values
of an option may stand in one word, a line each; empty words count as not given.
"""
_COMMENT: Final = """\
Write a file as the one comment of gpadvisor on the pull request of this job, in place of the earlier one.
GITHUB_TOKEN is sent to the host of GITHUB_API_URL and to no other. Without a token that may comment, as in
pull requests from forks, the text is added to the summary of the job (GITHUB_STEP_SUMMARY), else printed.
"""
_HOOK: Final = """\
Compile CUDA sources and print what the machine code shows. Exit code 1 where the baseline lacks advice;
without a baseline nothing fails, and without a compiler nothing is done.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its own."""
    parser = commands.add_parser("ci", help="for pipelines: check, comment, hook", description=_DESCRIPTION)
    actions = parser.add_subparsers(metavar="check|comment|hook", required=True)
    action = actions.add_parser("check", help="analyse, write reports and a verdict", description=_CHECK)
    action.add_argument("inputs", metavar="INPUT", nargs="+", help="reports, snapshots, cubins or sources")
    action.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("gpadvisor-out"), help="default: gpadvisor-out"
    )
    action.add_argument("--baseline", metavar="FILE", default="", help="as of 'advise'")
    action.add_argument("--fail-on", metavar="CONDITION", action="append", default=[], help="as of 'advise'")
    action.add_argument("--before", metavar="FILE", default="", help="an earlier run, to compare with")
    action.add_argument("--gate", metavar="LIMIT", action="append", default=[], help="as of 'compare'")
    action.add_argument("--diff", metavar="BASE", default="", help="as of 'advise'")
    action.add_argument("--category", metavar="NAME", default="", help="as of 'advise'")
    action.set_defaults(run=_check)
    action = actions.add_parser("comment", help="one comment on the pull request", description=_COMMENT)
    action.add_argument("file", metavar="FILE", type=Path, help="Markdown, such as comment.md of 'check'")
    action.add_argument("--name", default="", help="of this comment, where a pull request has several")
    action.set_defaults(run=_comment)
    action = actions.add_parser("hook", help="check sources before a commit", description=_HOOK)
    action.add_argument("inputs", metavar="SOURCE", type=Path, nargs="*")
    action.add_argument(
        "--baseline", metavar="FILE", type=Path, default=Path(_BASELINE), help=f"default: {_BASELINE}"
    )
    action.add_argument("--arch", metavar="SM", help="architecture, such as sm_90")
    action.set_defaults(run=_hook)


def _lines(words: list[str]) -> list[str]:
    return [line.strip() for word in words for line in word.splitlines() if line.strip()]


def _request(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments with what a request asks for."""
    return argparse.Namespace(**{"kernel": None, "source_root": None, "format": "sarif"} | vars(arguments))


def _check(arguments: argparse.Namespace) -> int:
    from gpadvisor.ci.check import PipelineCheck, check

    advise_arguments = _request(arguments)
    advise_arguments.diff, advise_arguments.omit_suppressed = arguments.diff.strip() or None, False
    try:
        gates = tuple(advise.gate(line) for line in _lines(arguments.fail_on))
        limits = tuple(limit(line) for line in _lines(arguments.gate))
        advise_arguments.category = (
            placing.category(arguments.category.strip()) if arguments.category.strip() else None
        )
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from error
    inputs, before, baseline_path = (
        _lines(arguments.inputs),
        arguments.before.strip(),
        arguments.baseline.strip(),
    )
    if not inputs:
        raise UsageError("no input is named")
    if limits and not before:
        raise UsageError("--gate compares two runs; add --before FILE")
    if any(gate.new for gate in gates) and not baseline_path:
        raise UsageError("--fail-on new needs a baseline; add --baseline FILE")
    advise.refuse_unknown_rules([gate.code for gate in gates if gate.code is not None])
    pipeline_check = PipelineCheck(
        inputs=tuple(map(Path, inputs)),
        request=advise.make_request(advise_arguments),
        placing=placing.placing(advise_arguments),
        baseline=baseline.read_baseline(Path(baseline_path)) if baseline_path else None,
        gates=gates,
        before=Path(before) if before else None,
        limits=limits,
    )
    progress = TerminalProgress()
    try:
        checked = check(pipeline_check, progress)
    finally:
        progress.clear()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in checked.files.items():
        write_atomically(arguments.out / name, text.encode())
    _tell(checked)
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as stream:
            stream.write(f"verdict={checked.outcome.value}\n")
    return 0 if checked.outcome.value == "pass" else 1


def _tell(checked: Checked) -> None:
    answer(f"gpadvisor: {checked.outcome.value}")
    for reason in checked.why:
        say(reason)
    if checked.found is not None:
        baseline.tell(checked.found)


def _comment(arguments: argparse.Namespace) -> int:
    from gpadvisor.ci.github import ForbiddenError, comment, pull_request
    from gpadvisor.gate.comment import MAX_TEXT, marker

    try:
        mark = marker(arguments.name.strip() or "advice")
    except ValueError as error:
        raise UsageError(str(error)) from error
    text = read_file(arguments.file, max_bytes=4 * MAX_TEXT).decode("utf-8", "replace")
    if len(text) > MAX_TEXT:
        raise UsageError(f"{arguments.file} has more than {MAX_TEXT} characters, which no comment can have")
    on = pull_request(os.environ)
    if on is not None:
        try:
            answer(f"commented: {comment(on, mark, text)}")
        except ForbiddenError as error:
            say(f"no comment, the token may not: {error}")
        else:
            return 0
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(text.rstrip("\n") + "\n")
        answer("added to the summary of the job")
    else:
        options.write_output(text, None)
    return 0


def _hook(arguments: argparse.Namespace) -> int:
    from gpadvisor.gate.baseline import difference, joined
    from gpadvisor.pipeline.formats import RenderOptions
    from gpadvisor.pipeline.render import render_file

    advise_arguments = _request(arguments)
    findings = baseline.read_baseline(arguments.baseline) if arguments.baseline.is_file() else None
    render_options = RenderOptions(format="text", width=options.PIPED_WIDTH, color=False, use_cache=True)
    request, states = advise.make_request(advise_arguments), []
    for path in arguments.inputs:
        try:
            result = render_file(path, request, render_options, lambda _: None)
        except ToolNotFoundError as error:
            say(f"skipped: {error}")
            return 0
        except NoDeviceCodeError:
            continue
        states.append(result.state)
        if result.fired:
            options.write_output(result.text, None)
    if findings is None or not states:
        return 0
    changes = difference(findings, joined(states))
    baseline.tell(changes)
    return 1 if changes.new else 0
