# SPDX-License-Identifier: Apache-2.0
"""When what is compiled, disassembled or read: by content, in workers, a newer wish ending an older one."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lsprotocol import types as lsp

from gpadvisor import __version__
from gpadvisor.editor.show.ledger import ledger
from gpadvisor.editor.show.status import nowhere_words
from gpadvisor.errors import GpadvisorError, NoDeviceCodeError
from gpadvisor.lsp.complaints import Complaint, complaint
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.progress import with_progress
from gpadvisor.lsp.rereading import answers_otherwise
from gpadvisor.lsp.search import ProfileFile, SourceState, find_profiles, look_at, source_state
from gpadvisor.lsp.settings import EditorSettings
from gpadvisor.lsp.workspace import Folder, resolved
from gpadvisor.model.finding import EditorAnalysis, LedgerEntry
from gpadvisor.model.fix import LaunchFacts
from gpadvisor.pipeline.cache import Cache, cache_folder
from gpadvisor.sandbox.codec import from_json, to_json
from gpadvisor.sandbox.pool_limits import JobError, WorkerError

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session

log: Final = logging.getLogger("gpadvisor.lsp")

SOURCES: Final = (".cu",)
COMPILED: Final = (*SOURCES, ".cuh")
"""What is compiled when it is opened or saved, a header in a source that includes it."""
HEADERS: Final = (".cuh", ".h", ".hpp", ".hh", ".inl")
Result: TypeAlias = tuple[EditorAnalysis, dict[str, LaunchFacts]]
_REMEMBERED: Final = 32
_SETTLE_SECONDS: Final = 0.3
_SETTLE_ROUNDS: Final = 200


class Analyses:
    """Runs analyses and hands their results to the workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self._states: dict[str, SourceState] = {}  # of sources as they were analysed
        self._remembered: OrderedDict[str, Result] = OrderedDict()
        self._profiles: dict[str, ProfileFile] = {}
        self._one_profile = asyncio.Semaphore(1)  # leaves a worker to what the user is waiting for
        self._scans: dict[str, asyncio.Future[None]] = {}
        self._found_in: dict[str, Folder] = {}  # profiles outside of the open folders, by path
        self._launches: dict[str, int | None] = {}  # shown instead of the longest one, by path
        self._asked_again: set[tuple[str, str]] = set()  # profiles with sources that may be those they miss
        self._looked_at: dict[str, int] = {}  # the later, the more, by path: what the user waits for
        self._looks = itertools.count(1)
        self.errors: dict[str, str] = {}  # by path of the input
        self.complaints: dict[str, Complaint] = {}  # of sources that were not analysed, by path
        self.without_kernels: set[str] = set()  # sources that have no code for the GPU

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits to."""
        return bool(self._jobs)

    @property
    def reading(self) -> frozenset[str]:
        """Paths of the inputs that are being looked at, or wait for it."""
        return frozenset(key.partition(":")[2] for key in self._jobs)

    @property
    def profile_being_read(self) -> str | None:
        """The file name of a profile that may say more in a moment."""
        return next((Path(key).name for key in self._jobs if key.startswith("profile:")), None)

    def cancel_all(self) -> None:
        """Stop everything that runs."""
        for task in [*self._jobs.values(), *self._scans.values()]:
            task.cancel()

    def looked_at(self, path: str) -> None:
        """The user opened, saved or asked about a file: its analysis goes before all others that wait."""
        self._looked_at[path] = next(self._looks)

    # Sources

    def source(
        self, path: str, *, delay: float = 0.0, asked: bool = False, model: bool = False
    ) -> asyncio.Task[None]:
        """Analyse a source as it is on disk; an older wish for the same source is given up."""
        work = self._source(path, delay=delay, asked=asked, model=model)
        return self._start(f"source:{path}", path, work)

    def compile_arguments(self, path: str) -> dict[str, Any]:
        """How a source is compiled: for the GPU of the newest profile that names it, and by the settings."""
        workspace = self._session.workspace
        settings = workspace.folder_of(path).settings
        profiles = sorted(
            (entry for entry in workspace.entries.values() if entry.is_profile), key=lambda entry: -entry.age
        )
        measured = next(
            (
                kernel.arch
                for entry in profiles
                if any(
                    file.local is not None and resolved(file.local) == path for file in entry.analysis.files
                )
                for kernel in entry.analysis.kernels
                if kernel.arch is not None
            ),
            None,
        )
        arch = settings.analysis_arch
        if measured is not None and arch.rstrip("af") != measured.rstrip("af"):
            arch = measured
        return {"arch": arch, "flags": list(settings.analysis_flags)}

    def users_of(self, header: str) -> list[str]:
        """Analysed sources that include a header."""
        return [path for path, state in self._states.items() if header in state.files and path != header]

    async def _source(self, path: str, *, delay: float, asked: bool, model: bool) -> None:
        workspace = self._session.workspace
        if delay:
            await asyncio.sleep(delay)
        folder = workspace.folder_of(path)
        settings = folder.settings
        kind = _model(settings, asked=model)
        wanted = {**self.compile_arguments(path), "model": kind}
        state = await asyncio.to_thread(source_state, path, folder.path, json.dumps(wanted, sort_keys=True))
        if state is None:
            return
        shown = workspace.entries.get(f"source:{path}")
        if shown is not None and shown.content == state.digest and not asked:
            return
        known = None if asked else self._remembered.get(state.digest)
        if known is None and shown is None and kind == "known":
            # What the code alone says is there long before the first simulation of an installation is.
            data = await self._run_source(path, folder, {**wanted, "model": "later"})
            known = await asyncio.to_thread(_read, data)
            if data["models"]:
                self._show_source(path, known, replace(state, digest=""))
                known = None
        if known is None:
            known = await asyncio.to_thread(_read, await self._run_source(path, folder, wanted))
        self._remember(state.digest, known)
        self._show_source(path, known, state)

    async def _run_source(self, path: str, folder: Folder, wanted: dict[str, Any]) -> Any:
        arguments = {"path": path, "root": str(folder.path), **wanted}
        return await self._run("source", arguments, f"analysing {Path(path).name}", folder.settings)

    def _show_source(self, path: str, known: Result, state: SourceState) -> None:
        analysis, launches = known
        named = frozenset(resolved(file.local) for file in analysis.files if file.local is not None)
        self._states[path] = SourceState(digest=state.digest, files=state.files | named)
        entry = Entry(
            key=f"source:{path}",
            analysis=analysis,
            is_profile=False,
            age=0.0,
            content=state.digest,
            launches=launches,
        )
        self._session.show(self._session.workspace.put(entry))

    def _remember(self, digest: str, result: Result) -> None:
        self._remembered[digest] = result
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    # Profiles

    def scan(self, folder: Folder, delay: float = 0.0) -> None:
        """Look for profiles of a folder that are new, changed or gone."""
        key = str(folder.path)
        known = self._scans.pop(key, None)
        if known is not None:
            known.cancel()
        self._scans[key] = self._session.later(self._scan(folder, delay))

    async def _scan(self, folder: Folder, delay: float) -> None:
        await asyncio.sleep(delay)
        settings, workspace = folder.settings, self._session.workspace
        if not (settings.enable and settings.profiles_enable and workspace.may_read(str(folder.path))):
            return
        found = await asyncio.to_thread(
            find_profiles, folder.path, settings.profiles_patterns, settings.profiles_max
        )
        for path in [at for at in self._profiles if Path(at).is_relative_to(folder.path)]:
            if look_at(path) is None:
                self._forget(path)
        for one in found:
            if folder.uri is None:
                self._found_in[one.path] = folder
            if self._profiles.get(one.path) != one:
                self.profile(one.path)

    def profile(self, path: str, *, launch: int | None = None) -> asyncio.Task[None]:
        """Read a profile and show it; ``launch`` instead of the longest one of its kernel."""
        self._launches[path] = launch
        self.looked_at(path)
        return self._start(f"profile:{path}", path, self._profile(path, launch))

    def source_changed(self, path: str) -> None:
        """A source is on disk, or gone from there: read those profiles again to which that matters."""
        self._session.later(self._source_changed(path))

    async def _source_changed(self, path: str) -> None:
        reading = [task for key, task in self._jobs.items() if key.startswith("profile:")]
        if reading:  # perhaps of the source as it was
            await asyncio.wait(reading)
        for entry in [one for one in self._session.workspace.entries.values() if one.is_profile]:
            profile = entry.key.removeprefix("profile:")
            if not await asyncio.to_thread(answers_otherwise, entry.analysis, path):
                continue
            if path in {resolved(file.local) for file in entry.analysis.files if file.local is not None}:
                self._asked_again.discard((profile, path))  # when it goes and comes back, it is asked about
            elif (profile, path) in self._asked_again:
                continue  # it was no source of this profile then, and is none now
            else:
                self._asked_again.add((profile, path))
            for one in [key for key in self._remembered if "@" in key]:  # other launches of profiles
                del self._remembered[one]
            self.profile(profile, launch=self._launches.get(profile))

    def _forget(self, path: str) -> None:
        self._profiles.pop(path, None)
        self._launches.pop(path, None)
        self._found_in.pop(path, None)
        self.errors.pop(path, None)
        self._session.show(self._session.workspace.remove(f"profile:{path}"))

    async def _profile(self, path: str, launch: int | None) -> None:
        session, workspace = self._session, self._session.workspace
        async with self._one_profile:
            seen = await _settled(path)
            if seen is None:
                raise GpadvisorError(f"{path} is no file, or is empty; give a report or a snapshot")
            self._profiles[path] = seen
            folder = self._found_in.get(path) or workspace.project_of(path)
            arguments: dict[str, Any] = {"path": path, "root": str(folder.path), "trusted": workspace.trusted}
            if launch is not None:
                arguments["launch"] = launch
            # Picking a launch again shows what was read then.
            digest = "" if launch is None else f"{seen}@{launch}"
            known = self._remembered.get(digest)
            if known is None:
                title = f"reading {Path(path).name}"
                data = await self._run("profile", arguments, title, folder.settings)
                known = await asyncio.to_thread(_read, data)
            if digest:
                self._remember(digest, known)
            analysis, launches = known
        key, age = f"profile:{path}", seen.modified_ns / 1e9
        history: tuple[LedgerEntry, ...] = ()
        if launch is None:
            history = await asyncio.to_thread(_kept, analysis.sha256, self._history(key, analysis, age))
        entry = Entry(
            key=key,
            analysis=analysis,
            is_profile=True,
            age=age,
            content=analysis.sha256,
            launches=launches,
            history=history,
        )
        session.show(workspace.put(entry))
        if (nowhere := nowhere_words(analysis)) is not None:
            session.say_once(nowhere, lsp.MessageType.Info)
        # Profiles are read newest first: those before this one have waited for it.
        for newer in [one for one in workspace.entries.values() if one.age > age and not one.history]:
            if newer.is_profile and (history := self._from_older(newer.analysis, newer.age)):
                session.show(workspace.put(replace(newer, history=history)))

    def _history(self, key: str, analysis: EditorAnalysis, age: float) -> tuple[LedgerEntry, ...]:
        """What the newest older profile with a common kernel promised; the one just replaced comes first."""
        replaced = self._session.workspace.entries.get(key)
        if replaced is not None and replaced.content != analysis.sha256:
            return ledger(replaced.analysis, analysis)
        if replaced is not None:
            return replaced.history
        return self._from_older(analysis, age)

    def _from_older(self, analysis: EditorAnalysis, age: float) -> tuple[LedgerEntry, ...]:
        older = [one for one in self._session.workspace.entries.values() if one.is_profile and one.age < age]
        names = {kernel.base_name for kernel in analysis.kernels}
        for one in sorted(older, key=lambda entry: -entry.age):
            if names & {kernel.base_name for kernel in one.analysis.kernels}:
                return ledger(one.analysis, analysis)
        return ()

    # Both

    def _start(self, key: str, path: str, work: Any) -> asyncio.Task[None]:
        known = self._jobs.get(key)
        if known is not None:
            known.cancel()
        task = asyncio.ensure_future(self._guarded(path, work))
        task.add_done_callback(lambda _: work.close())  # where the task was cancelled before it began
        self._jobs[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def _ended(self, key: str, done: asyncio.Task[None]) -> None:
        if self._jobs.get(key) is done:
            del self._jobs[key]
        if not done.cancelled():
            done.exception()  # whoever waits for the task gets it; for all others it was reported
        if not self._session.closing:
            self._session.publisher.say_all()
            if key.startswith("profile:"):  # lenses say so while one is read
                self._session.publisher.refresh()

    async def _guarded(self, path: str, work: Any) -> None:
        """Keep the sentence of what went wrong for the status; say aloud what concerns the server itself."""
        self.without_kernels.discard(path)
        try:
            await work
        except asyncio.CancelledError:
            raise
        except NoDeviceCodeError as error:
            log.info("%s: %s", path, error)
            self._well(path)
            self.without_kernels.add(path)
            self._session.show(self._session.workspace.remove(f"source:{path}"))
            raise
        except GpadvisorError as error:
            log.warning("%s: %s", path, error)
            self.errors[path] = str(error)
            if path.endswith(SOURCES):
                said = error.messages if isinstance(error, JobError) else ()
                self.complaints[path] = await asyncio.to_thread(complaint, path, str(error), said)
                self._session.publisher.soon([path])
            if isinstance(error, WorkerError):
                self._session.say_once(str(error))
            raise
        except Exception as error:
            log.exception("%s: analysis failed", path)
            self.errors[path] = f"internal error, {type(error).__name__}: {error}"
            raise
        else:
            self._well(path)

    def _well(self, path: str) -> None:
        """Nothing is wrong with an input any more."""
        self.errors.pop(path, None)
        if self.complaints.pop(path, None) is not None:
            self._session.publisher.soon([path])

    async def _run(self, job: str, arguments: dict[str, Any], title: str, settings: EditorSettings) -> Any:
        session = self._session
        session.publisher.say_all()

        def start(said: Callable[[str], None]) -> Any:
            return session.workers.run(
                job,
                arguments,
                timeout_seconds=settings.analysis_timeout_seconds,
                progress=said,
                rank=lambda: self._looked_at.get(arguments["path"], 0),
            )

        return await with_progress(
            session.server if session.client.progress else None, f"GPA: {title}", start
        )


def _read(data: dict[str, Any]) -> Result:
    """A worker's answer; takes a while for a large analysis, so not in the event loop."""
    launches = from_json(data["launches"], dict[str, LaunchFacts])
    return from_json(data["analysis"], EditorAnalysis), launches


def _kept(profile: str, history: tuple[LedgerEntry, ...]) -> tuple[LedgerEntry, ...]:
    """What predictions came to in a profile; a later server finds it by the profile's digest."""
    cache = Cache(cache_folder())
    key = Cache.key("predictions", {"profile": profile, "version": __version__})
    if history:
        cache.put(key, json.dumps(to_json(history)).encode())
        return history
    body = cache.get(key)
    with contextlib.suppress(ValueError):
        return () if body is None else from_json(json.loads(body), tuple[LedgerEntry, ...])
    return ()


def _model(settings: EditorSettings, *, asked: bool) -> str:
    """Which kernels are simulated."""
    if asked:
        return "asked"
    return "known" if settings.analysis_model == "onSave" else "none"


async def _settled(path: str) -> ProfileFile | None:
    """A file once it does not grow any more: profilers write for a while."""
    seen = look_at(path)
    for _ in range(_SETTLE_ROUNDS):
        await asyncio.sleep(_SETTLE_SECONDS)
        now = look_at(path)
        if now == seen:
            return now
        seen = now
    return seen
