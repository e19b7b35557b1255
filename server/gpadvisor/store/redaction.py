# SPDX-License-Identifier: Apache-2.0
"""A profile without what tells about the machine it was taken on: paths, hosts, command lines."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Final

from gpadvisor.model.profile import CallFrame, KernelProfile, Profile, SourceText
from gpadvisor.store.line_paths import Placeholders

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
    renamed = {key: hashlib.sha256(cubin).hexdigest() for key, cubin in scrubbed.items()}
    return dataclasses.replace(
        profile,
        command=None if profile.command is None else COMMAND,
        host=None if profile.host is None else HOST,
        kernels=tuple(_kernel(kernel, directories, renamed) for kernel in profile.kernels),
        binaries={renamed[key]: cubin for key, cubin in scrubbed.items()},
        disassemblies={renamed.get(key, key): listing for key, listing in profile.disassemblies.items()},
        sources=sources,
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
