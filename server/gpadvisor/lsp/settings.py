# SPDX-License-Identifier: Apache-2.0
"""The settings of one folder as the server uses them, read from what a client sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from gpadvisor.lsp.declared_settings import PROFILE_PATTERNS, SECTION, SETTINGS, TIMELINE_PATTERNS, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorSettings:
    """The server's settings for one folder, checked."""

    enable: bool = True
    run: str = "onSave"
    debounce_milliseconds: int = 300
    annotations: str = "normal"
    code_lens_enable: bool = True
    inlay_hints_enable: bool = True
    inlay_hints_min_share: float = 0.03
    hover_enable: bool = True
    gutter_enable: bool = True
    gutter_min_share: float = 0.01
    stale: str = "dim"
    report_min_speedup: float = 1.05
    report_max_per_file: int = 20
    severity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rules_select: tuple[str, ...] = ()
    rules_ignore: tuple[str, ...] = ()
    profiles_enable: bool = True
    profiles_patterns: tuple[str, ...] = PROFILE_PATTERNS
    profiles_max: int = 10
    profiles_ledger: str = ""
    timeline_file: str = ""
    timeline_patterns: tuple[str, ...] = TIMELINE_PATTERNS
    analysis_arch: str = ""
    analysis_flags: tuple[str, ...] = ()
    analysis_model: str = "onSave"
    analysis_timeout_seconds: int = 300
    analysis_memory_mib: int = 8192
    analysis_workers: int = 2
    profile_command: tuple[str, ...] = ()
    profile_on_save: bool = False
    profile_timeout_seconds: int = 900
    nvcc_path: str = ""
    nvdisasm_path: str = ""
    log_level: str = "info"


def read_settings(section: object, *, trusted: bool) -> tuple[EditorSettings, tuple[str, ...]]:
    """Settings from the client's section, and a sentence on each value that is not used.

    A wrong value costs that value, never the others: the default takes its place.
    """
    values: dict[str, object] = {}
    wrong: list[str] = []
    field_names = {entry.name for entry in fields(EditorSettings)}
    for setting in SETTINGS:
        value = _lookup(section, setting.name)
        if value is None or setting.field not in field_names:
            continue
        if setting.restricted and not trusted:
            continue
        checked, complaint = _checked(setting, value)
        if complaint is not None:
            wrong.append(complaint)
        else:
            values[setting.field] = checked
    return EditorSettings(**values), tuple(wrong)  # type: ignore[arg-type] # each value was checked for its field


def _lookup(section: object, name: str) -> object:
    """A value by its dotted name: nested, flat, or with the section in front."""
    if not isinstance(section, Mapping):
        return None
    for flat in (name, f"{SECTION}.{name}"):
        if flat in section:
            result: object = section[flat]
            return result
    place: object = section
    for part in name.split("."):
        if not isinstance(place, Mapping):
            return None
        place = place.get(part)
    return place


def _checked(setting: Setting, value: object) -> tuple[object, str | None]:
    """The value as its field wants it, or a complaint."""
    name = f"{SECTION}.{setting.name}"
    if setting.kind == "boolean":
        return value, None if isinstance(value, bool) else f"{name} must be true or false"
    if setting.kind in {"integer", "number"}:
        return _number(setting, value, name)
    if setting.kind == "string":
        if not isinstance(value, str) or (setting.choices and value not in setting.choices):
            expected = f"one of {', '.join(setting.choices)}" if setting.choices else "a string"
            return None, f"{name} must be {expected}"
        return value, None
    if setting.kind == "strings":
        if isinstance(value, str) or not isinstance(value, Sequence):
            return None, f"{name} must be a list of strings"
        if not all(isinstance(entry, str) for entry in value):
            return None, f"{name} must be a list of strings"
        return tuple(value), None
    if not isinstance(value, Mapping):
        return None, f"{name} must be an object"
    bad = [str(key) for key, entry in value.items() if entry not in setting.choices]
    if bad:
        return None, f"{name}: the value of {bad[0]} must be one of {', '.join(setting.choices)}"
    return MappingProxyType({str(key): str(entry) for key, entry in value.items()}), None


def _number(setting: Setting, value: object, name: str) -> tuple[object, str | None]:
    is_integer = setting.kind == "integer"
    kinds = int if is_integer else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return None, f"{name} must be {'an integer' if is_integer else 'a number'}"
    low, high = setting.minimum, setting.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        limits = f"at least {low:g}" if high is None else f"between {low or 0:g} and {high:g}"
        return None, f"{name} must be {limits}"
    return value if is_integer else float(value), None
