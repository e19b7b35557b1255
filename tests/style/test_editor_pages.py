# SPDX-License-Identifier: Apache-2.0
"""What the editor's client and pages take from the server is current (``make docs``)."""

from __future__ import annotations

from dataclasses import fields

from docs.generate_editor import generated

from gpadvisor.lsp.declared_settings import SETTINGS
from gpadvisor.lsp.settings import EditorSettings, read_settings


def test_generated_files_are_current() -> None:
    stale = [
        str(path.name)
        for path, text in generated().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run 'make docs': {stale}"


def test_every_setting_has_its_field_with_the_same_default() -> None:
    by_field = {setting.field: setting for setting in SETTINGS if not setting.client}
    assert set(by_field) == {entry.name for entry in fields(EditorSettings)}
    defaults = EditorSettings()
    for name, setting in by_field.items():
        assert getattr(defaults, name) == setting.default, setting.name


def test_defaults_are_valid_values() -> None:
    section = {setting.name: setting.default for setting in SETTINGS}
    settings, wrong = read_settings(section, trusted=True)
    assert wrong == ()
    assert settings == EditorSettings()


def test_what_names_a_program_or_its_arguments_is_restricted() -> None:
    runs = [name for name in (s.name for s in SETTINGS) if name.endswith((".path", ".command", ".flags"))]
    assert runs
    restricted = {setting.name for setting in SETTINGS if setting.restricted}
    assert set(runs) | {"interpreter", "wheelFolder", "importStrategy"} <= restricted
