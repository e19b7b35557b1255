# SPDX-License-Identifier: Apache-2.0
"""Files that others may have made, and folders of our own for what is needed meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

_MARK: Final = ".gpadvisor-in-use"
_PREFIX: Final = "gpadvisor-"
_TEMPORARY_LETTERS: Final = 50  # of a name that may itself be as long as names can be
_PIECE: Final = 1 << 16  # of a file that says it is smaller than it is
_MOST_DOTS: Final = 500  # on a line of TOML: a key in as many parts, or a long list of versions
_swept: set[str] = set()


def open_file(path: Path | str) -> BinaryIO:
    """A regular file to read from; links are followed.

    Raises:
        OSError: it is not there, may not be read, or is a folder, a device, a pipe or a socket (EINVAL):
            such may never end, or do something when opened.
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "has a character that no path can have", os.fspath(path))
    _require_regular(Path(path).stat(), path)
    # Without waiting, should it have become a pipe since.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _require_regular(os.fstat(handle), path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_file(path: Path | str, *, max_bytes: int) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: as of `open_file`; larger than ``max_bytes`` (EFBIG).
    """
    with open_file(path) as stream:
        # As much as is asked for is reserved first, which may be more than a process may have.
        data = stream.read(min(os.fstat(stream.fileno()).st_size, max_bytes) + 1)
        while len(data) <= max_bytes and (more := stream.read(min(_PIECE, max_bytes + 1 - len(data)))):
            data += more
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than the {max_bytes} bytes that are read", os.fspath(path))
    return data


def parse_toml(data: bytes) -> dict[str, Any]:
    """The table of a TOML file.

    Raises:
        ValueError: it is none, or nests too deeply; the parser takes the square of the parts of a key.
    """
    import tomllib  # noqa: PLC0415 most projects have no settings

    if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
        raise ValueError("nested too deeply")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_ours(path: Path | str) -> bool:
    """Whether nobody but this user and root could have written a file or what is in a folder.

    That of each folder above counts, too: who may rename it may put another one in its place, unless the
    folder keeps each user's entries to that user (the sticky bit, as of ``/tmp``).
    """
    try:
        place = Path(os.path.realpath(path))
        return _is_private(place.stat()) and all(
            _is_private(status) or status.st_mode & stat.S_ISVTX
            for status in (above.stat() for above in place.parents)
        )
    except OSError:
        return False


def home() -> Path | None:
    """The user's home; None where neither HOME nor an entry of the user names one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_folder() -> Path | None:
    """``GPADVISOR_CACHE``, else the user's cache folder; None: the variable is empty, or there is no home."""
    stated = os.environ.get("GPADVISOR_CACHE")
    if stated is not None:
        return Path(stated) if stated else None
    base = os.environ.get("XDG_CACHE_HOME")
    place = Path(base) if base else home()
    if place is None:
        return None
    return (place if base else place / ".cache") / "gpadvisor"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A fresh folder that goes with the context; those of killed processes go when the next is made."""
    import tempfile  # noqa: PLC0415 a warm answer needs no folder

    _sweep()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, in_use(name):
        yield Path(name)


@contextlib.contextmanager
def in_use(folder: str) -> Iterator[None]:
    """Mark a fresh folder as that of a living process for the time of the context."""
    mark = Path(folder) / _MARK
    handle = os.open(mark.with_suffix(".new"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock(handle)
        mark.with_suffix(".new").rename(mark)  # with its name it has its lock
        yield
    finally:
        os.close(handle)


def _sweep() -> None:
    """Remove the marked folders of this user whose processes are gone; once for each process."""
    import tempfile  # noqa: PLC0415 a warm answer needs no folder

    place = tempfile.gettempdir()
    if place in _swept or not hasattr(os, "geteuid"):
        return
    _swept.add(place)
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_abandoned(Path(entry.path))


def _remove_abandoned(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if folder.lstat().st_uid != os.geteuid():
            return
        handle = os.open(folder / _MARK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            _lock(handle)
            import shutil  # noqa: PLC0415 there is seldom anything to remove

            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool = False) -> None:
    """Lock an open file for as long as it is open; BlockingIOError where another has it and nobody waits."""
    try:
        import fcntl  # noqa: PLC0415 exists on POSIX systems only
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _is_private(status: os.stat_result) -> bool:
    """Owned by this user or root, and written by nobody else."""
    if not hasattr(os, "geteuid"):
        return True
    if status.st_uid not in {0, os.geteuid()} or status.st_mode & stat.S_IWOTH:
        return False
    return not status.st_mode & stat.S_IWGRP or _has_one_member(status.st_gid)


def _has_one_member(group: int) -> bool:
    """Whether a group is root's, or the one that many systems make for each user alone."""
    import grp  # noqa: PLC0415 exists on POSIX systems only
    import pwd  # noqa: PLC0415 exists on POSIX systems only

    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    is_own_group = group == 0 or (entry.gr_name == user.pw_name and group == user.pw_gid)
    return is_own_group and not set(entry.gr_mem) - {user.pw_name, "root"}


def _require_regular(status: os.stat_result, path: Path | str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the target and rename, so that a full disk leaves no partial file.

    A link stays one and its target is replaced; a device or a pipe is written to, never replaced.

    Raises:
        OSError: the folder does not exist, is read-only or full; it names the target.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder, name a file in it")
        if not path.resolve().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "its folder does not exist; create it or write elsewhere")
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error
    except RuntimeError as error:  # what pathlib makes of links in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path)) from error


def append_whole(path: Path, what: Callable[[bytes], bytes], *, max_bytes: int) -> bytes:
    """Append to a file what its content calls for, in one piece, while no other process that does so can.

    Args:
        path: it is made where it is not there.
        what: given the content, the bytes to append; nothing is done where they are none, or it raises.
        max_bytes: more content than that is not read.

    Returns:
        What was appended.

    Raises:
        OSError: it is no regular file or too large, or the disk is full: what was written goes again.
    """
    if path.exists():
        _require_regular(path.stat(), path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(handle, "r+b", buffering=0) as stream:
        _lock(handle, wait=True)
        size = os.fstat(handle).st_size
        if size > max_bytes:
            raise OSError(errno.EFBIG, f"is larger than the {max_bytes} bytes that are read", os.fspath(path))
        data = what(stream.readall())
        try:
            written = stream.write(data)
            os.fsync(handle)
        except OSError:
            written = 0
        if written != len(data):
            os.ftruncate(handle, size)
            raise OSError(errno.ENOSPC, "could not be written, and is as it was", os.fspath(path))
    return data


def _replace(path: Path, data: bytes) -> None:
    import tempfile  # noqa: PLC0415 most answers go to the terminal

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_TEMPORARY_LETTERS]}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
