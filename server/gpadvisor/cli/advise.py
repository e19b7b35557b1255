# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor advise``: ranked advice for a report, a snapshot, a collection, a cubin or a CUDA source."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from gpadvisor.cli import baseline, options, placing
from gpadvisor.cli.demo import beside
from gpadvisor.cli.html_page import render_html
from gpadvisor.cli.messages import say
from gpadvisor.cli.progress import TerminalProgress
from gpadvisor.errors import GpadvisorError, NoDeviceCodeError, ToolFailedError, UsageError
from gpadvisor.pipeline.formats import RenderOptions
from gpadvisor.pipeline.launches import StatedLaunch
from gpadvisor.pipeline.render import Gate, Rendered, joined, render_file
from gpadvisor.pipeline.request import Request
from gpadvisor.store.paths import collection_files, is_database

_DESCRIPTION = """\
Print on one screen what takes the time, what limits it, and the changes worth their while: each with
the speedup that it is expected to give, what to change, the cause, and its line. No GPU and no Nsight
Compute is needed.

The input is an Nsight Compute report (.ncu-rep, .ncu-repz), a snapshot (.gpadvisor), the directory
that the cupti collector left, a cubin or a CUDA source. The last two have no samples: what the machine
code shows is said, without estimates. Of a folder, every .cu file is taken. A header, and a source
that others include, is compiled in a source that includes it.
"""

