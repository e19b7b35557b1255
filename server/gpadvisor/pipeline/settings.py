# SPDX-License-Identifier: Apache-2.0
"""Settings from ``gpadvisor.toml`` or ``[tool.gpadvisor]`` in ``pyproject.toml``; command-line options win.

A settings file comes with a project that may be hostile, so no key names a program to run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from gpadvisor.errors import SettingsError
from gpadvisor.files import home, parse_toml, read_file
from gpadvisor.pipeline.launches import StatedLaunch, parse_launches

FILE_NAME: Final = "gpadvisor.toml"
MAX_FILE_BYTES: Final = 1 << 20
_LARGEST: Final = 1_000_000_000
"""Of any number: 31 years, a petabyte of MiB."""


class Settings(NamedTuple):
    """Every setting; what stands beside the type of each is its documentation."""

    top: Annotated[int, "suggestions shown per kernel"] = 10
    min_speedup: Annotated[float, "suggestions whose expected speedup is lower are counted, not shown"] = 1.03
    min_importance: Annotated[
        float, "suggestions that match a smaller share of samples are counted, not shown"
    ] = 0.01
    source_map: Annotated[
        Mapping[str, str], "table of path prefixes: as the report has them = as they are here"
    ] = MappingProxyType({})
    source_root: Annotated[
        str, "folder searched for the sources a report names, relative to the settings file"
    ] = "."
    machine: Annotated[str | None, "machine table to use instead of the shipped one, a TOML file"] = None
    arch: Annotated[str | None, 'architecture a source is compiled for, such as "sm_90"'] = None
    build_folder: Annotated[
        str | None, "folder whose compile_commands.json is used, relative to the settings file"
    ] = None
    flags: Annotated[tuple[str, ...], "compiler flags for sources that no compile_commands.json names"] = ()
    extra_flags: Annotated[
        tuple[str, ...], "compiler flags added to the command of every source that is compiled"
    ] = ()
    tool_timeout_seconds: Annotated[float, "time limit of one compiler or disassembler run"] = 120.0
    lines_timeout_seconds: Annotated[
        float, "time limit of all compiling for the lines of a report that has none; 0: no compiling"
    ] = 30.0
    launches: Annotated[
        Mapping[str, StatedLaunch], "table of kernels with their launch, for models; see below"
    ] = MappingProxyType({})
    memory_mib: Annotated[int, "memory limit of a child process that reads a profile"] = 8192


class LoadedSettings(NamedTuple):
    """Settings and the file they came from."""

    settings: Settings
    path: Path | None
    digest: str  # of the file's bytes, "" without one


def find_settings(start: Path, top: Path | None = None) -> LoadedSettings:
    """The nearest settings file at or above ``start``, and not above ``top``; defaults where there is none.

    The search ends with the repository, with the home, and before a folder that everybody may write to.
    A file of another user is passed over, unless that user owns ``start``, too.

    Raises:
        SettingsError: the file cannot be parsed, has an unknown key or a value of the wrong type.
    """
    start = start.resolve()
    for folder in _searched(start, top):
        file = folder / FILE_NAME
        if _may_be_taken(file, start):
            return _load(file, ())
        project = folder / "pyproject.toml"
        if (
            _may_be_taken(project, start)
            and (loaded := _load(project, ("tool", "gpadvisor"))).path is not None
        ):
            return loaded
    return LoadedSettings(settings=Settings(), path=None, digest="")


def _searched(start: Path, top: Path | None) -> Iterator[Path]:
    """Folders from ``start`` upwards."""
    for folder in (start, *start.parents):
        with contextlib.suppress(OSError):
            if folder != start and folder.stat().st_mode & stat.S_IWOTH:
                return
        yield folder
        if (folder / ".git").exists() or folder in (home(), top):
            return


def _may_be_taken(path: Path, start: Path) -> bool:
    """Whether a file is there and this user's, root's, or that of whoever owns the folder asked for."""
    try:
        owner = path.stat().st_uid
        return owner in {0, getattr(os, "geteuid", lambda: owner)(), start.stat().st_uid}
    except OSError:
        return False


def _load(path: Path, table: tuple[str, ...]) -> LoadedSettings:
    try:
        data = read_file(path, max_bytes=MAX_FILE_BYTES)
    except OSError as error:
        if table:  # somebody else's pyproject.toml: not ours to complain about
            return LoadedSettings(settings=Settings(), path=None, digest="")
        raise SettingsError(
            f"cannot read {path}: {error.strerror}; a settings file is a few lines of TOML"
        ) from error
    if table and table[-1].encode() not in data:  # spares a project's file that has nothing for us the parser
        return LoadedSettings(settings=Settings(), path=None, digest="")
    try:
        content: object = parse_toml(data)
    except ValueError as error:
        if table:  # somebody else's pyproject.toml: not ours to complain about
            return LoadedSettings(settings=Settings(), path=None, digest="")
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    for key in table:
        content = content.get(key) if isinstance(content, dict) else None
    if content is None:
        return LoadedSettings(settings=Settings(), path=None, digest="")
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: {'.'.join(table)} must be a table")
    settings = parse_settings(content, str(path))
    root = (path.parent / settings.source_root).resolve()
    machine = None if settings.machine is None else str((path.parent / settings.machine).resolve())
    build = None if settings.build_folder is None else str((path.parent / settings.build_folder).resolve())
    settings = settings._replace(source_root=str(root), machine=machine, build_folder=build)
    return LoadedSettings(settings=settings, path=path, digest=hashlib.sha256(data).hexdigest())


def parse_settings(table: Mapping[str, object], where: str) -> Settings:
    """Checked settings from a parsed table; keys are written with dashes or underscores.

    Raises:
        SettingsError: an unknown key or a value of the wrong type.
    """
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in Settings._fields:
            names = ", ".join(sorted(entry.replace("_", "-") for entry in Settings._fields))
            raise SettingsError(f"{where}: unknown setting '{key}'; known are {names}")
        if any("\0" in text for text in _texts(value)):
            raise SettingsError(f"{where}: '{key}' has a character that no path and no option can have")
        values[name] = _checked(name, value, where)
    return Settings()._replace(**values)  # type: ignore[arg-type] # each value was checked for its field


def _texts(value: object) -> Iterator[str]:
    """The texts of a value, its keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from (key, *_texts(part))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _checked(name: str, value: object, where: str) -> object:
    text = name.replace("_", "-")
    if name in {"top", "memory_mib"}:
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST:
            return value
        raise SettingsError(f"{where}: '{text}' must be a positive integer up to {_LARGEST}")
    if name in {"min_speedup", "min_importance", "tool_timeout_seconds", "lines_timeout_seconds"}:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
            return float(value)
        raise SettingsError(f"{where}: '{text}' must be a number from 0 to {_LARGEST}")
    if name == "launches":
        return parse_launches(value, where)
    if name == "source_map":
        if isinstance(value, dict) and all(isinstance(new, str) for new in value.values()):
            return MappingProxyType(dict(value))
        raise SettingsError(f"{where}: '{text}' must be a table of path prefixes")
    if name in {"flags", "extra_flags"}:
        if isinstance(value, list) and all(isinstance(flag, str) for flag in value):
            return tuple(value)
        raise SettingsError(f"{where}: '{text}' must be a list of strings")
    if isinstance(value, str) and value:
        return value
    raise SettingsError(f"{where}: '{text}' must be a string that is not empty")
