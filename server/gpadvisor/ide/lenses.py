# SPDX-License-Identifier: Apache-2.0
"""What stands above a kernel: three lenses at most, as more of them push the code around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gpadvisor.ide.choice import chosen, families, launches_of
from gpadvisor.ide.options import Annotations, Options
from gpadvisor.ide.placing import PlacedFile
from gpadvisor.ide.values import EditorAnalysis, Finding, KernelView
from gpadvisor.ide.words import clean, percent, plural
from gpadvisor.model.figures import expected, gain
from gpadvisor.model.profile import Evidence


class LensAction(Enum):
    """What a click does."""

    EXPLAIN = "explain"  # show the kernel's advice
    GO_TO = "go_to"  # jump to the best finding
    PICK_KERNEL = "pick_kernel"  # another instantiation of the template
    PICK_LAUNCH = "pick_launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """One lens on one line."""

    line: int
    title: str
    action: LensAction
    kernel: str  # mangled
    base_name: str
    finding: str | None  # id, for GO_TO


def lenses(analysis: EditorAnalysis, file: PlacedFile, options: Options) -> tuple[Lens, ...]:
    """The lenses of a file, by line."""
    if not options.code_lens or options.annotations in {Annotations.OFF, Annotations.MINIMAL}:
        return ()
    found: list[Lens] = []
    for family in families(analysis):
        kernel = chosen(family, options)
        if kernel.place is None or kernel.place.file != file.path:
            continue
        line = file.map.now(kernel.place.line)[0]
        for action, title, finding in _titles(analysis, file, family, kernel):
            found.append(
                Lens(
                    line=line,
                    title=clean(title),
                    action=action,
                    kernel=kernel.kernel,
                    base_name=kernel.base_name,
                    finding=finding,
                )
            )
    return tuple(sorted(found, key=lambda lens: lens.line))


def _titles(
    analysis: EditorAnalysis, file: PlacedFile, family: Sequence[KernelView], kernel: KernelView
) -> list[tuple[LensAction, str, str | None]]:
    best = next((one for entry in analysis.files for one in entry.findings if one.id == kernel.best), None)
    titles: list[tuple[LensAction, str, str | None]] = [
        (
            LensAction.EXPLAIN if best is None else LensAction.GO_TO,
            _summary(file, family, kernel, best),
            kernel.best,
        )
    ]
    if kernel.together is not None and len(kernel.together_codes) > 1:
        codes = " + ".join(kernel.together_codes)
        titles.append((LensAction.EXPLAIN, f"together {expected(kernel.together)} ({codes})", None))
    if len(family) > 1:
        others = ", ".join(_brief(one) for one in family if one is not kernel)
        titles.append((LensAction.PICK_KERNEL, _cut(f"showing {kernel.name}; also {others}"), None))
    elif kernel.launch is not None and len(launches_of(analysis, kernel)) > 1:
        titles.append((LensAction.PICK_LAUNCH, kernel.launch, None))
    return titles


def _summary(file: PlacedFile, family: Sequence[KernelView], kernel: KernelView, best: Finding | None) -> str:
    open_ones = [one for one in kernel.suggestions if one.suppressed is None]
    share = f"{kernel.name} {_share(kernel)}" if len(family) > 1 else _share(kernel)
    leader = next((one for one in open_ones if one.code == kernel.best_code), None)
    if kernel.best_speedup is not None and leader is not None:
        name = f"{leader.name} ({leader.code}{_where(file, best)})"
        more = [f"{len(open_ones) - 1} more"] if len(open_ones) > 1 else []
        parts = [f"{gain(kernel.best_speedup)} {name}", share, *more]
    else:
        parts = [share, plural(len(open_ones), "suggestion") if open_ones else "no suggestion"]
    return f"GPA: {' | '.join(parts)}"


def _share(kernel: KernelView) -> str:
    if kernel.evidence is Evidence.STATIC:
        return "static, no profile"
    if kernel.evidence is Evidence.MODELLED:
        return "modelled, not measured"
    return "time unknown" if kernel.time_share is None else f"{percent(kernel.time_share)} of GPU time"


def _where(file: PlacedFile, best: Finding | None) -> str:
    placed = next((one for one in file.findings if best is not None and one.finding.id == best.id), None)
    return "" if placed is None else f", line {placed.line}"


def _brief(kernel: KernelView) -> str:
    if kernel.time_share is not None:
        return f"{kernel.name} {percent(kernel.time_share)}"
    return kernel.name


def _cut(title: str, letters: int = 120) -> str:
    return title if len(title) <= letters else title[: letters - 3].rstrip(" ,") + "..."
