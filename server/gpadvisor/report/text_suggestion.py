# SPDX-License-Identifier: Apache-2.0
"""One suggestion of the text report: the gain, what to change, and the def-to-use hotspots behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpadvisor.model.advice import (
    CodeRef,
    Estimate,
    Group,
    Hotspot,
    KernelAdvice,
    Scope,
    ScopeKind,
    Suggestion,
)
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.figures import expected, explains, factor, gain, percent
from gpadvisor.model.sentence import capitalised
from gpadvisor.model.timeline import RunPart
from gpadvisor.report.names import core_name, short_name
from gpadvisor.report.page import Page
from gpadvisor.report.words import (
    CATEGORY_WORDS,
    Keep,
    cells,
    count,
    duration,
    pad,
    plural,
    shorten,
    speedup,
    wrap,
)

ALL_OF_IT: Final = 0.995
"""Of the time."""
SHOWN_HOTSPOTS: Final = 5
"""As many as the original lists for one suggestion (GPA section V-C)."""
SHOWN_IMPORTANCE: Final = 0.01
"""The threshold that suggestions are held to as well."""
_MARGIN: Final = "   "
_WORTH_COLOUR: Final = 1.05
_LEAST_PLACE: Final = 16
_INSTRUCTION: Final = 48
_NO_CLASS: Final = frozenset({DependencyClass.SELF, DependencyClass.NONE})
_PLACES: Final = {
    ScopeKind.LOOP: "loop",
    ScopeKind.FUNCTION: "function",
    ScopeKind.INLINED: "inlined function",
    ScopeKind.LINE: "line",
}


def suggestion_lines(
    page: Page, kernel: KernelAdvice, ranked: Sequence[Suggestion], number: int
) -> list[str]:
    """One ranked suggestion, counted from 1; hotspots that an earlier one has in full are not repeated."""
    suggestion = ranked[number - 1]
    lines = _headline(page, suggestion)
    lines += _fact(page, "change", suggestion.advice)
    lines += _fact(page, "cause", suggestion.title)
    if suggestion.matched_samples:
        latency = f"{count(suggestion.matched_latency)} of them latency"
        matched = f"({count(suggestion.matched_samples)} samples, {latency})"
        lines += _fact(page, "importance", f"{percent(suggestion.importance)} {matched}")
    lines += _fact(page, "where", scope_words(page, kernel, suggestion.scope))
    lines += _fact(page, "whole run", whole_run(kernel, suggestion))
    lines += _fact(page, "then", f"limited by {suggestion.next_limit}" if suggestion.next_limit else "")
    if suggestion.speedup is not None:
        lines += _fact(page, "estimate", reasoning(suggestion.speedup))
    listed = worth_showing(suggestion.hotspots)
    earlier = next((s.code for s in ranked[: number - 1] if _same_hotspots(s, suggestion)), None)
    if earlier is not None:
        return [*lines, f"{_MARGIN}the hotspots are those of {earlier}"]
    for index, hotspot in enumerate(listed, start=1):
        lines += hotspot_lines(page, kernel, hotspot, index)
    more = len(suggestion.hotspots) - len(listed)
    if more:
        lines.append(page.style.quiet(f"{_MARGIN}and {plural(more, 'more hotspot')} (--format json has all)"))
    return lines


def _same_hotspots(suggestion: Suggestion, preceding: Suggestion) -> bool:
    listed = worth_showing(preceding.hotspots)
    return len(listed) > 1 and worth_showing(suggestion.hotspots) == listed


def worth_showing(hotspots: Sequence[Hotspot]) -> Sequence[Hotspot]:
    """The first hotspots, without those that hardly any sample is of unless there is nothing else."""
    first = hotspots[:SHOWN_HOTSPOTS]
    heavy = [h for h in first if not h.samples or h.importance >= SHOWN_IMPORTANCE]
    return heavy or first[:1]


def _fact(page: Page, label: str, text: str) -> list[str]:
    return page.fact(label, text, margin=_MARGIN)


def _headline(page: Page, suggestion: Suggestion) -> list[str]:
    heading = f"{suggestion.code} {suggestion.name}"
    tag = f"{_MARGIN}[{CATEGORY_WORDS[suggestion.category]}, {suggestion.evidence.value}]"
    estimate = suggestion.speedup
    right = "no estimate" if estimate is None else speedup(estimate)
    style = page.style
    worth = estimate is not None and estimate.expected >= _WORTH_COLOUR
    coloured = style.gain(right) if worth else right
    gap = page.width - cells(heading) - cells(right)
    if gap >= 2:
        return [style.heading(heading) + " " * gap + coloured, style.quiet(tag)]
    return [style.heading(heading), _MARGIN + coloured, style.quiet(tag)]


def whole_run(kernel: KernelAdvice, suggestion: Suggestion) -> str:
    """What it means for the report as a whole; nothing where the kernel is all there is."""
    program, share = suggestion.program_speedup, kernel.time_share
    if program is None or share is None or (share > 0.9995 and kernel.in_run is None):
        return ""
    if kernel.in_run is not None:
        return f"{gain(program)}, as {run_words(kernel.in_run)}"
    text = f"{gain(program)}, as this kernel has {percent(share, 0)} of the GPU time"
    slowest = on_slowest(kernel, suggestion)
    return f"{text}; {slowest}" if slowest else text


def on_slowest(kernel: KernelAdvice, suggestion: Suggestion) -> str:
    """What it means for the slowest rank of a sum; nothing where that is what it means for all of them."""
    slowest, program, worth = kernel.slowest, suggestion.program_speedup, suggestion.slowest_speedup
    if slowest is None or program is None or worth is None or kernel.in_run is not None:
        return ""
    return "" if gain(worth) == gain(program) else f"{gain(worth)} of {slowest.name}, the slowest"


def cause_words(suggestion: Suggestion) -> str:
    """The title with its share of the samples, where that explains the gain, and the rule."""
    part = suggestion.importance
    told = round(100 * part) and explains(part, suggestion.speedup)
    samples = f", {percent(part, 0)} of samples" if told else ""
    return f"{suggestion.title}{samples} ({suggestion.code})"


def after_words(kernel: KernelAdvice, suggestion: Suggestion) -> str:
    """What it means for the run, and what limits the kernel next."""
    share = kernel.time_share
    some = kernel.in_run is not None or (share is not None and share < ALL_OF_IT)
    part = suggestion.program_speedup if some else None
    words = [
        "" if part is None else f"{gain(part)} of the whole run",
        on_slowest(kernel, suggestion),
        f"limited by {suggestion.next_limit}" if suggestion.next_limit else "",
    ]
    return "; ".join(word for word in words if word)


def run_words(part: RunPart) -> str:
    """A kernel's part of a traced run."""
    launches = plural(part.time.launches, "launch")
    of = "" if part.time.shape is not None else " of any grid"
    return (
        f"this kernel has {percent(part.of_busy)} of the busy time in {launches}{of}, and a GPU is busy for"
        f" {percent(part.busy)} of {duration(part.span_ns)}"
    )


