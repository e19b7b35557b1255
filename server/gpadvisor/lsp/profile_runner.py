# SPDX-License-Identifier: Apache-2.0
"""Runs the user's own profile command, and shows the profile that it writes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shlex
import time
from pathlib import Path
from typing import Final

from pygls.exceptions import JsonRpcException

from gpadvisor.editor.show.ledger import entry_words, followed
from gpadvisor.errors import GpadvisorError, ToolError, UsageError
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.profiles import Profiles
from gpadvisor.lsp.search import find_profiles
from gpadvisor.lsp.snapshot import PROFILE
from gpadvisor.lsp.state import State
from gpadvisor.sandbox.commands import CommandSettings, run_command

log: Final = logging.getLogger("gpadvisor.lsp")
FOLDER: Final = "gpadvisor-profiles"
_RUN: Final = "Run"
_SETTINGS: Final = CommandSettings(
    command="gpadvisor.profile.command", timeout="gpadvisor.profile.timeoutSeconds"
)
_PAST: Final = 3
"""Predictions that were followed, in the sentence on a new profile."""


class ProfileRunner:
    """One run at a time."""

    def __init__(self, state: State, client: Client, profiles: Profiles) -> None:
        self._state, self._client, self._profiles = state, client, profiles
        self._running = False
        self._asked: dict[tuple[Path, tuple[str, ...]], bool] = {}  # whether it may run

    async def quietly(self, path: str) -> None:
        """After a save, where the user agrees once; what goes wrong is said once."""
        with contextlib.suppress(asyncio.CancelledError):
            try:
                if await self._agreed(path):
                    await self.run(path)
            except GpadvisorError as error:
                self._client.say_once(str(error))

    async def _agreed(self, path: str) -> bool:
        """Whether the command may run by itself: the user ran it before, or is asked, once for each command.

        Trust in a folder is given before its settings are seen, and they may come with the folder.
        """
        folder = self._state.now.folder_of(path)
        command = folder.settings.profile_command
        if not self._state.now.trusted or not command:
            return False
        if (folder.path, command) not in self._asked:
            self._asked[folder.path, command] = False  # until there is an answer
            question = f"Run this command after each save in {folder.path.name}? {shlex.join(command)}"
            try:
                picked = await self._client.ask(question, [_RUN, "No"])
            except JsonRpcException:  # an editor that cannot ask
                words = f"{shlex.join(command)} runs after a save once you have run it yourself"
                self._client.say_once(words)
                return False
            if picked == _RUN:
                self._asked[folder.path, command] = True
        return self._asked[folder.path, command]

    async def run(self, path: str) -> str:
        """Run the command for a source; a sentence on what came of it.

        Raises:
            UsageError: no command is set, nothing is trusted, or one is running.
            ToolError: the command failed, took too long, or wrote no profile.
        """
        if not self._state.now.trusted:
            raise UsageError("the workspace is not trusted: no command is run")
        folder = self._state.now.folder_of(path)
        settings = folder.settings
        if not settings.profile_command:
            raise UsageError(
                "gpadvisor.profile.command is not set; set it to a command that writes a profile"
            )
        if self._running:
            raise UsageError("the profile command is running already")
        self._asked[folder.path, settings.profile_command] = True
        target = folder.path / FOLDER / time.strftime("%Y%m%d-%H%M%S")
        command = [_filled(word, path, folder.path, target) for word in settings.profile_command]
        self._running = True
        try:
            target.parent.mkdir(exist_ok=True)
            seconds = settings.profile_timeout_seconds
            work = functools.partial(run_command, command, folder.path, seconds, _SETTINGS)
            started = time.time_ns()
            await self._client.with_progress("profiling", work)
        finally:
            self._running = False
        written = [
            profile
            for profile in find_profiles(folder.path, settings.profiles_patterns, settings.profiles_max)
            if profile.modified_ns >= started - 10_000_000_000
        ]
        if not written:
            raise ToolError(f"{Path(command[0]).name} ended well but wrote no profile below {folder.path}")
        await self._profiles.read(written[0].path)
        entry = self._state.now.entries.get(PROFILE + written[0].path)
        came = (
            [entry_words(ledger_entry) for ledger_entry in entry.history if followed(ledger_entry)]
            if entry is not None
            else []
        )
        return ". ".join((*came[:_PAST], f"{Path(written[0].path).name} is shown"))


def _filled(word: str, path: str, folder: Path, target: Path) -> str:
    """A word of the command with its placeholders filled; no shell sees it."""
    for name, value in (("file", path), ("workspaceFolder", str(folder)), ("profile", str(target))):
        word = word.replace(f"${{{name}}}", value)
    return word
