# SPDX-License-Identifier: Apache-2.0
"""A profile without what tells about the machine it was taken on: paths, hosts, command lines."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from gpadvisor.errors import ProfileError
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import CallFrame, KernelProfile, Profile, SourceText
from gpadvisor.store.parts import take_apart
from gpadvisor.store.snapshot.line_paths import Placeholders

COMMAND: Final = "redacted-command"
HOST: Final = "redacted-host"
_LEAST_NAME: Final = 3  # letters of a host that is told apart from other words


def redacted(profile: Profile) -> Profile:
    """The same measurements without paths, host, command line and source text."""
    directories = Placeholders()
    sources = {}
    for key, source in profile.sources.items():
        path = directories.text(source.path)
        sources[directories.text(key)] = SourceText(path=path, sha256=source.sha256, text=None)
    for kernel in profile.kernels:
        for frame in kernel.call_stack:
            _frame(frame, directories)
    paths = tuple(
        dataclasses.replace(path, frames=tuple(_frame(frame, directories) for frame in path.frames))
        for path in profile.launch_paths
    )
    for cubin in profile.binaries.values():  # what any tells of folders is looked for in all
        directories.cubin(cubin)
    scrubbed = {key: directories.cubin(cubin) for key, cubin in profile.binaries.items()}
    for data in scrubbed.values():
        _refuse_leak(data, directories)
    renamed = {key: hashlib.sha256(cubin).hexdigest() for key, cubin in scrubbed.items()}
    words = _Words(profile, directories)
    done = dataclasses.replace(
        profile,
        command=None if profile.command is None else COMMAND,
        host=None if profile.host is None else HOST,
        kernels=tuple(_kernel(kernel, directories, words, renamed) for kernel in profile.kernels),
        binaries={renamed[key]: cubin for key, cubin in scrubbed.items()},
        disassemblies={renamed.get(key, key): listing for key, listing in profile.disassemblies.items()},
        sources=sources,
        problems=_problems(profile.problems, words),
        lines=tuple(
            dataclasses.replace(
                line,
                binary=renamed.get(line.binary, line.binary),
                source=directories.text(line.source),
                compiler=words(line.compiler),
                compiled=renamed.get(line.compiled, line.compiled),
            )
            for line in profile.lines
        ),
        launch_paths=tuple(
            dataclasses.replace(path, binary=renamed.get(path.binary or "", path.binary)) for path in paths
        ),
    )
    # What nobody thought of: texts of rules, metrics and problems, listings.
    _refuse_leak(json.dumps(take_apart(done).document, ensure_ascii=False, default=str).encode(), directories)
    for listing in done.disassemblies.values():
        _refuse_leak(listing, directories)
    return done


def _refuse_leak(data: bytes, directories: Placeholders) -> None:
    leak = directories.leaks(data)
    if leak is not None:
        raise ProfileError(
            f"the profile cannot be redacted: {leak.decode('utf-8', 'replace')} would still be in it; "
            "do not share it, and report this"
        )


class _Words:
    """Sentences of the profile without folders, host and command line."""

    def __init__(self, profile: Profile, directories: Placeholders) -> None:
        self._directories = directories
        private = {profile.host: HOST, profile.command: COMMAND}
        self._told = [
            (re.compile(rf"(?<!\w){re.escape(text)}(?!\w)"), instead)
            for text, instead in private.items()
            if text is not None and len(text) >= _LEAST_NAME
        ]

    def __call__(self, text: str) -> str:
        for pattern, instead in self._told:
            text = pattern.sub(instead, text)
        return self._directories.within(text)


def _problems(problems: Iterable[Problem], words: _Words) -> tuple[Problem, ...]:
    return tuple(dataclasses.replace(problem, message=words(problem.message)) for problem in problems)


def _kernel(
    kernel: KernelProfile, directories: Placeholders, words: _Words, renamed: Mapping[str, str]
) -> KernelProfile:
    return dataclasses.replace(
        kernel,
        binary=None if kernel.binary is None else renamed.get(kernel.binary, kernel.binary),
        metrics={
            name: words(value) if isinstance(value, str) else value for name, value in kernel.metrics.items()
        },
        rules=tuple(
            dataclasses.replace(
                rule, message=words(rule.message), title=None if rule.title is None else words(rule.title)
            )
            for rule in kernel.rules
        ),
        call_stack=tuple(_frame(frame, directories) for frame in kernel.call_stack),
        problems=_problems(kernel.problems, words),
    )


def _frame(frame: CallFrame, directories: Placeholders) -> CallFrame:
    return dataclasses.replace(
        frame,
        module=None if frame.module is None else directories.text(frame.module),
        file=None if frame.file is None else directories.text(frame.file),
        address=None,
    )