def reasoning(estimate: Estimate) -> str:
    """How the numbers came about: the equation, and why the range departs from it."""
    equation, reason = estimate.equation.rstrip(". "), estimate.reason.rstrip(". ")
    return f"{equation}. {capitalised(reason)}." if reason else f"{equation}."


def scope_words(page: Page, kernel: KernelAdvice, scope: Scope) -> str:
    """A place in words, without the kernel's name, which the reader knows."""
    location = page.place(scope.location) if scope.location is not None else ""
    if scope.kind is ScopeKind.KERNEL:
        return f"the whole kernel, {location}" if location else "the whole kernel"
    name = "" if is_kernel(kernel, scope.name) else short_name(scope.name, 60)
    if scope.kind is ScopeKind.FUNCTION and not name:
        return f"the kernel's own code, {location}" if location else "the kernel's own code"
    if scope.kind in {ScopeKind.LOOP, ScopeKind.LINE}:
        text = f"a {_PLACES[scope.kind]} (no line information)" if not location else f"loop {location}"
        text = location if scope.kind is ScopeKind.LINE and location else text
        return f"{text} in {name}" if name else text
    return " ".join(filter(None, (_PLACES[scope.kind], name, f"at {location}" if location else "")))


def is_kernel(kernel: KernelAdvice, function: str) -> bool:
    """Whether a function's name is the kernel's."""
    return function in {kernel.name, kernel.mangled} or core_name(function) == core_name(kernel.name)


