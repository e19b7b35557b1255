# SPDX-License-Identifier: Apache-2.0
"""One estimate in full: what it rests on, its equation with the numbers, and what its letters stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gpadvisor.errors import UsageError
from gpadvisor.model.advice import Advice, Category, Estimate, Suggestion
from gpadvisor.model.figures import gain, percent
from gpadvisor.model.stalls import KNOWN_REASONS
from gpadvisor.report.entries import by_number, families
from gpadvisor.report.names import short_name
from gpadvisor.report.page import Page, make_page, with_todays_lines
from gpadvisor.report.text_suggestion import hotspot_lines, scope_words, whole_run, worth_showing
from gpadvisor.report.words import CATEGORY_WORDS, cleaned, count, plural, wrap

_LETTERS: Final = {
    "S": "the speedup: old time divided by new time",
    "T": "all PC samples of the kernel, issued or waiting",
    "M": "the samples that the pattern matches, which the change would remove",
    "A": "active samples: taken while the scheduler issued an instruction",
    "M_L": "matched latency samples: taken while the scheduler issued nothing",
    "M^L": "matched latency samples: taken while the scheduler issued nothing",
    "R": "the samples that the changes together remove",
    "W": "warps per scheduler now",
    "W_new": "warps per scheduler after the change",
    "C_W": "how the number of warps per scheduler changes",
    "C_I": "how the issue rate of a scheduler changes",
    "R_I": "the share of the samples in which the sampled warp issued",
    "I": "the share of cycles in which a scheduler issues, now",
    "I_new": "the same after the change",
    "f": "what else the change of the launch brings along",
}
_SYMBOL: Final = re.compile(r"(?<![\w.])[A-Za-z](?:[_^]\w+)?(?![\w(])")
_CLASSES: Final = {
    Category.STALL_ELIMINATION: "the matched stalls go away, and with them their samples",
    Category.LATENCY_HIDING: "the waiting stays, and other instructions are issued meanwhile",
    Category.PARALLEL: "the code stays, and more warps share the schedulers",
    Category.NOTE: "nothing is promised",
}


def render_why(
    advice: Advice,
    number_or_code: str,
    *,
    width: int = 80,
    color: bool = False,
    sources: Mapping[str, str] | None = None,
) -> str:
    """One suggestion with everything that its estimate came from.

    Args:
        advice: What it is of.
        number_or_code: Its number on the screen, or the code of its rule, of which the first is taken.
        width: As `render_text` has it.
        color: As `render_text` has it.
        sources: As `render_text` has it.

    Raises:
        UsageError: the advice has no such suggestion.
    """
    advice = with_todays_lines(cleaned(advice))
    all_families = families(advice)
    entry = by_number(all_families, number_or_code.upper())
    if entry is None:
        most = sum(len(family.entries) for family in all_families)
        sentence = f"its suggestions are 1 to {most}" if most > 1 else f"it has {plural(most, 'suggestion')}"
        raise UsageError(
            f"{advice.path} has no suggestion {number_or_code}: {sentence}; --all shows smaller ones too"
        )
    page = make_page(advice, width=width, color=color, sources=sources)
    suggestion, kernel, style = entry.suggestion, entry.kernel, page.style
    estimate = suggestion.speedup
    won = "no estimate" if estimate is None else gain(estimate)
    title = f"{entry.number}  {won}  {suggestion.code} {suggestion.name}"
    lines = [style.heading(title), short_name(kernel.name, page.width), ""]
    if entry.also:
        other_kernels = ", ".join(short_name(kernel.name, page.width) for kernel in entry.also)
        lines[2:2] = wrap(f"and {other_kernels}", page.width)
    facts = [
        ("Change", suggestion.advice),
        ("Cause", _cause(suggestion, kernel.samples.total)),
        ("Where", scope_words(page, kernel, suggestion.scope)),
        ("Kind", f"{CATEGORY_WORDS[suggestion.category]}: {_CLASSES[suggestion.category]}"),
        ("Evidence", f"{suggestion.evidence.value}: {kernel.evidence_reason}"),
        ("Then", f"limited by {suggestion.next_limit}" if suggestion.next_limit else ""),
        ("Whole run", whole_run(kernel, suggestion)),
    ]
    lines += [line for label, text in facts for line in page.fact(label, text)]
    if estimate is not None:
        lines += _derivation(page, estimate, won)
    spots = worth_showing(suggestion.hotspots)
    if spots:
        lines += page.heading("Where it waits, and for what (def: what is waited for, use: what waits)")
        for index, spot in enumerate(spots, start=1):
            lines += hotspot_lines(page, kernel, spot, index)
    lines += ["", style.quiet(f"gpadvisor explain {suggestion.code} has the rule's page.")]
    reason = next((spot.reason for spot in spots if spot.reason in KNOWN_REASONS), None)
    if reason is not None:
        lines += [style.quiet(f"gpadvisor explain {reason} has that of the stall.")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _derivation(page: Page, estimate: Estimate, won: str) -> list[str]:
    """The equation, its letters, and the steps from the paper's value to what is shown."""
    lines = page.heading("How the numbers came about")
    paper = "" if estimate.paper is None else f" The paper's own value is {estimate.paper:.3f}."
    lines += wrap(f"{estimate.equation.rstrip('. ')}.{paper}", page.width, " ")
    for letter in dict.fromkeys(_SYMBOL.findall(estimate.equation)):
        if letter in _LETTERS:
            lines += wrap(f"{_LETTERS[letter]}", page.width, " " * 10, f"   {letter:<7}")
    lines += wrap(f"From there to {won}:", page.width, " ")
    for reason in estimate.reasons or (estimate.reason,):
        lines += wrap(reason, page.width, "   ", " - ")
    return lines


def _cause(suggestion: Suggestion, total: int) -> str:
    if not suggestion.matched_samples:
        return suggestion.title
    matched, latency = count(suggestion.matched_samples), count(suggestion.matched_latency)
    return (
        f"{suggestion.title}: {percent(suggestion.importance)} of the samples ({matched} of {count(total)}; "
        f"{latency} of them while the scheduler issued nothing)"
    )