_EPILOG = """\
examples:
  gpadvisor advise run.ncu-rep
  gpadvisor why run.ncu-rep 1
  gpadvisor advise run.ncu-rep --details
  gpadvisor advise run.ncu-rep --kernel gemm --format markdown > advice.md
  gpadvisor advise run.ncu-rep --source-map /home/build/app=. --fail-on 1.5
  gpadvisor advise run.ncu-rep --baseline advice.jsonl --fail-on new:1.1
  gpadvisor advise kernel.cu --arch sm_90 -I include -- --use_fast_math
  gpadvisor advise src/ -p build
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "advise",
        help="advice for reports, snapshots, cubins or CUDA sources",
        usage="gpadvisor advise INPUT... [options] [-- NVCC FLAGS]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add_input(parser, nargs="+")
    parser.add_argument(
        "--details", action="store_true", help="every number of every kernel, instead of one screen"
    )
    parser.add_argument("--why", metavar="N", help="one suggestion in full, as 'gpadvisor why' shows it")
    parser.add_argument(
        "--top", metavar="N", type=options.natural, help="suggestions shown per kernel (default 10)"
    )
    parser.add_argument("--format", choices=options.FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--fail-on",
        metavar="new[:SPEEDUP]|CODE|SPEEDUP",
        type=gate,
        action="append",
        default=[],
        help="exit 1 if the baseline lacks advice, if this rule fires (GPA102), or if a speedup of at least "
        "that much is expected (1.5)",
    )
    baseline.add_options(parser)
    placing.add_options(parser)
    add_options(parser)
    parser.set_defaults(run=run)


def add_input(parser: argparse.ArgumentParser, nargs: Literal["+"] | int = 1) -> None:
    """Declare what is analysed."""
    parser.add_argument("inputs", metavar="REPORT|SNAPSHOT|CUBIN|SOURCE", type=Path, nargs=nargs)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what is asked of it, the same for all commands that print advice."""
    parser.add_argument(
        "--all", action="store_true", help="findings below the thresholds too, and no limit of lines"
    )
    parser.add_argument(
        "--min-speedup",
        metavar="X",
        type=options.factor,
        help="hide suggestions expected to give less (default 1.03)",
    )
    options.add_selection(parser)
    parser.add_argument("--merge", action="store_true", help="add launches of equal configuration up")
    parser.add_argument(
        "--source-root",
        metavar="DIR",
        type=Path,
        help="folder searched for the sources (default: the current one)",
    )
    parser.add_argument(
        "--source-map",
        metavar="OLD=NEW",
        type=options.mapping,
        action="append",
        default=[],
        help="replace a path prefix of the report by a local one; may be repeated",
    )
    options.add_lines_from(parser)
    parser.add_argument(
        "--timeline",
        metavar="TRACE",
        type=Path,
        help="a traced run, for what a change is worth there: nsys's SQLite export, a trace of "
        "PyTorch, or a database of HPCToolkit",
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")
    options.add_output(parser)
    parser.add_argument("--no-sources", action="store_true", help="leave source texts out of the HTML page")
    add_compile_options(parser)
    parser.add_argument(
        "--model",
        action="store_true",
        help="simulate a cubin or a source whose launch is stated, see 'simulate'",
    )
    options.add_launch(parser)


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Declare how a source is compiled; what stands behind ``--`` are further flags of nvcc."""
    group = parser.add_argument_group("how a source is compiled", "more flags of nvcc may stand behind --")
    group.add_argument("--arch", metavar="SM", help="architecture, such as sm_90")
    group.add_argument("-p", metavar="BUILD", type=Path, dest="build", help="folder of compile_commands.json")
    group.add_argument(
        "-I", metavar="DIR", action="append", default=[], dest="include", help="include folder"
    )
    group.add_argument("-D", metavar="NAME[=VALUE]", action="append", default=[], dest="define", help="macro")
    group.add_argument("-std", metavar="STD", dest="standard", help="language standard, such as c++17")


def run(arguments: argparse.Namespace) -> int:
    """Print the advice; 1 if a ``--fail-on`` condition is met, an error if that cannot be told."""
    if arguments.output is not None:
        arguments.output = arguments.output.absolute()
    baseline.check(arguments)
    with beside(arguments.inputs):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    request = make_request(arguments)
    refuse_unknown_rules([gate.code for gate in arguments.fail_on if gate.code is not None])
    render_options = RenderOptions(
        format=arguments.format,
        width=options.output_width() if arguments.output is None else options.PIPED_WIDTH,
        color=arguments.output is None and options.use_color(arguments.color),
        use_cache=not arguments.no_cache,
        details=arguments.details,
        why=arguments.why,
        placing=placing.placing(arguments),
    )
    inputs = list(_files(arguments.inputs))
    if render_options.format == "html" and len(inputs) > 1:
        raise UsageError("--format html makes a page of one input")
    results: list[Rendered] = []
    worst = 0
    for path in inputs:
        try:
            results.append(_one(path, request, render_options, sources=not arguments.no_sources))
        except GpadvisorError as error:
            if len(inputs) == 1:
                raise
            # Of many, those without a kernel are no failure.
            worst = max(worst, 0 if isinstance(error, NoDeviceCodeError) else error.exit_code)
            say(str(error) if str(path) in str(error) else f"{path}: {error}")
    if results or worst == 0:
        text = joined([result.text for result in results], arguments.format)
        paged = not arguments.no_pager and arguments.format != "html"
        options.write_output(text, arguments.output, paged=paged)
    gates = [gate for gate in arguments.fail_on if not gate.new]
    met = [gate for gate in gates if any(gate.met(result.fired) for result in results)]
    if arguments.baseline is not None and not worst:
        met += baseline.judge(arguments, [result.state for result in results])
    for gate in met:
        say(f"--fail-on {gate.text} is met")
    unread = [kernel for result in results for kernel in result.unread]
    if met or worst or not (arguments.fail_on and unread):
        return 1 if met else worst
    raise ToolFailedError(
        f"--fail-on cannot be decided: the machine code of {unread[0]} was not read; see the advice"
    )


def _one(path: Path, request: Request, render_options: RenderOptions, *, sources: bool) -> Rendered:
    if render_options.format == "html":
        return render_html(path, request, use_cache=render_options.use_cache, sources=sources)
    progress = TerminalProgress()
    try:
        return render_file(path, request, render_options, progress)
    finally:
        progress.clear()


def _files(inputs: Sequence[Path]) -> Iterator[Path]:
    """The files that are meant: of a folder that is no collection, its sources."""
    for path in inputs:
        if path.is_dir() and not collection_files(path) and not is_database(path):
            # Other inputs need nothing of it, which takes time to import.
            from gpadvisor.pipeline.sources.local import cuda_below

            sources = cuda_below(path)
            if not sources:
                raise UsageError(f"{path} is a folder without a .cu file and no collection of gpadvisor")
            yield from sources
        else:
            yield path


def split_flags(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line without what stands behind ``--``, and that: flags of the compiler."""
    if not words or words[0] not in {"advise", "why", "view"} or "--" not in words:
        return list(words), []
    position = list(words).index("--")
    return list(words[:position]), list(words[position + 1 :])


def refuse_unknown_rules(codes: list[str]) -> None:
    """A gate on a rule that does not exist would never close."""
    if codes:
        from gpadvisor.pipeline.rule_pages import find_rule  # imports every optimizer

        for code in codes:
            find_rule(code)


def make_request(arguments: argparse.Namespace) -> Request:
    """The request that the options and the nearest settings file make."""
    from gpadvisor.pipeline.settings import find_settings

    loaded = find_settings(Path.cwd())
    settings = loaded.settings
    changes: dict[str, object] = {}
    for name in ("top", "min_speedup", "machine", "arch"):
        value = getattr(arguments, name, None)
        if value is not None:
            changes[name] = value
    source_map = dict(settings.source_map)
    source_map.update(dict(getattr(arguments, "source_map", None) or []))
    changes["source_map"] = source_map
    if build := getattr(arguments, "build", None):
        if not (build / "compile_commands.json").is_file():
            raise UsageError(f"{build} has no compile_commands.json; -p takes the folder of a build")
        changes["build_folder"] = str(build.resolve())
    if flags := _flags(arguments):
        from gpadvisor.pipeline.opening import command_line_flags

        changes["extra_flags"] = (*settings.extra_flags, *command_line_flags(flags))
    settings = settings._replace(**changes)  # type: ignore[arg-type] # each option was parsed to its field's type
    root = getattr(arguments, "source_root", None) or Path(settings.source_root)
    lines_from: list[Path] = getattr(arguments, "lines_from", [])
    return Request(
        settings=settings,
        kernel=arguments.kernel,
        launch=getattr(arguments, "launch", None),
        merge=getattr(arguments, "merge", False),
        show_all=getattr(arguments, "all", False),
        model=getattr(arguments, "model", False),
        stated=_stated(arguments),
        lines_from=tuple(path for path in lines_from if path != options.NO_LINES),
        may_compile=options.NO_LINES not in lines_from,
        timeline=getattr(arguments, "timeline", None),
        root=root,
    )


def _flags(arguments: argparse.Namespace) -> list[str]:
    """Flags of the compiler on the command line."""
    standard = getattr(arguments, "standard", None)
    return [
        *(f"-I{folder}" for folder in getattr(arguments, "include", [])),
        *(f"-D{macro}" for macro in getattr(arguments, "define", [])),
        *([f"-std={standard}"] if standard else []),
        *getattr(arguments, "flags", []),
    ]


def _stated(arguments: argparse.Namespace) -> StatedLaunch:
    l1_hit_rate, l2_hit_rate = getattr(arguments, "hit_rate", None) or (None, None)
    return StatedLaunch(
        grid=getattr(arguments, "grid", None),
        block=getattr(arguments, "block", None),
        loops=dict(getattr(arguments, "loop", [])),
        dynamic_shared_bytes=getattr(arguments, "dynamic_shared", None),
        arguments=getattr(arguments, "arguments", None) or (),
        l1_hit_rate=l1_hit_rate,
        l2_hit_rate=l2_hit_rate,
        sms=getattr(arguments, "sms", None),
        seed=getattr(arguments, "seed", None),
    )


def gate(text: str) -> Gate:
    """A ``--fail-on`` condition.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if text == "new":
        return Gate(text=text, code=None, speedup=None, new=True)
    if text.startswith("new:"):
        return Gate(text=text, code=None, speedup=options.factor(text.removeprefix("new:")), new=True)
    if re.fullmatch(r"GPA\d{3}", text, re.IGNORECASE):
        return Gate(text=text, code=text.upper(), speedup=None)
    try:
        return Gate(text=text, code=None, speedup=options.factor(text))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' is neither new, nor a rule's code such as GPA102, nor a speedup such as 1.5"
        ) from error
