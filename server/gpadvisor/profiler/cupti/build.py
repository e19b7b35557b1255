# SPDX-License-Identifier: Apache-2.0
"""Building the injection library with the user's C compiler, once for everything that decides its content."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolFailedError, ToolNotFoundError
from gpadvisor.files import is_ours
from gpadvisor.profiler.cupti.discovery import Cupti
from gpadvisor.sandbox.tools import describe_failure, run_tool

_BUILD_SECONDS: Final = 120.0
_COMPILERS: Final = ("cc", "gcc", "clang")
_FLAGS: Final = (
    "-std=c11",
    "-O2",
    "-g1",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fasynchronous-unwind-tables",
    "-pthread",
    "-Wl,-z,nodelete",
    "-Wl,-soname,libgpadvisor_inject.so",
)
_WITHOUT_NVCC: Final = "without_nvcc"  # stands in for a header that only nvcc's package has
_HEADERS: Final = ("cupti_version.h", "cupti_pcsampling.h", "cupti_activity.h", "cupti_callbacks.h", "cuda.h")


@dataclass(frozen=True, slots=True)
class InjectionLibrary:
    """A built injection library."""

    path: Path
    built_now: bool  # False: it was in the cache


def build_library(cupti: Cupti, folder: Path, *, flags: Sequence[str] = ()) -> InjectionLibrary:
    """The injection library for these headers, from ``folder`` where it was built before.

    Args:
        cupti: the headers.
        folder: where to keep it.
        flags: further options of the compiler, such as a sanitizer's.

    Raises:
        ToolNotFoundError: there is no C compiler; the message says how to get one.
        ToolFailedError: the compiler refused, or the folder cannot be written.
    """
    if sys.platform != "linux":
        raise ToolNotFoundError(
            f"the cupti collector works on Linux, not on {sys.platform};"
            " collect there, or use --collector ncu"
        )
    compiler = find_compiler()
    sources = _sources()
    target = folder / f"libgpadvisor_inject-{_key(compiler, cupti, flags, sources)[:24]}.so"
    if target.is_file() and is_ours(target):
        return InjectionLibrary(target, built_now=False)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_ours(folder):
            raise ToolFailedError(
                f"{folder} is another user's, or others can write there, and a library from it would run in"
                " the application; name another folder in GPADVISOR_CACHE"
            )
        with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as place:
            _compile(compiler, cupti, flags, sources, Path(place))
            (Path(place) / "out.so").replace(target)
    except OSError as error:
        raise ToolFailedError(
            f"the injection library cannot be written to {folder}: {error.strerror or error};"
            " make room or name another folder in GPADVISOR_CACHE"
        ) from error
    return InjectionLibrary(target, built_now=True)


def find_compiler() -> tuple[str, ...]:
    """The user's C compiler, with the options that CC may carry."""
    chosen = os.environ.get("CC")
    if chosen:
        try:
            words = shlex.split(chosen)
        except ValueError:
            words = []
        if words and shutil.which(words[0]):
            return tuple(words)
        raise ToolNotFoundError(
            f"CC names {chosen!r}, which is no program on PATH; correct or remove the variable"
        )
    for name in _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return (path,)
    raise ToolNotFoundError(
        "the cupti collector needs a C compiler, and none of cc, gcc and clang is on PATH; install one"
        " (apt-get install gcc, dnf install gcc, conda install gcc), name one in CC, or use --collector ncu"
    )


def _sources() -> dict[str, bytes]:
    """The C sources that travel in this package, by path."""
    with resources.as_file(resources.files("gpadvisor.profiler.cupti") / "native") as folder:
        return {
            entry.relative_to(folder).as_posix(): entry.read_bytes()
            for entry in sorted(folder.rglob("*.[ch]"))
        }


def _key(compiler: Sequence[str], cupti: Cupti, flags: Sequence[str], sources: dict[str, bytes]) -> str:
    """What decides the content: sources, options, compiler and headers."""
    digest = hashlib.sha256(f"{platform.machine()} {_FLAGS} {tuple(flags)} {tuple(compiler)}".encode())
    text = shutil.which(compiler[0])
    if text is not None:
        status = Path(text).resolve().stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    for name, data in sources.items():
        digest.update(f"{name} {len(data)} ".encode() + data)
    for name in _HEADERS:
        for folder in cupti.includes:
            if (folder / name).is_file():
                digest.update((folder / name).read_bytes())
                break
    return digest.hexdigest()


def _compile(
    compiler: Sequence[str], cupti: Cupti, flags: Sequence[str], sources: dict[str, bytes], place: Path
) -> None:
    for name, data in sources.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    # The headers are NVIDIA's: as system headers they warn about nothing.
    includes = [part for folder in cupti.includes for part in ("-isystem", str(folder))]
    includes += ["-idirafter", _WITHOUT_NVCC]
    units = [name for name in sources if name.endswith(".c")]
    command = [*compiler, *_FLAGS, *flags, *includes, *units, "-o", "out.so", "-ldl"]
    output = run_tool(command, timeout_seconds=_BUILD_SECONDS, directory=place, check=False)
    if output.status != 0:
        raise ToolFailedError(
            f"the injection library could not be built: {describe_failure(Path(compiler[0]).name, output)};"
            f" it was compiled against CUPTI {cupti.api_version} ({cupti.origin}):"
            " try another compiler in CC, or use --collector ncu"
        )
