# SPDX-License-Identifier: Apache-2.0
"""A profile without what tells about the machine it was taken on: paths, hosts, command lines."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Final

from gpadvisor.errors import ProfileError
from gpadvisor.model.profile import CallFrame, KernelProfile, Profile, SourceText
from gpadvisor.store.parts import take_apart
from gpadvisor.store.snapshot.line_paths import Placeholders

COMMAND: Final = "redacted-command"
HOST: Final = "redacted-host"


def redacted(profile: Profile) -> Profile:
    """The same measurements without paths, host, command line and source text."""
    directories = Placeholders()
    sources = {}
    for key, source in profile.sources.items():
        path = directories.text(source.path)
        sources[directories.text(key)] = SourceText(path=path, sha256=source.sha256, text=None)
    scrubbed = {key: directories.cubin(cubin) for key, cubin in profile.binaries.items()}
    for data in scrubbed.values():
        _refuse_leak(data, directories)
    renamed = {key: hashlib.sha256(cubin).hexdigest() for key, cubin in scrubbed.items()}
    done = dataclasses.replace(
        profile,
        command=None if profile.command is None else COMMAND,
        host=None if profile.host is None else HOST,
        kernels=tuple(_kernel(kernel, directories, renamed) for kernel in profile.kernels),
        binaries={renamed[key]: cubin for key, cubin in scrubbed.items()},
        disassemblies={renamed.get(key, key): listing for key, listing in profile.disassemblies.items()},
        sources=sources,
        lines=tuple(
            dataclasses.replace(
                one,
                binary=renamed.get(one.binary, one.binary),
                compiled=renamed.get(one.compiled, one.compiled),
            )
            for one in profile.lines
        ),
    )
    # What nobody thought of: texts of rules, metrics and problems, listings.
    _refuse_leak(json.dumps(take_apart(done).document, ensure_ascii=False, default=str).encode(), directories)
    for listing in done.disassemblies.values():
        _refuse_leak(listing, directories)
    return done


def _refuse_leak(data: bytes, directories: Placeholders) -> None:
    found = directories.leaks(data)
    if found is not None:
        raise ProfileError(
            f"the profile cannot be redacted: {found.decode('utf-8', 'replace')} would still be in it; "
            "do not share it, and report this"
        )


def _kernel(kernel: KernelProfile, directories: Placeholders, renamed: Mapping[str, str]) -> KernelProfile:
    return dataclasses.replace(
        kernel,
        binary=None if kernel.binary is None else renamed.get(kernel.binary, kernel.binary),
        call_stack=tuple(_frame(frame, directories) for frame in kernel.call_stack),
    )


def _frame(frame: CallFrame, directories: Placeholders) -> CallFrame:
    return dataclasses.replace(
        frame,
        module=None if frame.module is None else directories.text(frame.module),
        file=None if frame.file is None else directories.text(frame.file),
        address=None,
    )
