# SPDX-License-Identifier: Apache-2.0
"""Quick fixes: which edits answer the findings of a file, and what the machine code says of one.

Nothing here writes to a file of the user's, except ``fixing_flags.write_flag``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from gpadvisor.errors import SettingsError, SourceError, ToolError
from gpadvisor.files import scratch_folder
from gpadvisor.model.finding import Finding
from gpadvisor.model.fix import Fix, FixCheck, LaunchFacts, PatternState, apply_edits
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.fixes.built import read_build, same_file
from gpadvisor.pipeline.fixes.check import (
    Side,
    concerns,
    fix_lines,
    kernel_changes,
    pattern_state,
    where_changed,
)
from gpadvisor.pipeline.fixes.disabled import DEFAULT_REASON, disable_fix
from gpadvisor.pipeline.fixes.flags import build_line, flag_edits, read_settings, settings_file
from gpadvisor.pipeline.fixes.offered import fixes_for, flag_fix, flag_of
from gpadvisor.pipeline.fixes.words import markdown, sentence
from gpadvisor.pipeline.opening import compile_settings
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources.facts import ask_parser
from gpadvisor.pipeline.sources.includers import units_of
from gpadvisor.sandbox.codec import from_bytes
from gpadvisor.source.edits import EditFacts
from gpadvisor.source.facts import HASH_SUFFIXES
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import Compiled
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.stand_ins import Overlay, mirror

Cancelled = Callable[[], bool]

_MAX_TEXT: Final = 1 << 20
_KEPT_FACTS: Final = 16
_ERROR_SHOWN: Final = 2_000


def find_fixes(
    path: Path,
    text: str,
    findings: Sequence[Finding],
    *,
    request: Request,
    launches: Mapping[str, LaunchFacts] | None = None,
    roots: Sequence[Path] = (),
) -> tuple[Fix, ...]:
    """The fixes that answer findings of one file, those of each finding together, most to the point first.

    Lines of the findings and of their scopes are those of ``text``, which need not be saved. Files outside of
    the project get none: ``roots`` are its folders, else the request's root is.

    Args:
        path: The file.
        text: What it says now.
        findings: Of this file.
        request: Root of the project and settings.
        launches: What is known of the kernels' launches, by mangled name.
        roots: Folders of the workspace.
    """
    root = _root_of(path, request, roots)
    if root is None:
        return ()
    facts = edit_facts_of(path, text)
    launch_facts = launches or {}
    fixes: list[Fix] = []
    for finding in findings:
        launch = launch_facts.get(finding.kernel)
        fixes += fixes_for(finding, facts, path=str(path), launch=launch)
        fixes += _flag_fixes(path, root, finding)
    return tuple({(fix.id, fix.finding): fix for fix in fixes}.values())


def find_disable(
    path: Path,
    text: str,
    line: int,
    codes: Sequence[str],
    *,
    request: Request,
    reason: str = DEFAULT_REASON,
    roots: Sequence[Path] = (),
    finding: str | None = None,
) -> Fix | None:
    """The comment that silences rules on a line; None where none can stand or one does already."""
    if _root_of(path, request, roots) is None:
        return None
    return disable_fix(
        str(path), text, line, codes, edit_facts_of(path, text), reason=reason, finding=finding
    )


def _root_of(path: Path, request: Request, roots: Sequence[Path]) -> Path | None:
    """The folder of the project that a file is in."""
    place = path.resolve()
    folders = [folder.resolve() for folder in (roots or (request.root,))]
    inside = [folder for folder in folders if place.is_relative_to(folder)]
    return max(inside, key=lambda folder: len(folder.parts), default=None)


def edit_facts_of(path: Path, text: str) -> EditFacts:
    """Where a text can be edited; nothing where the process that parses it fails."""
    if len(text) > _MAX_TEXT:
        return EditFacts()
    try:
        return _read_facts(path.name, text)
    except (ToolError, ValueError):
        return EditFacts()


@lru_cache(maxsize=_KEPT_FACTS)
def _read_facts(name: str, text: str) -> EditFacts:
    (facts,) = from_bytes(
        ask_parser("gpadvisor.source.edits.reading:answer", [(name, text)]), list[EditFacts]
    )
    return facts.of_text(text)


def _flag_fixes(path: Path, root: Path, finding: Finding) -> list[Fix]:
    flag = flag_of(finding.code)
    if flag is None or path.suffix.lower() in HASH_SUFFIXES:  # what Python compiles has other options
        return []
    line = build_line(path, root, flag)
    try:
        settings, wrong = settings_file(path, root)
        edits = flag_edits(read_settings(settings), flag) if wrong is None else None
    except SettingsError:
        return []
    if edits == ():
        return []  # it is there
    if flag == "-lineinfo":
        edits = ()  # every compile of ours has it
    return [
        flag_fix(
            finding,
            flag,
            settings=str(settings),
            edits=edits or (),
            creates=not settings.exists(),
            build_line=line if wrong is None else f"{line}. For gpadvisor: {wrong}",
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """What all builds of one check have in common."""

    path: Path
    fix: Fix
    request: Request
    progress: Progress
    cache: Cache
    cancelled: Cancelled | None

    def build(self, unit: Path, text: str, lines: set[int], *, flag: str | None = None) -> Side:
        """Compile a unit with one text of the file."""
        with scratch_folder() as folder:
            overlay = None if unit == self.path else self._mirror(unit, text, folder.resolve())
            compiled = self._compile(unit, text, overlay, flag)
        built = read_build(compiled, self.fix.code, self.request, self.progress, self.cache, self.cancelled)
        is_file = same_file(self.path, overlay)
        return Side(built, is_file, lines)

    def _mirror(self, unit: Path, text: str, folder: Path) -> Overlay:
        root = self.request.root.resolve()
        if not (self.path.is_relative_to(root) and unit.is_relative_to(root)):
            raise SourceError(
                f"{unit} is outside of {root}; open the folder that holds it and {self.path.name}"
            )
        try:
            return mirror(root, folder, self.path, text)
        except OSError as error:
            raise SourceError(
                f"cannot mirror {root} to try a change of {self.path.name} in it: {error.strerror}"
            ) from error

    def _compile(self, unit: Path, text: str, overlay: Overlay | None, flag: str | None) -> Compiled:
        settings = compile_settings(self.request)
        if flag is not None:
            settings = replace(settings, extra_flags=(*settings.extra_flags, flag))
        return compile_source(
            unit,
            arch=self.request.settings.arch,
            settings=settings,
            text=text if overlay is None else None,
            overlay=overlay,
            cancelled=self.cancelled,
        )


def check_fix(
    path: Path,
    text: str,
    fix: Fix,
    *,
    request: Request,
    progress: Progress,
    cache: Cache,
    cancelled: Cancelled | None = None,
    kernel: str | None = None,
    units: Sequence[Path] = (),
) -> FixCheck:
    """Compile with and without a fix, and say what it does to the machine code.

    Args:
        path: The file with the finding.
        text: What it says now, without the fix.
        fix: For this very text.
        request: Settings of the compile step; root of the project.
        progress: Called at each stage.
        cache: Of listings.
        cancelled: Asked often; True stops everything.
        kernel: Mangled name of the finding's kernel, which is described first.
        units: For a header, sources that were compiled with it.

    Raises:
        SourceError: the text does not compile without the fix, or no source that includes it is known.
        ToolError: a tool is missing or failed, or the check was cancelled.
    """
    place = path.resolve()
    check = _Check(path=place, fix=fix, request=request, progress=progress, cache=cache, cancelled=cancelled)
    before, after = fix_lines(fix)
    unit, old = _first_build(check, text, before, [unit.resolve() for unit in units])
    progress(f"compiling {unit.name} with the fix")
    edited = text if fix.flag is not None else apply_edits(text, fix.edits)
    try:
        new = check.build(unit, edited, before if fix.flag is not None else after, flag=fix.flag)
    except SourceError as error:
        return _does_not_compile(fix, unit, old, str(error)[:_ERROR_SHOWN])
    kernels = kernel_changes(fix, old, new, kernel)
    pattern = pattern_state(fix, old, new)
    where, built = where_changed(fix), new.built
    return FixCheck(
        fix=fix.id,
        compiles=True,
        pattern=pattern,
        arch=built.arch,
        compiler=built.compiler,
        unit=str(unit),
        kernels=kernels,
        message=sentence(fix, built.arch, kernels, pattern, where),
        details=markdown(fix, unit.name, built.compiler, built.arch, kernels, pattern, where),
    )


def _first_build(check: _Check, text: str, lines: set[int], paths: Sequence[Path]) -> tuple[Path, Side]:
    """The unit whose machine code comes from the lines of the fix, built without it; else the first one."""
    root = check.request.root.resolve()
    units = units_of(check.path, root, paths)
    if not units:
        raise SourceError(
            f"no source below {check.request.root} includes {check.path.name}, so that the change cannot be "
            "tried; open the folder with a .cu file that does"
        )
    candidates: list[tuple[Path, Side]] = []
    for unit in units:
        check.progress(f"compiling {unit.name}")
        try:
            side = check.build(unit, text, lines)
        except CompileError:
            if unit != check.path or not (including := units_of(check.path, root, paths, itself=False)):
                raise
            units += including  # a part of another source
            continue
        if check.fix.flag is not None or concerns(side):
            return unit, side
        candidates.append((unit, side))
    return candidates[0]


def _does_not_compile(fix: Fix, unit: Path, old: Side, error: str) -> FixCheck:
    return FixCheck(
        fix=fix.id,
        compiles=False,
        pattern=PatternState.UNKNOWN,
        arch=old.built.arch,
        compiler=old.built.compiler,
        unit=str(unit),
        kernels=(),
        message=f"{fix.code}: with this fix {error}",
        details=f"**{fix.title}**\n\nWith this fix `{unit.name}` does not compile:\n\n{_quoted(error)}",
        error=error,
    )


def _quoted(text: str) -> str:
    """Text as a Markdown block that nothing in it ends."""
    return "\n".join(f"    {line}" for line in text.splitlines())
