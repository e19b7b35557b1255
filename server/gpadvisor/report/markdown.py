# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: what fits into a pull request's comment, tables first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gpadvisor.model.advice import Advice, CodeRef, Hotspot, KernelAdvice, Suggestion
from gpadvisor.model.figures import explains, factor, gain, percent, won
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Evidence
from gpadvisor.report.caveats import caveats
from gpadvisor.report.entries import wording
from gpadvisor.report.folding import folded, folded_problems, folded_words
from gpadvisor.report.names import short_name
from gpadvisor.report.page import Page, local_sources, with_todays_lines
from gpadvisor.report.run_findings import HEADING, place_words
from gpadvisor.report.style import Style
from gpadvisor.report.text import best
from gpadvisor.report.text_kernel import facts, note_words, nothing
from gpadvisor.report.text_rules import rule_groups, rule_head, rule_message
from gpadvisor.report.text_suggestion import joint, reasoning, scope_words, whole_run, worth_showing
from gpadvisor.report.words import CATEGORY_WORDS, cleaned, count, duration, shorten

_NAME: Final = 72
_REFERENCE: Final = re.compile(r"#(?=\d)")
_SPECIAL: Final = re.compile(r"([\\`*\[\]{}|~])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")
_BACKTICKS: Final = re.compile(r"`+")


def render_markdown(
    advice: Advice, *, top: int | None = None, sources: Mapping[str, str] | None = None
) -> str:
    """The whole advice as GitHub-flavoured Markdown; names and paths cannot break out of their cells.

    Args:
        advice: What to report.
        top: Suggestions shown for each kernel; None shows all.
        sources: Texts of source files by the path that the advice names, quoted in the hotspot tables.
    """
    advice = with_todays_lines(cleaned(advice))
    page = Page(
        width=10_000,  # Markdown is not wrapped
        style=Style(enabled=False),
        top=top,
        sources={} if sources is None else sources,
        **local_sources(advice),
    )
    blocks = [f"# GPAdvisor: {code(advice.path)}"]
    if len(advice.kernels) > 1:
        blocks.append(_overview(advice))
    if not advice.kernels:
        blocks.append("No kernel was analysed.")
    blocks.append("\n".join(f"- {prose(text)}" for text in caveats(advice)))
    aside = folded(advice.kernels)
    spared = {id(kernel) for kernel in aside}
    before: dict[str, KernelAdvice] = {}
    for kernel in advice.kernels:
        if id(kernel) not in spared:
            blocks += _kernel(page, kernel, before)
    blocks += _host_code(advice)
    blocks += [folded_words(aside), *_problems((*advice.problems, *folded_problems(aside)))]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _host_code(advice: Advice) -> list[str]:
    """What host code leaves idle in the traced run."""
    rows = [
        (
            finding.code,
            gain(finding.speedup),
            code(place_words(finding.place), cell=True),
            f"{prose(finding.title)}.",
        )
        for finding in advice.run_findings
    ]
    return [f"## {HEADING}", _table(("rule", "of the run", "where", "what"), rows)] if rows else []


