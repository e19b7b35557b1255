# SPDX-License-Identifier: Apache-2.0
"""What stands above a kernel: three lenses at most, as more of them push the code around."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.show.choice import chosen, families, launches_of
from gpadvisor.editor.show.headline import run_words
from gpadvisor.editor.show.options import Annotations, Options
from gpadvisor.editor.show.words import clean, plural
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.figures import gain, short_percent
from gpadvisor.model.finding import EditorAnalysis, Finding, KernelView


class LensAction(Enum):
    """What a click does."""

    EXPLAIN = "explain"  # show the kernel's advice
    GO_TO = "go_to"  # jump to the best finding
    PICK_KERNEL = "pick_kernel"  # another instantiation of the template
    PICK_LAUNCH = "pick_launch"
    IMPORT = "import"  # a profile
    MODEL = "model"  # simulate the kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """One lens on one line."""

    line: int
    title: str
    action: LensAction
    kernel: str  # mangled
    base_name: str
    finding: str | None  # id, for GO_TO


def lenses(
    analysis: EditorAnalysis,
    file: PlacedFile,
    options: Options,
    *,
    underlined: Collection[str] | None = None,
    reading: str | None = None,
) -> tuple[Lens, ...]:
    """The lenses of a file, by line.

    Args:
        analysis: What is shown.
        file: The file in today's text.
        options: What the user wants to see.
        underlined: Ids of the findings that have a diagnostic: only they are counted. None counts all.
        reading: Name of a profile that is being read now and may say more.
    """
    if not options.code_lens or options.annotations in {Annotations.OFF, Annotations.MINIMAL}:
        return ()
    result: list[Lens] = []
    for family in families(analysis):
        kernel = chosen(family, options)
        if kernel.place is None or kernel.place.file != file.path:
            continue
        line = file.map.now(kernel.place.line)[0]
        count = _counted(file, kernel, underlined)
        for action, title, finding in _titles(analysis, file, family, kernel, count, reading):
            result.append(
                Lens(
                    line=line,
                    title=clean(title),
                    action=action,
                    kernel=kernel.kernel,
                    base_name=kernel.base_name,
                    finding=finding,
                )
            )
    return tuple(sorted(result, key=lambda lens: lens.line))


def _counted(file: PlacedFile, kernel: KernelView, underlined: Collection[str] | None) -> int:
    """The kernel's findings in this file, each suggestion once."""
    codes = {
        placed.finding.code
        for placed in (*file.findings, *file.deleted_findings)
        if placed.finding.suppressed is None
        and (underlined is None or placed.finding.id in underlined)
        and any(part.kernel == kernel.kernel for part in placed.finding.parts)
    }
    return len(codes)


def _titles(
    analysis: EditorAnalysis,
    file: PlacedFile,
    family: Sequence[KernelView],
    kernel: KernelView,
    count: int,
    reading: str | None,
) -> list[tuple[LensAction, str, str | None]]:
    best = next(
        (finding for entry in analysis.files for finding in entry.findings if finding.id == kernel.best), None
    )
    titles: list[tuple[LensAction, str, str | None]] = [
        (
            LensAction.EXPLAIN if best is None else LensAction.GO_TO,
            _summary(file, family, kernel, best, count, reading),
            kernel.best,
        )
    ]
    if len(family) > 1:
        siblings = ", ".join(_brief(sibling) for sibling in family if sibling is not kernel)
        titles.append((LensAction.PICK_KERNEL, _cut(f"showing {kernel.name}; also {siblings}"), None))
    elif kernel.launch is not None and len(launches_of(analysis, kernel)) > 1:
        titles.append((LensAction.PICK_LAUNCH, kernel.launch, None))
    if kernel.evidence is Evidence.STATIC and reading is None and count:
        titles.append((LensAction.IMPORT, "import a profile", None))
        titles.append((LensAction.MODEL, "model", None))
    return titles


def _summary(
    file: PlacedFile,
    family: Sequence[KernelView],
    kernel: KernelView,
    best: Finding | None,
    count: int,
    reading: str | None,
) -> str:
    """Gain, cure, where; then the kernel's share, and how much more is underlined."""
    leader = next(
        (
            suggestion
            for suggestion in kernel.suggestions
            if suggestion.suppressed is None and suggestion.code == kernel.best_code
        ),
        None,
    )
    share = (
        _share(kernel) if reading is None or kernel.evidence is not Evidence.STATIC else f"reading {reading}"
    )
    parts = [f"{kernel.name} {share}" if len(family) > 1 else share]
    if kernel.best_speedup is not None and leader is not None:
        run = "" if best is None else run_words(best, kernel.kernel)
        parts.insert(0, f"{gain(kernel.best_speedup)}{run}: {leader.name}{_where(file, best)}")
        parts += [f"{count - 1} more"] if count > 1 else []
    else:
        parts.insert(0, plural(count, "suggestion") if count else "no suggestion")
    return " | ".join(parts)


def _share(kernel: KernelView) -> str:
    if kernel.evidence is Evidence.STATIC:
        return "code only, no profile"
    if kernel.evidence is Evidence.MODELLED:
        return "modelled, not measured"
    return "time unknown" if kernel.time_share is None else f"{short_percent(kernel.time_share)} of GPU time"


def _where(file: PlacedFile, best: Finding | None) -> str:
    placed = next(
        (candidate for candidate in file.findings if best is not None and candidate.finding.id == best.id),
        None,
    )
    return "" if placed is None else f", line {placed.line}"


def _brief(kernel: KernelView) -> str:
    if kernel.time_share is not None:
        return f"{kernel.name} {short_percent(kernel.time_share)}"
    return kernel.name


def _cut(title: str, letters: int = 120) -> str:
    return title if len(title) <= letters else title[: letters - 3].rstrip(" ,") + "..."
