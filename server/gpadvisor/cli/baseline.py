# SPDX-License-Identifier: Apache-2.0
"""``--baseline``: what of the advice is new, known or fixed, on standard error beside the advice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpadvisor import __version__
from gpadvisor.cli.messages import say
from gpadvisor.errors import UsageError
from gpadvisor.files import read_file, write_atomically
from gpadvisor.pipeline.render import Fired, Gate

if TYPE_CHECKING:
    from gpadvisor.gate.baseline import Difference, Findings, Known

_SHOWN: Final = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the file and what is done with it."""
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        type=Path,
        help="advice that is known: what is new, known and fixed is told beside the advice",
    )
    parser.add_argument(
        "--update-baseline", action="store_true", help="write what was found into the file of --baseline"
    )


def check(arguments: argparse.Namespace) -> None:
    """Make the file's path absolute.

    Raises:
        UsageError: options that need each other, or exclude each other.
    """
    new = [gate for gate in arguments.fail_on if gate.new]
    if arguments.baseline is None:
        if new or arguments.update_baseline:
            option = f"--fail-on {new[0].text}" if new else "--update-baseline"
            raise UsageError(f"{option} needs a baseline; add --baseline FILE")
        return
    if new and arguments.update_baseline:
        raise UsageError(f"--update-baseline accepts what is new; leave --fail-on {new[0].text} out")
    if arguments.format == "html":
        raise UsageError("--format html makes a page, which has no baseline; take another format")
    arguments.baseline = arguments.baseline.absolute()


def judge(arguments: argparse.Namespace, states: Sequence[Findings]) -> list[Gate]:
    """Say what is new, known and fixed; the gates that ask for new advice and are met, or cannot be decided.

    Raises:
        BaselineError: the file is missing or damaged.
    """
    from gpadvisor.gate.baseline import difference, dump, joined, updated

    path: Path = arguments.baseline
    findings = joined(states)
    before = read_baseline(path, may_lack=arguments.update_baseline)
    changes = difference(before, findings)
    tell(changes)
    if arguments.update_baseline:
        write_atomically(path, dump(updated(before, findings, __version__)).encode())
        return []
    fired = [Fired(code=finding.rule, expected=finding.expected) for finding in changes.new]
    undecided = bool(changes.not_comparable)
    return [gate for gate in arguments.fail_on if gate.new and (undecided or gate.met(fired))]


def read_baseline(path: Path, *, may_lack: bool = False) -> Findings:
    """What a file holds; nothing where it may lack and does.

    Raises:
        BaselineError: the file is missing or damaged.
    """
    from gpadvisor.gate.baseline import MAX_BYTES, BaselineError, Findings, parse

    try:
        return parse(read_file(path, max_bytes=MAX_BYTES), path.name)
    except FileNotFoundError as error:
        if may_lack:
            return Findings()
        raise BaselineError(f"{path.name} does not exist; --update-baseline writes it") from error


def tell(changes: Difference) -> None:
    """Say on standard error what is new, known, fixed and not comparable."""
    counts = f"{len(changes.new)} new, {len(changes.known)} known, {len(changes.fixed)} fixed"
    say(f"baseline: {counts}")
    for word, findings in (("new", changes.new), ("fixed", changes.fixed)):
        for finding in findings[:_SHOWN]:
            say(f"{word}: {_words(finding)}")
        if len(findings) > _SHOWN:
            say(f"{word}: and {len(findings) - _SHOWN} more")
    if changes.elsewhere:
        say(f"not looked at here: {', '.join(changes.elsewhere[:_SHOWN])}")
    for reason in changes.not_comparable[:_SHOWN]:
        say(f"not comparable: {reason}")


def _words(finding: Known) -> str:
    gain = "" if finding.expected is None else f", {finding.expected:.2f}x expected"
    where = f" ({finding.file})" if finding.file else ""
    return f"{finding.rule} in {finding.kernel}{where}{gain}"