def prose(text: str) -> str:
    """Text in which no letter is markup, a mention or a link."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\g<0>", text)
    text = _REFERENCE.sub("#<!-- -->", text)
    return text.replace("@", "@<!-- -->").replace("://", ":<!-- -->//").replace("www.", "www<!-- -->.")


def code(text: str, *, cell: bool = False) -> str:
    """A code span around any text, also in a table's ``cell``."""
    if not text:
        return ""
    if cell and "|" in text:  # a bar ends the cell even inside a code span, and after two backslashes
        return f"<code>{prose(text.replace('|', chr(0))).replace(chr(0), '&#124;')}</code>"
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest or text != text.strip() else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    marks = ["--:" if index in right else "---" for index in range(len(titles))]
    lines = [titles, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _overview(advice: Advice) -> str:
    rows = [
        (
            code(short_name(kernel.name, _NAME), cell=True),
            "-" if kernel.duration_ns is None else duration(kernel.duration_ns),
            percent(kernel.time_share),
            kernel.evidence.value,
            best(kernel),
        )
        for kernel in advice.kernels
    ]
    return _table(("kernel", "time", "share", "evidence", "best suggestion"), rows, frozenset({1, 2}))


def _kernel(page: Page, kernel: KernelAdvice, before: dict[str, KernelAdvice]) -> list[str]:
    """A kernel; ``before`` has those whose words hold for others, and gets this one's."""
    blocks = [f"## {code(short_name(kernel.name, _NAME))}"]
    blocks.append(f"**{prose(kernel.verdict)}**" if kernel.verdict else "")
    unsuppressed = [suggestion for suggestion in kernel.suggestions if suggestion.suppressed is None]
    live = [suggestion for suggestion in unsuppressed if wording(suggestion) not in before]
    for repeated in unsuppressed:
        if wording(repeated) in before:
            name = code(short_name(before[wording(repeated)].name, _NAME))
            blocks.append(f"{prose(f'{repeated.name} ({repeated.code})')}: as for {name}.")
    before |= {wording(suggestion): kernel for suggestion in live if wording(suggestion)}
    if not unsuppressed:
        blocks.append(f"No suggestion. {nothing(kernel)}")
    if live and kernel.evidence is Evidence.STATIC:
        blocks.append("Static findings: without samples no gain is estimated, and the order says nothing.")
    detailed = live if page.top is None else live[: page.top]
    for suggestion in detailed:
        blocks += _suggestion(page, kernel, suggestion)
    blocks += [f"**{prose(joint(kernel, group))}**" for group in kernel.groups]
    blocks.append(_hidden(kernel, len(live) - len(detailed)))
    blocks += _suppressed(page, kernel)
    numbers = "\n".join(f"- {label}: {prose(text)}" for label, text in facts(kernel) if text)
    blocks.append(_closed("Numbers", "\n\n".join(part for part in (numbers, _stalls(kernel)) if part)))
    notes = [note for note in kernel.notes if note.suppressed is None]
    blocks += _folded("Notes", [f"{note.code}: {prose(note_words(note))}" for note in notes])
    blocks += _folded("Considered and rejected", [f"{r.code}: {prose(r.reason)}" for r in kernel.rejected])
    return blocks + _rules(kernel) + _problems(kernel.problems)


def _hidden(kernel: KernelAdvice, more: int) -> str:
    notes = ((more, "more not shown"), (kernel.hidden, "below the thresholds"))
    return "; ".join(f"{number} {words}" for number, words in notes if number)


def _stalls(kernel: KernelAdvice) -> str:
    total = kernel.samples.total
    if not total:
        return ""
    titles = ("stall reason", "share", "samples", "latency", "blamed", "self", "unattributed")
    rows = [
        (
            f"{code(stall.reason, cell=True)} {prose(stall.plain)}",
            percent(stall.samples / total),
            *(count(n) for n in (stall.samples, stall.latency, stall.blamed, stall.self, stall.unattributed)),
        )
        for stall in kernel.stalls
    ]
    sums = kernel.samples
    rows.append(
        (
            "all",
            "100 %",
            *(count(n) for n in (sums.total, sums.latency, sums.blamed, sums.self, sums.unattributed)),
        )
    )
    table = _table(titles, rows, frozenset(range(1, 7)))
    full = "The sample buffer was full: the samples cover only the first part."
    return f"{table}\n\n{full}" if sums.truncated else table


def _suggestion(page: Page, kernel: KernelAdvice, suggestion: Suggestion) -> list[str]:
    estimate = suggestion.speedup
    told = suggestion.matched_samples and explains(suggestion.importance, estimate)
    matched = f", {percent(suggestion.importance)} of the samples" if told else ""
    rows = [
        ("change", prose(suggestion.advice)),
        ("cause", prose(f"{suggestion.title} ({suggestion.code})")),
        ("where", prose(scope_words(page, kernel, suggestion.scope))),
        ("whole run", prose(whole_run(kernel, suggestion))),
        ("then limited by", prose(suggestion.next_limit)),
    ]
    behind = [
        f"{CATEGORY_WORDS[suggestion.category]}, {suggestion.evidence.value}",
        "" if estimate is None else prose(reasoning(estimate)),
        _hotspots(page, suggestion.hotspots) if suggestion.hotspots else "",
    ]
    return [
        f"### {prose(f'{won(estimate, suggestion.evidence)}: {suggestion.name}{matched}')}",
        "\n".join(f"- {label}: {text}" for label, text in rows if text),
        _closed("What this rests on", "\n\n".join(part for part in behind if part)),
    ]


def _hotspots(page: Page, hotspots: Sequence[Hotspot]) -> str:
    listed = worth_showing(hotspots)
    rows = [
        (
            code(hotspot.reason, cell=True) if hotspot.samples else "",
            percent(hotspot.importance) if hotspot.samples else "",
            factor(hotspot.speedup) if hotspot.samples and hotspot.speedup is not None else "",
            _end(page, hotspot.definition),
            _end(page, hotspot.use),
            "-" if hotspot.distance_instructions is None else str(hotspot.distance_instructions),
        )
        for hotspot in listed
    ]
    table = _table(("stall", "share", "alone", "def", "use", "distance"), rows, frozenset({1, 2, 5}))
    more = len(hotspots) - len(listed)
    return f"{table}\n\nand {more} more" if more else table


def _end(page: Page, end: CodeRef | None) -> str:
    if end is None:
        return "-"
    where = page.place(end.location) if end.location is not None else f"{end.pc:#06x}"
    parts = [code(where, cell=True), code(end.text or end.opcode, cell=True)]
    quoted = page.quote(end.location, end)
    if quoted is not None:
        parts.append(code(shorten(quoted, 100), cell=True))
    parts += [f"inlined at {code(page.place(frame.call_site), cell=True)}" for frame in end.inline]
    return "<br>".join(parts)


def _suppressed(page: Page, kernel: KernelAdvice) -> list[str]:
    lines = [
        f"- {s.code} is ignored at {code(page.place(s.suppressed.location))}: {prose(s.suppressed.reason)}"
        for s in (*kernel.suggestions, *kernel.notes)
        if s.suppressed is not None
    ]
    return ["\n".join(lines)] if lines else []


def _folded(title: str, items: Sequence[str]) -> list[str]:
    return [_closed(title, "\n".join(f"- {item}" for item in items))] if items else []


def _closed(title: str, text: str) -> str:
    """Text that is shown on a click."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _rules(kernel: KernelAdvice) -> list[str]:
    items = []
    for group in rule_groups(kernel.rules):
        parts = [rule_head(group), group[0].explanation, rule_message(group)]
        items.append("; ".join(prose(part) for part in parts if part))
    return _folded("NVIDIA's own rules beside ours", items)


def _problems(problems: Sequence[Problem]) -> list[str]:
    items = [f"- {code(problem.code.value)}: {prose(problem.message)}" for problem in problems]
    return ["Not understood, and data quality:\n\n" + "\n".join(items)] if items else []
