# SPDX-License-Identifier: Apache-2.0
"""What to know before believing a report's numbers: each once and short, before anything else is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from gpadvisor.analyzer.places import is_library
from gpadvisor.estimators.constants import NOTABLE, REPEATED
from gpadvisor.machine import every_gpu
from gpadvisor.model.advice import Advice, KernelAdvice
from gpadvisor.model.figures import part_of_run, percent
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import LITTLE_OF_RUN, Evidence
from gpadvisor.model.sentence import capitalised
from gpadvisor.report.folding import SMALL_SHARE
from gpadvisor.report.names import core_name, short_name
from gpadvisor.report.words import base_file, count, duration, plural

CaveatWords: TypeAlias = Callable[[Advice, Sequence[KernelAdvice]], str]
_NAME: Final = 32
_SHOWN: Final = 2
_PROFILE: Final = "gpadvisor profile"
_SAMPLE: Final = {"ncu": "ncu --set full --import-source yes"}


def caveats(advice: Advice) -> list[str]:
    """The sentences, the gravest first; those of kernels that take next to nothing are in the details."""
    large = [
        kernel for kernel in advice.kernels if kernel.time_share is None or kernel.time_share >= SMALL_SHARE
    ]
    concerned: dict[ProblemCode, list[KernelAdvice]] = {problem.code: [] for problem in advice.problems}
    for kernel in large or advice.kernels:
        for code in dict.fromkeys(problem.code for problem in kernel.problems):
            concerned.setdefault(code, []).append(kernel)
        if kernel.samples.truncated:
            advised = concerned.setdefault(ProblemCode.TRUNCATED_SAMPLES, [])
            advised += [] if kernel in advised else [kernel]
    caveats = [
        say(advice, concerned[code])
        for code, say in _SENTENCES.items()
        if code in concerned and not (code in _OF_SAMPLES and _modelled(advice))
    ]
    caveats = [
        caveat
        for caveat in caveats
        if caveat and not any(caveat != longer and caveat.lower() in longer.lower() for longer in caveats)
    ]
    caveats += _idle(advice)
    caveats += _short_launches(advice)
    caveats += _versions(advice)
    return [
        *([_modelled_words(advice)] if _modelled(advice) else []),
        *caveats,
    ]


def _versions(advice: Advice) -> list[str]:
    """Sources here that are not, or may not be, what was profiled; only those that lines are named of."""
    said = []
    for match in advice.sources:
        name = base_file(match.report_path)
        gone = sum(line_today is None for _, line_today in match.today)
        moved = sum(line_today not in {None, then} for then, line_today in match.today)
        if gone or moved:
            became = [f"{plural(moved, 'line')} moved by text"] if moved else []
            became += [f"{plural(gone, 'line')} not found"] if gone else []
            said.append(f"{name} here is another version than was profiled: {', '.join(became)}.")
        elif match.odd_lines:
            odd = f"{plural(match.odd_lines, 'line')} named here cannot be what was profiled"
            said.append(f"{name} seems to be another version than was profiled: {odd}.")
        elif match.by_name:
            said.append(f"{name} was found by its name alone: it may not be the version that was profiled.")
        elif match.is_unsure and match.differs:
            said.append(f"{name} here is another version than was profiled, whose text is not known.")
        elif match.local_path is not None and base_file(match.local_path).lower() != name.lower():
            said.append(f"{name} is {base_file(match.local_path)} here.")
    if len(said) > _SHOWN:
        said[_SHOWN:] = [f"The same holds for {plural(len(said) - _SHOWN, 'more source file')}."]
    return said


def _idle(advice: Advice) -> list[str]:
    """What no kernel changes, where it is more than any of them takes."""
    parts = [kernel.in_run for kernel in advice.kernels if kernel.in_run is not None]
    if not parts or 1 - parts[0].busy <= max(part.of_busy * part.busy for part in parts):
        return []
    idle = percent(1 - parts[0].busy, 0)
    text = f"No GPU works in {idle} of the run, more than any of these kernels takes: gpadvisor idle"
    return [f"{text} {parts[0].trace}"]


def _short_launches(advice: Advice) -> list[str]:
    """The kernel that is launched again and again, where a launch takes longer than what it does.

    A traced run tells it where the GPU waits meanwhile; a report has the launches and no time between them.
    """
    launch_ns = every_gpu().launch_ns
    parts = [kernel.in_run for kernel in advice.kernels if kernel.in_run is not None]
    if parts:
        totals: list[tuple[str, int, float]] = [
            (part.time.name.demangled, part.time.launches, part.time.union_ns) for part in parts
        ]
        waiting = 1 - parts[0].busy
    else:
        times: dict[str, list[float]] = {}
        for summary in advice.launches:
            if summary.launch.duration_ns and not summary.launch.failed:
                times.setdefault(summary.launch.demangled, []).append(summary.launch.duration_ns)
        totals = [(name, len(each), sum(each)) for name, each in times.items()]
        waits = sum(max(0.0, number * launch_ns - spent) for _, number, spent in totals)
        waiting = waits / (waits + sum(spent for *_, spent in totals)) if totals else 0.0
    repeated = [total for total in totals if total[1] >= REPEATED and total[2] < total[1] * launch_ns]
    # The headline has said it.
    in_headline = not any(kernel.suggestions for kernel in advice.kernels) and all(
        (kernel.duration_ns or launch_ns) < launch_ns for kernel in advice.kernels
    )
    if not repeated or waiting < NOTABLE or in_headline:
        return []
    name, number, spent = max(repeated, key=lambda entry: entry[1])
    what = (
        f"{short_name(core_name(name), _NAME)} is launched {number} times for {duration(spent / number)} each"
    )
    return [f"{what}, less than a launch takes: do several steps in one, or record them as a CUDA graph."]


def _modelled(advice: Advice) -> bool:
    return any(kernel.evidence is Evidence.MODELLED for kernel in advice.kernels)


def _modelled_words(advice: Advice) -> str:
    """What a simulated run rests on: how many samples, and what the launch and the code do not tell."""
    totals = [kernel.samples.total for kernel in advice.kernels if kernel.evidence is Evidence.MODELLED]
    low, high = f"{min(totals):,}", f"{max(totals):,}"
    samples = low if low == high else f"{low} to {high}"
    return (
        f"Modelled, not measured: {samples} samples of one SM. Where the launch does not tell an address, "
        "shares of cache hits are taken for granted. --details has all that was assumed."
    )


def _in(advice: Advice, kernels: Sequence[KernelAdvice]) -> str:
    named = _of(advice, kernels).removeprefix(", ")
    return f" ({named})" if named else ""


def _of(advice: Advice, kernels: Sequence[KernelAdvice]) -> str:
    """Which kernels are meant, where it is not all of them."""
    if not kernels or len(kernels) == len(advice.kernels):
        return ""
    return f", {plural(len(kernels), 'kernel') if len(kernels) > 1 else short_name(kernels[0].name, _NAME)}"


def _message(code: ProblemCode) -> CaveatWords:
    """The sentence of the problem itself, of the input as a whole where it has one."""

    def say(advice: Advice, kernels: Sequence[KernelAdvice]) -> str:
        problems = [*advice.problems, *(problem for kernel in kernels for problem in kernel.problems)]
        text = next(problem.message for problem in problems if problem.code is code)
        first = text.partition(" ")[0]
        begun = text if "." in first else capitalised(text)  # a file keeps its name
        return f"{begun.rstrip('.')}."

    return say


def _truncated(_advice: Advice, kernels: Sequence[KernelAdvice]) -> str:
    shares = [share for kernel in kernels if (share := kernel.samples.first_share) is not None]
    if not shares:
        return "The sample buffer was full: the samples are of the first part of the run."
    few = min(shares) <= LITTLE_OF_RUN
    return f"The sample buffer was full: the samples are of {part_of_run(min(shares))} of the run" + (
        ", too little for figures that rest on them." if few else "."
    )


def _few(advice: Advice, kernels: Sequence[KernelAdvice]) -> str:
    totals = [kernel.samples.total for kernel in kernels]
    if not totals:
        return "Few samples: estimates are rough."
    low, high = count(min(totals)), count(max(totals))
    samples = low if low == high else f"{low} to {high}"
    estimated = any(suggestion.speedup is not None for kernel in kernels for suggestion in kernel.suggestions)
    text = "estimates" if estimated else "shares"
    return f"Few samples{_in(advice, kernels)}: {samples}; {text} are rough."


def _defined(kernels: Sequence[KernelAdvice]) -> str:
    """Where a kernel without lines is in the sources, and why that gave none."""
    for kernel in kernels:
        for problem in kernel.problems:
            place_of_problem = problem.location
            if problem.code is not ProblemCode.NO_LINE_INFO:
                continue
            if place_of_problem is None and problem.short:
                return f" {short_name(core_name(kernel.name), _NAME)}: {problem.short}."
            if place_of_problem is not None:
                line = f"{base_file(place_of_problem.file)}:{place_of_problem.line}"
                place = f"{line}; {problem.short}" if problem.short else line
                return f" {short_name(core_name(kernel.name), _NAME)} begins at {place}."
    return ""


def _absent(advice: Advice, _kernels: Sequence[KernelAdvice]) -> str:
    """The files that are missing, of those with the time where that is known; nothing if these are here."""
    missing = [match.report_path for match in advice.sources if match.local_path is None]
    missing = [path for path in missing if not is_library(path)] or missing
    advised = [
        kernel for kernel in advice.kernels if kernel.time_share is None or kernel.time_share >= SMALL_SHARE
    ]
    times = Counter[str]()
    for scope in (summary for kernel in advised for summary in kernel.scopes):
        if scope.scope.location is not None:
            times[scope.scope.location.file] += scope.samples + scope.caused
    if times.total():
        missing = sorted((path for path in missing if times[path]), key=lambda path: -times[path])
        if not missing:
            return ""
    first = base_file(missing[0]) if missing else "sources"
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"Source not here: {first}{more}; --source-root DIR names the folder."


_SENTENCES: Final[dict[ProblemCode, CaveatWords]] = {
    ProblemCode.SUM_OVER_RANKS: _message(ProblemCode.SUM_OVER_RANKS),
    ProblemCode.MIXED_PROFILES: _message(ProblemCode.MIXED_PROFILES),
    ProblemCode.SLOW_RANKS: _message(ProblemCode.SLOW_RANKS),
    ProblemCode.NOT_IN_TIMELINE: lambda advice, kernels: (
        f"Not in the timeline{_in(advice, kernels)}: what a change is worth for the run is not known."
    ),
    ProblemCode.DEBUG_BUILD: lambda advice, kernels: (
        f"Debug build (-G{_of(advice, kernels)}): compile with -lineinfo and without -G, and profile that. A "
        "release build runs other code: figures are of this build."
    ),
    ProblemCode.INCONSISTENT_REPORT: _message(ProblemCode.INCONSISTENT_REPORT),
    ProblemCode.FAILED_LAUNCH: _message(ProblemCode.FAILED_LAUNCH),
    ProblemCode.LAUNCH_NOT_KNOWN: lambda advice, kernels: (
        f"Not simulated{_in(advice, kernels)}, since no launch is known: --kernel NAME with --grid and "
        "--block states one."
    ),
    ProblemCode.LOOP_NOT_KNOWN: _message(ProblemCode.LOOP_NOT_KNOWN),
    ProblemCode.NO_BINARY: _message(ProblemCode.NO_BINARY),
    ProblemCode.NO_DISASSEMBLY: lambda advice, kernels: (
        f"Machine code not read{_in(advice, kernels)}: gpadvisor doctor says what is missing."
    ),
    ProblemCode.COMPILE_DATABASE: _message(ProblemCode.COMPILE_DATABASE),
    ProblemCode.REDUCED_SOURCE: _message(ProblemCode.REDUCED_SOURCE),
    ProblemCode.UNCOVERED_TIME: _message(ProblemCode.UNCOVERED_TIME),
    ProblemCode.COLLECTION_LIMITED: _message(ProblemCode.COLLECTION_LIMITED),
    ProblemCode.TRUNCATED_SAMPLES: _truncated,
    ProblemCode.LOWER_EVIDENCE: _message(ProblemCode.LOWER_EVIDENCE),
    ProblemCode.NO_SAMPLES: lambda advice, kernels: (
        f"No samples{_in(advice, kernels)}: {_SAMPLE.get(advice.collector or '', _PROFILE)} "
        "takes them, line by line."
    ),
    ProblemCode.FEW_SAMPLES: _few,
    ProblemCode.LINES_RECOVERED: _message(ProblemCode.LINES_RECOVERED),
    ProblemCode.NO_LINE_INFO: lambda advice, kernels: (
        f"No line table{_in(advice, kernels)}: compile with -lineinfo.{_defined(kernels)}"
    ),
    ProblemCode.LINES_NOT_READ: _message(ProblemCode.LINES_NOT_READ),
    ProblemCode.SOURCE_UNMATCHED: _absent,
    ProblemCode.SOURCE_NOT_READ: _message(ProblemCode.SOURCE_NOT_READ),
}
CAVEATS: Final = frozenset(_SENTENCES)
"""What is told before anything else; every other problem is in the details."""
_OF_SAMPLES: Final = frozenset({ProblemCode.FEW_SAMPLES})
