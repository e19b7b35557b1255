# SPDX-License-Identifier: Apache-2.0
"""What nvcc is given: words of ours, and files of fixed names with what a project says.

nvcc hands its words to a shell, and the host's compiler takes a word that begins with @ for a file of further
options, even behind -I. So nvcc compiles a source of ours that includes the project's, and folders and
definitions stand in a file that only the host's compiler reads.
"""

from __future__ import annotations

import codecs
import os
import re
import zlib
from pathlib import Path
from typing import Final

from gpadvisor.errors import SourceError
from gpadvisor.files import read_file
from gpadvisor.toolchain.compile_job import SOURCE_BYTES_MAX, Job
from gpadvisor.toolchain.compile_options import is_shell_safe
from gpadvisor.toolchain.stand_ins import NOT_IN_PTX, begin_as

SOURCE: Final = "source.cu"
_OPTIONS: Final = "options"
_FOR_THE_HOST: Final = {
    "--include-path": "-I",
    "--system-include": "-isystem",
    "--define-macro": "-D",
    "--undefine-macro": "-U",
}
_FOLDERS: Final = ("--include-path", "--system-include")
_SEPARATING: Final = re.compile(rb"[\s'\"\\]")
_NO_INCLUDE: Final = re.compile(r'["\\\x00-\x1f]|\?\?')
"""What a name in an #include cannot have, ?? as it may begin a trigraph."""
_UNIT: Final = re.compile(rb"[0-9a-f]{8}(?=_%d_%s)" % (len(SOURCE), SOURCE.replace(".", "_").encode()))


def write_input(job: Job) -> tuple[str, ...] | None:
    """Write both files, and return what nvcc is given in the job's folder for its options and the source.

    None where the folder for temporary files has a name that a shell might take for more than a name: nvcc
    looks up where the source really is.

    Raises:
        SourceError: the source cannot be read.
    """
    words, for_the_host, included = [f"-Xcompiler=@{_OPTIONS}"], list[str](), list[str | Path]()
    for option in job.options:
        name, _, value = option.partition("=")
        if name == "--pre-include":
            file = job.directory / value
            included.append(file if file.is_file() else value)
        elif name in _FOR_THE_HOST:
            for_the_host += [_FOR_THE_HOST[name], _folder(job, value) if name in _FOLDERS else value]
        else:
            words.append(option)
    if not all(map(is_shell_safe, (*words, str(job.folder.resolve())))):
        return None
    included.append(job.text)
    for place in included:
        if isinstance(place, Path) and _NO_INCLUDE.search(str(place)):
            for_the_host += ["-iquote", str(place.parent)]
    try:
        (job.folder / SOURCE).write_bytes(b"".join(map(_included, included)))
    except OSError as error:
        raise SourceError(f"{job.source} cannot be read: {error.strerror}") from error
    escaped = (_SEPARATING.sub(rb"\\\g<0>", os.fsencode(word)) for word in for_the_host)
    (job.folder / _OPTIONS).write_bytes(b"\n".join(escaped))
    return (*words, SOURCE)


def _folder(job: Job, value: str) -> str:
    """An include folder; a link to it where the assembler could not read the names of its headers."""
    place = job.directory / value
    if not NOT_IN_PTX.search(str(place)):
        return str(place)
    link = job.folder / f"link-{len([*job.folder.glob('link-*')])}"
    link.symlink_to(place)
    return str(link)


def _included(place: str | Path) -> bytes:
    """What makes a file part of a source: its name, else, where that cannot be written, its text."""
    if isinstance(place, Path) and _NO_INCLUDE.search(str(place)):
        text = read_file(place, max_bytes=SOURCE_BYTES_MAX).removeprefix(codecs.BOM_UTF8)
        return begin_as(place) + text + b"\n"
    return b'#include "%s"\n' % os.fsencode(place)


def without_own_source(log: str) -> str:
    """What nvcc said, without the lines that name our source as what includes the project's."""
    return re.sub(rf"^(?:In file included|\s+) from {SOURCE}:\d+[:,]\n", "", log, flags=re.MULTILINE)


def with_original_unit(cubin: bytes, original: Path) -> bytes:
    """The cubin as nvcc names what only one file sees: by a checksum of its path, here the original's.

    Without it such a kernel would have another name in each run.
    """
    return _UNIT.sub(b"%08x" % zlib.crc32(os.fsencode(original)), cubin)
