# SPDX-License-Identifier: Apache-2.0
"""The report on one screen: what takes the time, what limits it, and the few changes worth their while."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpadvisor import __version__
from gpadvisor.advice.verdict import without_code
from gpadvisor.model.advice import Advice, Category, KernelAdvice
from gpadvisor.model.figures import expected, gain, percent
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.report.alike import (
    LARGE_SHARE,
    alike_groups,
    apart_from,
    is_listed,
    is_named,
    other_launches,
    own_changes,
    share_of,
)
from gpadvisor.report.caveats import caveats
from gpadvisor.report.entries import Family, NumberedSuggestion, cause, families, heaviest, primary
from gpadvisor.report.folding import SMALL_SHARE
from gpadvisor.report.names import base_name, core_name, short_name
from gpadvisor.report.page import Page
from gpadvisor.report.run_findings import finding_row
from gpadvisor.report.text_kernel import no_change
from gpadvisor.report.text_suggestion import ALL_OF_IT, after_words, cause_words
from gpadvisor.report.words import (
    Keep,
    base_file,
    cells,
    clauses,
    dimensions,
    duration,
    pad,
    place,
    plural,
    shorten,
    wrap,
)

LINES: Final = 40
"""What a terminal shows at once."""
_BLOCKS: Final = 3  # of one kernel
_KERNELS: Final = 3  # that have blocks
_OTHERS: Final = 3  # lines of further kernels that blocks leave room for
_RUN_FINDINGS: Final = 2
_CAVEATS: Final = 5
_CAVEAT_LINES: Final = 3
_INDENT: Final = "    "
_LABEL: Final = 7
_NAME: Final = 44
_PATH: Final = 44
_LEAST_FILE: Final = 24
_CAST: Final = re.compile(r"\((?:unsigned |signed )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")
_NO_SAMPLES: Final = "without samples nothing is said about"


def screen_lines(page: Page, advice: Advice, *, everything: bool = False) -> list[str]:
    """The screen.

    Args:
        page: What it is set on.
        advice: What is told.
        everything: Every suggestion of every kernel and the notes, however many lines they take.
    """
    all_families, little = families(advice), 0
    if not everything:
        little = sum(len(family.entries) for family in all_families if _is_little(family, all_families))
        all_families = tuple(
            replace(family, entries=()) if _is_little(family, all_families) else family
            for family in all_families
        )
    start = [*_title(page, advice), "", *_headline(page, all_families)]
    for text in caveats(advice)[:_CAVEATS]:
        sentence = clauses(text, _CAVEAT_LINES * (page.width - 2 * len(_INDENT)))
        start += [page.style.caution(line) for line in wrap(sentence, page.width, "  ", "! ")]
    run_findings = advice.run_findings if everything else advice.run_findings[:_RUN_FINDINGS]
    end = [line for finding in run_findings for line in ("", *finding_row(finding, page.width))]
    end += ["", *_closing(page, advice, all_families, little)]
    room = None if everything else LINES - len(start) - len(end)
    return [*start, *_kernels(page, all_families, room), *end]


def _is_little(family: Family, all_families: Sequence[Family]) -> bool:
    """Whether a kernel takes next to nothing of the time, where others take more."""
    share, most = family.share, heaviest(all_families).share
    return share is not None and share < SMALL_SHARE <= (most or 0.0)


def _is_most(family: Family) -> bool:
    """Whether a kernel takes so much of the time that what a small one gains cannot be noticed."""
    return (family.share or 0.0) > 0.5


def _title(page: Page, advice: Advice) -> list[str]:
    names = (kernel.device.name or kernel.device.arch for kernel in advice.kernels)
    devices = list(dict.fromkeys(name.removeprefix("NVIDIA ").removeprefix("GeForce ") for name in names))
    times = [kernel.duration_ns for kernel in advice.kernels]
    kernels = {kernel.mangled for kernel in advice.kernels}
    analysed = [summary.analysed for summary in advice.launches if summary.launch.kernel in kernels]
    facts = [
        plural(len(times), "kernel") if len(times) != 1 or all(analysed) else "",
        "" if all(analysed) else f"{sum(analysed)} of {len(analysed)} launches",
        duration(times[0]) if len(times) == 1 and times[0] is not None else "",
        devices[0] if len(devices) == 1 else "",
    ]
    head = f"GPAdvisor {__version__}"
    room = page.width - cells(head) - 2
    tail = f": {', '.join(fact for fact in facts if fact)}"
    name = advice.path if cells(advice.path + tail) <= room else base_file(advice.path)
    name = shorten(name, max(room - cells(tail), _LEAST_FILE), Keep.BOTH)
    return [f"{page.style.heading(head)}  {shorten(name + tail, room)}"]


def _headline(page: Page, all_families: Sequence[Family]) -> list[str]:
    """What takes the time, and what limits that."""
    if not all_families:
        return [page.style.heading("No kernel was analysed.")]
    first = heaviest(all_families)
    name, limited_by = _name(first), first.head.limited_by
    part = first.share is not None and first.share <= ALL_OF_IT
    takes = f"{name} takes {_share(first.share)} of {_whose(first)}"
    if limited_by:
        text = f"{takes}, limited by {limited_by}" if part else f"{name} is limited by {limited_by}"
    elif not first.head.has_code:
        text = f"{takes if part else name}; {without_code(first.head.suggestions)}"
    else:
        text = f"{takes}; {_NO_SAMPLES} why" if part else f"{name}: {_NO_SAMPLES} time"
    if first.head.faster:
        text += f". {first.head.faster}"
    elif not any(family.entries for family in all_families):
        everything = [kernel for family in all_families for kernel in family.kernels]
        text += f". {no_change(first.head, everything)}"
    return [page.style.heading(line) for line in wrap(f"{text.rstrip('.')}.", page.width)]


def _kernels(page: Page, all_families: Sequence[Family], room: int | None) -> list[str]:
    """Blocks of the kernels where most can be gained, and a line for each other one while there is room."""
    gains = [family for family in all_families if family.entries]
    worth = [family for family in gains if family.saved >= SMALL_SHARE or (family.share or 0) >= LARGE_SHARE]
    worth = worth or ([] if _is_most(heaviest(all_families)) else gains[:1])
    led = gains if room is None else worth[:_KERNELS]
    heads = {id(family): _head(page, family) for family in led}
    if led and led[0] is heaviest(all_families):  # the headline has told of it
        heads[id(led[0])] = [""]
    ids = {id(family) for family in led}
    smaller = [family for family in all_families if id(family) not in ids] if len(all_families) > 1 else []
    alike = alike_groups(smaller)
    lasting = sum(len(_row(page, family)) for family in apart_from(smaller, alike) if is_named(family, alike))
    reserved = sum(map(len, heads.values())) + len(led)
    reserved += max(lasting + len(_alike_rows(page, alike)), min(len(smaller), _OTHERS)) + 2 if smaller else 0
    spare = None if room is None else room - reserved
    blocks = _blocks(page, led, spare)
    if spare is not None:
        spare -= sum(map(len, blocks.values()))
    lines: list[str] = []
    for family in led:
        lines += heads[id(family)]
        lines += [line for entry in family.entries for line in blocks.get(entry.number, ())]
        further = _rest(page, [entry for entry in own_changes(family) if entry.number not in blocks], spare)
        spare = None if spare is None else spare - max(0, len(further) - 1)
        lines += further
    return lines + _others(page, smaller, None if room is None else room - len(lines))


def _blocks(page: Page, led: Sequence[Family], room: int | None) -> dict[int, list[str]]:
    """By number: the first suggestion of each kernel, then as many of the next ones as there is room for."""
    most = _BLOCKS if room is not None else max((len(family.entries) for family in led), default=0)
    result: dict[int, list[str]] = {}
    for rank in range(most if page.top is None else min(most, page.top)):
        for family in led:
            for entry in own_changes(family)[rank : rank + 1]:
                block = _block(page, family, entry)
                if room is None or rank == 0 or len(block) <= room:
                    result[entry.number] = block
                    room = None if room is None else room - len(block)
    return result


def _head(page: Page, family: Family) -> list[str]:
    """Its share of the time and what limits it."""
    kernel, name = family.head, _name(family)
    facts = [
        "" if family.share is None else f"{_share(family.share)} of {_whose(family)}",
        f"limited by {kernel.limited_by}" if kernel.limited_by else "",
    ]
    text = ", ".join(fact for fact in facts if fact)
    first, *more = wrap(text, page.width, _INDENT, f"{name}: ")
    return ["", page.style.heading(first[: len(name)]) + first[len(name) :], *more]


def _whose(family: Family) -> str:
    return "the time" if family.head.in_run is None else "the GPU's busy time"


def _share(share: float | None) -> str:
    return percent(share, 1 if share is not None and share < 0.1 else 0)


def _name(family: Family) -> str:
    if len(family.kernels) > 1:
        names = {kernel.name for kernel in family.kernels}
        text = "launches" if len(names) == 1 else "instantiations"
        plain = core_name(family.head.name).partition("<")[0]
        return f"{short_name(plain, _NAME)} ({len(family.kernels)} {text})"
    return _kernel_name(family.head, _NAME)


def _kernel_name(kernel: KernelAdvice, width: int) -> str:
    """Without parameters, and with plain template arguments: ``reduce<256>``."""
    return short_name(_CAST.sub("", core_name(kernel.name)), width)


def _block(page: Page, family: Family, entry: NumberedSuggestion) -> list[str]:
    """Gain and cure, cause, place, and what limits next."""
    suggestion, style = entry.suggestion, page.style
    estimate = suggestion.speedup
    won = "" if estimate is None else f"{gain(estimate)}  "
    lead = f"{entry.number:>2}  {won}"
    first, *more = wrap(suggestion.cure or suggestion.advice, page.width, _INDENT, lead)
    lines = [style.heading(lead[:4]) + style.gain(won) + first[len(lead) :], *more]
    for words in other_launches(family, entry):
        lines += _labelled(page, "or", words)
    lines += _labelled(page, "cause", cause_words(suggestion))
    lines += _place(page, family, entry)
    return lines + _labelled(page, "then", after_words(entry.kernel, entry.suggestion))


def _labelled(page: Page, label: str, text: str) -> list[str]:
    if not text:
        return []
    margin = _INDENT + " " * _LABEL
    first, *more = wrap(text, page.width, margin, _INDENT + pad(label, _LABEL))
    return [page.style.quiet(first[: len(margin)]) + first[len(margin) :], *more]


def _place(page: Page, family: Family, entry: NumberedSuggestion) -> list[str]:
    """``file:line`` with the words on it; without lines the instruction."""
    suggestion, style = entry.suggestion, page.style
    location, code = _sure(page, entry), cause(suggestion)
    room = page.width - len(_INDENT) - _LABEL
    where = "" if location is None else _file_line(page, location, room)
    words = page.quote(location, code)
    if suggestion.category is Category.PARALLEL and entry.kernel.launch is not None:
        launch = entry.kernel.launch
        blocks = "block" if launch.blocks == 1 else "blocks"
        threads = "thread" if launch.threads_per_block == 1 else "threads"
        where = f"launch of {dimensions(launch.grid)} {blocks} of {dimensions(launch.block)} {threads}"
        words = None
    elif location is None and code is not None:
        same_function = base_name(code.function) == base_name(entry.kernel.name)
        outside = "" if same_function else f" of {short_name(code.function, _NAME)}"
        where, words = f"{code.pc:#06x}{outside}", code.text or code.opcode
    if not where:
        return []
    many = len(family.kernels) > 1 or entry.also
    of = [_kernel_name(entry.kernel, _NAME // 2)] if many else []
    of += [f"{len(entry.also)} more"] if entry.also else []
    sentence = f"  in {' and '.join(of)}" if of else ""
    label = style.quiet(_INDENT + pad("place", _LABEL))
    head = label + style.code(where) + style.quiet(sentence)
    if words is None:
        return [head]
    if cells(where) + cells(sentence) + 2 + cells(words) <= room:
        return [f"{head}  {words}"]
    return [head, " " * (len(_INDENT) + _LABEL) + shorten(words, room)]


def _file_line(page: Page, location: SourceLocation, room: int) -> str:
    """The path on this machine, which a click opens; of a file that is elsewhere its name."""
    if page.local.get(location.file) is not None:
        return page.place(location, room)
    return place(SourceLocation(base_file(location.file), location.line), room)


def _rest(page: Page, entries: Sequence[NumberedSuggestion], room: int | None) -> list[str]:
    """The suggestions without a block: the change and its place while there is room, the others counted."""
    lines: list[str] = []
    for index, entry in enumerate(entries):
        estimate, place = entry.suggestion.speedup, _sure(page, entry)
        won = "" if estimate is None else f"{gain(estimate)}  "
        where = "" if place is None else f"{base_file(place.file)}:{place.line}, "
        cure = entry.suggestion.cure or entry.suggestion.advice
        lead = f"{entry.number:>2}  {won}"
        more = wrap(f"{cure} ({where}{entry.suggestion.code})", page.width, _INDENT, lead)
        if room is not None and len(lines) + len(more) > room:
            return [*lines, page.style.quiet(f"{_INDENT}{_counted(entries[index:])}: --details")]
        lines += more
    return lines


def _sure(page: Page, entry: NumberedSuggestion) -> SourceLocation | None:
    """Its line, where the file here can have it."""
    location = primary(entry.suggestion)
    return None if page.is_doubtful(location, cause(entry.suggestion)) else location


def _counted(entries: Sequence[NumberedSuggestion]) -> str:
    """``2 more changes, of 1.3x and 1.1x``."""
    gains = [expected(entry.suggestion.speedup) for entry in entries if entry.suggestion.speedup is not None]
    of = f", of {' and '.join(gains[:_BLOCKS])}" if 0 < len(gains) == len(entries) <= _BLOCKS else ""
    return f"{plural(len(entries), 'more change')}{of}"


def _row(page: Page, family: Family) -> list[str]:
    """A kernel without a block: its share, and what was found."""
    best = next((entry for entry in family.entries if entry.suggestion.speedup is not None), None)
    best = best or next(iter(family.entries), None)
    lead = f"{_share(family.share):>6}  {_name(family)}  "
    if best is not None:
        estimate, location = best.suggestion.speedup, _sure(page, best)
        won = "" if estimate is None else f"{gain(estimate)}  "
        where = "" if location is None else f" ({base_file(location.file)}:{location.line})"
        return wrap(f"{best.suggestion.title}{where}", page.width, " " * 8, f"{lead}{best.number}  {won}")
    limit = family.head.limit
    text = "nothing found" + (f", limited by {limit}" if limit else "")
    return wrap(text, page.width, " " * 8, lead)


def _alike_rows(page: Page, groups: Sequence[Sequence[Family]]) -> list[str]:
    """Their names while those fit, their time, and what tells of them."""
    lines = []
    for group in groups:
        names = [_name(family) for family in group]
        more = f" and {plural(len(names) - _OTHERS, 'more kernel')}" if len(names) > _OTHERS + 1 else ""
        listed = ", ".join(names[: _OTHERS if more else None])
        share = share_of(group)
        text = f"{listed}{more}: the same as {' and '.join(map(str, group[0].elsewhere))}"
        lines += wrap(text, page.width, " " * 8, f"{'-' if share is None else _share(share):>6}  ")
    return lines


def _others(page: Page, smaller: Sequence[Family], room: int | None) -> list[str]:
    """Kernels without a block: those that count, as many more as there is room for, the rest counted."""
    if not smaller:
        return []
    smaller = sorted(smaller, key=lambda family: -(family.share or 0.0))
    groups = alike_groups(smaller)
    alike, smaller = _alike_rows(page, groups), apart_from(smaller, groups)
    large = smaller if room is None else [family for family in smaller if is_listed(family)]
    lines: list[str] = []
    listed: list[Family] = []
    name_rows = sum(len(_row(page, family)) for family in large if is_named(family, groups))
    spare = 0 if room is None else room - 2 - name_rows - len(alike)
    for family in large:
        row = _row(page, family)
        if room is not None and not is_named(family, groups):
            if len(row) > spare:
                continue
            spare -= len(row)
        lines += row
        listed.append(family)
    ids = {id(family) for family in listed}
    counted = [family for family in smaller if id(family) not in ids]
    more = plural(sum(len(family.kernels) for family in counted), "more kernel")
    timed = all(family.share is not None for family in counted)
    if timed and len(listed) == len(large):
        more += ", each below 1 % of the time"
    elif timed:
        more += f", {percent(sum(family.share or 0.0 for family in counted), 0)} of the time"
    return ["", *lines, *alike, *([page.style.quiet(f"{'':8}and {more}")] if counted else [])]


def _closing(page: Page, advice: Advice, all_families: Sequence[Family], little: int) -> list[str]:
    """How to see more; ``little`` counts suggestions of kernels that take next to nothing."""
    first = next((entry for family in all_families for entry in family.entries), None)
    hidden = little + sum(kernel.hidden for kernel in advice.kernels)
    notes = sum(len(kernel.notes) for kernel in advice.kernels)
    ignored = sum(entry.suppressed is not None for kernel in advice.kernels for entry in kernel.suggestions)
    name = shlex.quote(advice.path) if len(advice.path) <= _PATH else "FILE"
    evidence = set() if advice.collector else {part.evidence for part in advice.kernels}  # of code alone
    number = "1 --model" if Evidence.MODELLED in evidence else "1"  # a source is simulated again
    more = [
        "--details has every number" + (f" and {plural(notes, 'note')}" if notes else ""),
        f"--all {plural(hidden, 'smaller finding')}" if hidden else "",
    ]
    ways = [
        "" if first is None else f"gpadvisor why {name} {number} tells {_told(first)}",
        "--model simulates a launch" if evidence == {Evidence.STATIC} else "",
        ", ".join(sentence for sentence in more if sentence),
        f"comments in the source set {ignored} aside" if ignored else "",
    ]
    text = f"More: {'; '.join(command for command in ways if command)}."
    return [page.style.quiet(line) for line in wrap(text, page.width)]


def _told(entry: NumberedSuggestion) -> str:
    if entry.suggestion.speedup is None:
        return "where the first finding is"
    return "how the first estimate came about"
