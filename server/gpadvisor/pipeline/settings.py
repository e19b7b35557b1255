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
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gpadvisor.errors import SettingsError
from gpadvisor.files import home, parse_toml, read_file
from gpadvisor.pipeline.launches import StatedLaunch, parse_launches

FILE_NAME: Final = "gpadvisor.toml"
MAX_FILE_BYTES: Final = 1 << 20
_LARGEST: Final = 1_000_000_000
"""Of any number: 31 years, a petabyte of MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting; the ``doc`` of a field is its documentation."""

    top: int = field(default=10, metadata={"doc": "suggestions shown per kernel"})
    min_speedup: float = field(
        default=1.03, metadata={"doc": "suggestions whose expected speedup is lower are counted, not shown"}
    )
    min_importance: float = field(
        default=0.01,
        metadata={"doc": "suggestions that match a smaller share of samples are counted, not shown"},
    )
    source_map: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"doc": "table of path prefixes: as the report has them = as they are here"},
    )
    source_root: str = field(
        default=".",
        metadata={"doc": "folder searched for the sources a report names, relative to the settings file"},
    )
    machine: str | None = field(
        default=None, metadata={"doc": "machine table to use instead of the shipped one, a TOML file"}
    )
    arch: str | None = field(
        default=None, metadata={"doc": 'architecture a source is compiled for, such as "sm_90"'}
    )
    build_folder: str | None = field(
        default=None,
        metadata={"doc": "folder whose compile_commands.json is used, relative to the settings file"},
    )
    flags: tuple[str, ...] = field(
        default=(), metadata={"doc": "compiler flags for sources that no compile_commands.json names"}
    )
    extra_flags: tuple[str, ...] = field(
        default=(), metadata={"doc": "compiler flags added to the command of every source that is compiled"}
    )
    tool_timeout_seconds: float = field(
        default=120.0, metadata={"doc": "time limit of one compiler or disassembler run"}
    )
    lines_timeout_seconds: float = field(
        default=30.0,
        metadata={
            "doc": "time limit of all compiling for the lines of a report that has none; 0: no compiling"
        },
    )
    launches: Mapping[str, StatedLaunch] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"doc": "table of kernels with their launch, for models; see below"},
    )
    memory_mib: int = field(
        default=8192, metadata={"doc": "memory limit of a child process that reads a profile"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
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
    settings = replace(settings, source_root=str(root), machine=machine, build_folder=build)
    return LoadedSettings(settings=settings, path=path, digest=hashlib.sha256(data).hexdigest())


def parse_settings(table: Mapping[str, object], where: str) -> Settings:
    """Checked settings from a parsed table; keys are written with dashes or underscores.

    Raises:
        SettingsError: an unknown key or a value of the wrong type.
    """
    settings_fields = {entry.name: entry for entry in fields(Settings)}
    values: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in settings_fields:
            names = ", ".join(sorted(entry.replace("_", "-") for entry in settings_fields))
            raise SettingsError(f"{where}: unknown setting '{key}'; known are {names}")
        if any("\0" in text for text in _texts(value)):
            raise SettingsError(f"{where}: '{key}' has a character that no path and no option can have")
        values[name] = _checked(name, value, where)
    return replace(Settings(), **values)  # type: ignore[arg-type] # each value was checked for its field


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
