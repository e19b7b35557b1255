# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, listed literally, imported without its heavy parts."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Final

from gpadvisor import __version__
from gpadvisor.cli import advise
from gpadvisor.cli.messages import CommandsFormatter, Parser, say
from gpadvisor.errors import GpadvisorError, UsageError

COMMANDS: Final = {
    "demo": "demo",
    "doctor": "doctor",
    "profile": "profile",
    "advise": "advise",
    "why": "why",
    "view": "view",
    "compare": "compare",
    "explain": "explain",
    "rules": "rules",
    "simulate": "simulate",
    "import": "import_report",
    "export": "export_snapshot",
    "aggregate": "aggregate",
    "roofline": "roofline",
    "potential": "potential",
    "tree": "tree",
    "idle": "idle",
    "blame": "blame",
    "ledger": "ledger",
    "completion": "completion",
    "lsp": "lsp",
    "ci": "ci",
    "mcp": "mcp",
}
"""In the order of the help, with their modules."""
_ABOUT_OTHERS: Final = ("demo", "completion")
"""Commands that ask the parser of other commands."""

_DESCRIPTION: Final = "Why the warps of a CUDA kernel wait, what to change, and what that would gain"
_PAGED: Final = (
    "advise",
    "why",
    "compare",
    "roofline",
    "potential",
    "tree",
    "idle",
    "blame",
    "explain",
    "rules",
    "doctor",
)
_PROFILES: Final = ("*.ncu-rep", "*.ncu-repz", "*.gpadvisor")

_EPILOG = """\
COMMAND --help has more. Exit: 0 done, 1 --fail-on, 2 usage, 3 input, 4 tool
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    _open_missing_streams()
    try:
        with _orderly_end():
            code = _run(arguments)
            sys.stdout.flush()
            return code
    except GpadvisorError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader of the pipe has what it wanted; python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _Ended as end:
        return _fail("ended by a signal", 128 + end.number)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}", 3)
    except Exception as error:  # the border: no traceback reaches a user unasked
        if os.environ.get("GPADVISOR_DEBUG"):
            raise
        return _fail(
            f"internal error, {type(error).__name__}: {error}; "
            "set GPADVISOR_DEBUG=1 for the traceback and report it",
            4,
        )


class _Ended(BaseException):
    """A signal that ends the process, as an exception: tools are stopped and temporary files removed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Unwind on SIGTERM and SIGHUP as on Ctrl-C: tools run in groups of their own and would live on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # A signal that the caller ignores, as nohup does, stays ignored.
    before = {number: signal.getsignal(number) for number in numbers}
    replaced = [number for number in numbers if before[number] is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _end)
    try:
        with _lost_ends():
            yield
    except (_Ended, KeyboardInterrupt):
        from gpadvisor.sandbox.processes import kill_children

        # The signal may have come while a tool was being started, before anybody was there to end it.
        kill_children()
        raise
    finally:
        for number in replaced:
            signal.signal(number, before[number])


@contextmanager
def _lost_ends() -> Iterator[None]:
    """Make an end of what fails after one was dropped, as Python does in callbacks of native code."""
    lost: list[BaseException] = []
    before = sys.unraisablehook

    def note(report: sys.UnraisableHookArgs) -> None:
        if isinstance(report.exc_value, (_Ended, KeyboardInterrupt)):
            lost.append(report.exc_value)
        else:
            before(report)

    sys.unraisablehook = note
    try:
        yield
    except Exception as error:
        if not lost:
            raise
        raise lost[0] from error
    finally:
        sys.unraisablehook = before


def _end(number: int, _frame: FrameType | None) -> None:
    raise _Ended(number)


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, or of it what one command needs: others are not imported then."""
    parser = Parser(
        prog="gpadvisor",
        epilog=_EPILOG,
        formatter_class=CommandsFormatter,
    )
    parser.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"gpadvisor {__version__}{_compiled()}",
        help="show the version and exit",
    )
    parser.add_argument("--no-pager", action="store_true", help="print long text as it is")
    commands = parser.add_subparsers(title=_DESCRIPTION, metavar="COMMAND", dest="command")
    alone = command in COMMANDS and command not in _ABOUT_OTHERS
    for name in [command] if command and alone else COMMANDS:
        import_module(f"gpadvisor.cli.{COMMANDS[name]}").add_parser(commands)
        if name in _PAGED:  # there, too, without undoing what stands before the command
            commands.choices[name].add_argument(
                "--no-pager", action="store_true", default=argparse.SUPPRESS, help="print long text as it is"
            )
    parser.set_defaults(whole=parser)  # for commands that are about the others
    return parser


def _compiled() -> str:
    """Whether the analysis is the machine code that some wheels have of it, as a word."""
    origin = spec.origin if (spec := find_spec("gpadvisor.graphs")) else None
    return "" if origin is None or origin.endswith(".py") else ", compiled"


def _run(arguments: Sequence[str] | None) -> int:
    words, flags = advise.split_flags(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser(next((word for word in words if word != "--no-pager"), None))
    try:
        options = parser.parse_args(words, argparse.Namespace(flags=flags))
    except SystemExit as exit_:  # argparse ends the process by itself, after its own message
        return int(exit_.code or 0)
    if options.command is None:
        sys.stdout.write(_next_step())
        return 2
    _keep_inputs(options)
    return int(options.run(options))


def _keep_inputs(options: argparse.Namespace) -> None:
    """Refuse an output in place of what is read: a measurement would be gone."""
    output = getattr(options, "output", None)
    if not isinstance(output, Path):
        return
    arguments = (getattr(options, name, None) for name in ("input", "inputs", "before", "after"))
    for argument in arguments:
        for path in argument if isinstance(argument, list) else [argument]:
            if isinstance(path, Path) and path.is_file() and output.exists() and output.samefile(path):
                raise UsageError(f"{output} is what is read; give another file to write to")


def _next_step() -> str:
    """What gpadvisor is for, and what to do next in this folder."""
    profiles = [path for pattern in _PROFILES for path in Path.cwd().glob(pattern) if path.is_file()]
    newest = max(profiles, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None:
        step = "Next: gpadvisor profile -- ./app, gpadvisor advise REPORT, or gpadvisor demo"
    else:
        which = f" (the newest of {len(profiles)} profiles here)" if len(profiles) > 1 else ""
        name = newest.name if newest.name.isprintable() else "FILE"
        step = f"Next: gpadvisor advise {shlex.quote(name)}{which}"
    return (
        f"GPAdvisor {__version__}\n{_DESCRIPTION}\n{step}\n\n"
        "gpadvisor --help       all commands\n"
        "gpadvisor doctor       what works on this machine, and what blocks\n"
        "gpadvisor why FILE 1   how the first estimate of a profile came about\n"
    )


def _open_missing_streams() -> None:
    """Where the caller has closed a standard stream, what goes there is lost, and nothing else."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 until the process ends


def _fail(message: str, code: int) -> int:
    say(f"error: {message}")
    return code