def hotspot_lines(page: Page, kernel: KernelAdvice, hotspot: Hotspot, index: int) -> list[str]:
    """One def-to-use pair: how much waits there, and both ends."""
    kind = hotspot.dependency_class
    facts = ["" if kind in _NO_CLASS else kind.value.replace("_", " ")]
    if hotspot.samples:
        facts = [hotspot.reason, *facts, percent(hotspot.importance)]
    if hotspot.samples and hotspot.speedup is not None:
        facts.append(f"{factor(hotspot.speedup)} alone")
    if hotspot.definition is not None and hotspot.distance_instructions is not None:
        facts.append(f"{plural(hotspot.distance_instructions, 'instruction')} apart")
    text = ", ".join(fact for fact in facts if fact)
    lines = wrap(text, page.width, _MARGIN + "   ", f"{_MARGIN}{index}) ")
    definition, use = hotspot.definition, hotspot.use
    if definition is not None and use is not None:
        same = definition.location == use.location
        lines += _code(
            page, kernel, "   def", definition, None if same else page.quote(definition.location, definition)
        )
        return lines + _code(page, kernel, "   use", use, page.quote(use.location, use))
    only = use if definition is None else definition
    if only is None:
        return [*lines, f"{_MARGIN}   outside the analysed code"]
    if not text:  # a static finding: the place is all there is to say
        return _code(page, kernel, f"{index})", only, page.quote(only.location, only))
    return [*lines, *_code(page, kernel, "   at", only, page.quote(only.location, only))]


def _code(page: Page, kernel: KernelAdvice, role: str, code: CodeRef, quoted: str | None) -> list[str]:
    """One end of a dependency: the source place, the instruction, and how it got there by inlining."""
    label = f"{_MARGIN}{role:<6} "
    indent = " " * len(label)
    instruction = f"{code.pc:#06x}  {shorten(code.text or code.opcode, _INSTRUCTION)}"
    room = page.width - len(label) - cells(instruction) - 2
    where = _where(page, kernel, code, page.width - len(label))
    style = page.style
    if not where:
        lines = [style.quiet(label) + instruction]
    elif cells(where) <= room:
        lines = [style.quiet(label) + style.code(pad(where, room)) + "  " + instruction]
    else:
        lines = [style.quiet(label) + style.code(where), indent + instruction]
    if quoted is not None:
        lines.append(indent + shorten(f"| {quoted}", page.width - len(indent)))
    for frame in code.inline:
        callee = short_name(frame.function, 40) if frame.function else "code"
        text = f"{callee} inlined at {page.place(frame.call_site)}"
        lines.append(indent + style.quiet(shorten(text, page.width - len(indent), Keep.BOTH)))
    return lines


def _where(page: Page, kernel: KernelAdvice, code: CodeRef, room: int) -> str:
    if code.location is not None:
        return page.place(code.location, max(room, _LEAST_PLACE))
    if is_kernel(kernel, code.function):
        return ""
    return f"in {short_name(code.function, max(room // 2, _LEAST_PLACE))}"


def joint(kernel: KernelAdvice, group: Group) -> str:
    """The joint estimate of suggestions that share samples, in one sentence."""
    by_code = {s.code: s.speedup for s in kernel.suggestions}
    parts = [estimate for code in group.suggestions if (estimate := by_code.get(code)) is not None]
    text = (
        f"Together {gain(group.speedup)}: {' + '.join(group.suggestions)} "
        f"share {count(group.shared_samples)} of {count(group.samples)} samples"
    )
    apart = " x ".join(expected(estimate) for estimate in parts)
    return f"{text}, so not {apart}." if len(parts) > 1 else f"{text}."


def group_lines(page: Page, kernel: KernelAdvice, group: Group) -> list[str]:
    """The same, set on the page."""
    lines = wrap(joint(kernel, group), page.width, "   ", " ")
    head = len(f" Together {expected(group.speedup)}")
    return [page.style.gain(lines[0][:head]) + lines[0][head:], *lines[1:]]
