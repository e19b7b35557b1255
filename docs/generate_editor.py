# SPDX-License-Identifier: Apache-2.0
"""Writes what the editor's client and pages take from the server: settings, messages, commands, tools.

``make docs`` runs it; ``tests/style/test_editor_pages.py`` proves the result current.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gpadvisor.agents.tools import NOTE, TOOLS, AgentTool
from gpadvisor.lsp import page_protocol, protocol
from gpadvisor.lsp.declared_settings import SECTION, SETTINGS, Setting
from gpadvisor.lsp.protocol import COMMANDS, NOTIFICATIONS, REQUESTS, InitializationOptions
from gpadvisor.lsp.wire import camel

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
CLIENT = ROOT / "vscode-client"
MANIFEST = CLIENT / "package.json"

_SETTINGS_INTRODUCTION = """\
# Settings of the editor

Set in the editor, under `gpadvisor`. In VS Code they are in the settings view; other editors send the same
names in `workspace/configuration` or in `initializationOptions.settings` (see [lsp.md](lsp.md)). What belongs
to the project rather than to the editor (launches, source paths, flags) is in [gpadvisor.toml](settings.md).

*Restricted* settings are ignored in a workspace that is not trusted. *Client* settings are read by the
VS Code extension alone.
"""
_FIRST = ("annotations", "run", "profile.command", "analysis.arch", "analysis.flags")
"""What most people set: the first screen of the settings."""
_GROUPS = {
    "What Is Shown": ("enable", "codeLens", "inlayHints", "hover", "gutter", "stale"),
    "Which Findings": ("report", "severity", "rules"),
    "Profiles and Timelines": ("profiles", "profile", "timeline"),
    "Analysis": ("analysis", "debounceMilliseconds"),
    "Programs and Environment": ("nvcc", "nvdisasm", "interpreter", "importStrategy", "wheelFolder"),
    "Logs": ("logLevel", "trace"),
}
"""Groups of the rest by the first part of a setting's name."""
_NOTE = """\
// SPDX-License-Identifier: Apache-2.0
// Generated from server/gpadvisor/lsp by `make docs`; do not edit.
"""


def generated() -> dict[Path, str]:
    """Every generated file by its place."""
    found = {FOLDER / "settings-editor.md": settings_page()}
    found[FOLDER / "lsp.md"] = page_with_tables((FOLDER / "lsp.md").read_text(encoding="utf-8"))
    if CLIENT.is_dir():
        found[CLIENT / "src" / "generated" / "protocol.ts"] = protocol_types()
        found[CLIENT / "src" / "generated" / "settings.ts"] = settings_types()
        found[CLIENT / "src" / "generated" / "tools.ts"] = tool_types()
    if MANIFEST.is_file():
        found[MANIFEST] = manifest(MANIFEST.read_text(encoding="utf-8"))
    return found


def settings_page() -> str:
    """``settings-editor.md``."""
    tables = [
        f"\n## {title}\n\n| setting | default | meaning |\n|---|---|---|\n{''.join(map(_setting_row, group))}"
        for title, group in _groups().items()
    ]
    return _SETTINGS_INTRODUCTION.rstrip("\n") + "\n" + "".join(tables)


def _groups() -> dict[str, list[Setting]]:
    """Settings by their use, those that matter most first."""
    named = {setting.name: setting for setting in SETTINGS}
    groups = {"Most Used": [named[name] for name in _FIRST], **{title: [] for title in _GROUPS}}
    titles = {part: title for title, parts in _GROUPS.items() for part in parts}
    for setting in SETTINGS:
        if setting.name not in _FIRST:
            part = setting.name.partition(".")[0]
            if part not in titles:
                raise ValueError(f"_GROUPS does not say where the setting {setting.name} belongs")
            groups[titles[part]].append(setting)
    return groups


def _setting_row(setting: Setting) -> str:
    words = [setting.doc]
    if setting.choice_docs:
        pairs = zip(setting.choices, setting.choice_docs, strict=True)
        words += [f"`{choice}`: {said}" for choice, said in pairs]
    elif setting.choices:
        words.append("One of " + ", ".join(f"`{choice}`" for choice in setting.choices) + ".")
    words += [f"*{name}*" for name in ("restricted", "client") if getattr(setting, name)]
    default = json.dumps(_plain(setting.default))
    return f"| `{SECTION}.{setting.name}` | `{default}` | {' '.join(words)} |\n"


def manifest(text: str) -> str:
    """The client's manifest with the settings, what follows from them, and the tools."""
    manifest: dict[str, Any] = json.loads(text)
    contributes = manifest.setdefault("contributes", {})
    contributes["languageModelTools"] = [_tool(tool) for tool in TOOLS.values()]
    contributes["configuration"] = [
        {
            "title": title,
            "order": at,
            "properties": {
                f"{SECTION}.{setting.name}": {**_property(setting), "order": number}
                for number, setting in enumerate(group)
            },
        }
        for at, (title, group) in enumerate(_groups().items())
    ]
    restricted = [f"{SECTION}.{setting.name}" for setting in SETTINGS if setting.restricted]
    trust = manifest.setdefault("capabilities", {}).setdefault("untrustedWorkspaces", {})
    trust["restrictedConfigurations"] = restricted
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def _tool(tool: AgentTool) -> dict[str, object]:
    words = tool.name.split("_")
    return {
        "name": f"{SECTION}_{tool.name}",
        "toolReferenceName": SECTION + "".join(word.capitalize() for word in words),
        "canBeReferencedInPrompt": True,
        "displayName": tool.title,
        "userDescription": tool.doc,
        "modelDescription": f"{tool.doc} {NOTE}",
        "icon": "$(graph)",
        "tags": ["cuda", "gpu", "performance", "profiling"],
        "when": "isWorkspaceTrusted",
        "inputSchema": tool.input_schema(),
    }


def _property(setting: Setting) -> dict[str, object]:
    kinds = {"strings": "array", "map": "object"}
    shown: dict[str, object] = {
        "type": kinds.get(setting.kind, setting.kind),
        "default": _plain(setting.default),
        "scope": setting.scope,
        "markdownDescription": setting.doc,
    }
    if setting.kind == "strings":
        shown["items"] = {"type": "string"}
    elif setting.kind == "map":
        shown["additionalProperties"] = {"type": "string", "enum": list(setting.choices)}
    elif setting.choices:
        shown["enum"] = list(setting.choices)
        if setting.choice_docs:
            shown["enumDescriptions"] = list(setting.choice_docs)
    limits = {"minimum": setting.minimum, "maximum": setting.maximum}
    return shown | {name: value for name, value in limits.items() if value is not None}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def settings_types() -> str:
    """TypeScript: the settings that the client reads, with their types and defaults."""
    kinds = {"strings": "readonly string[]", "map": "Readonly<Record<string, string>>", "integer": "number"}
    rows, defaults = [], []
    for setting in SETTINGS:
        kind = kinds.get(setting.kind, setting.kind)
        if setting.choices and setting.kind == "string":
            kind = " | ".join(json.dumps(choice) for choice in setting.choices)
        name = json.dumps(setting.name)
        rows.append(f"  /** {setting.doc.replace('*/', '*-/')} */\n  readonly {name}: {kind};\n")
        defaults.append(f"  {name}: {json.dumps(_plain(setting.default))},\n")
    return (
        f"{_NOTE}\nexport const SECTION = {json.dumps(SECTION)};\n\n"
        f"export interface Settings {{\n{''.join(rows)}}}\n\n"
        f"export const DEFAULTS: Settings = {{\n{''.join(defaults)}}};\n"
    )


def tool_types() -> str:
    """TypeScript: the tools for language models, and which of them run programs of the user."""
    rows = "".join(
        f"  {{ name: {json.dumps(name)}, title: {json.dumps(tool.title)}, runs: {json.dumps(tool.runs)} }},\n"
        for name, tool in TOOLS.items()
    )
    return f"{_NOTE}\nexport const TOOLS = [\n{rows}] as const;\n"


def protocol_types() -> str:
    """TypeScript: names and types of the custom messages, and of the commands."""
    parts = [_NOTE]
    constants = {
        name: value
        for name, value in vars(protocol).items()
        if name.isupper() and isinstance(value, str) and value.startswith("gpadvisor")
    }
    parts.append(
        "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in constants.items())
    )
    parts.append(f"export type State = {_type(protocol.StatusState)};\n")
    for shape in _shapes():
        rows = "".join(
            f"  readonly {camel(entry.name)}{'?' if _optional(shape, entry) else ''}: "
            f"{_type(get_type_hints(shape)[entry.name])};\n"
            for entry in fields(shape)
        )
        parts.append(f"/** {shape.__doc__} */\nexport interface {shape.__name__} {{\n{rows}}}\n")
    return "\n".join(parts)


def _optional(shape: type, entry: Field[Any]) -> bool:
    """Whether the client may leave a field out: only in what it sends."""
    given = entry.default is not MISSING or entry.default_factory is not MISSING
    return given and (shape is InitializationOptions or shape.__name__.endswith("Params"))


def _shapes() -> list[type]:
    return [
        value
        for value in {**vars(page_protocol), **vars(protocol)}.values()
        if isinstance(value, type) and is_dataclass(value) and value is not protocol.Command
    ]


def _type(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        return " | ".join(_type(part) for part in get_args(hint))
    if origin is Literal:
        return " | ".join(json.dumps(choice) for choice in get_args(hint))
    if origin is list:
        return f"readonly {_type(get_args(hint)[0])}[]"
    if origin is dict:
        return "Readonly<Record<string, unknown>>"
    if isinstance(hint, type) and is_dataclass(hint):
        return hint.__name__
    return {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}[hint]


def page_with_tables(text: str) -> str:
    """``lsp.md`` with its tables of messages, fields and commands as the code has them."""
    for name, table in (("messages", _messages()), ("fields", _fields()), ("commands", _commands())):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"docs/lsp.md has no place for its {name}")
        text = before + start + table + end + after
    return text


def _messages() -> str:
    rows = [
        f"| `{name}` | notification to the client | `{shape.__name__}` | |\n"
        for name, shape in NOTIFICATIONS.items()
    ]
    for name, (asked, answered) in REQUESTS.items():
        given = "" if asked is None else f"`{asked.__name__}`"
        rows.append(f"| `{name}` | request to the server | {given} | `{answered.__name__}` |\n")
    return "| method | kind | parameters | result |\n|---|---|---|---|\n" + "".join(rows)


def _fields() -> str:
    rows = "".join(_field_row(shape) for shape in _shapes())
    return "| value | fields | what it is |\n|---|---|---|\n" + rows


def _field_row(shape: type) -> str:
    hints = get_type_hints(shape)
    named = ", ".join(f"`{camel(entry.name)}`: {_type(hints[entry.name])}" for entry in fields(shape))
    bar = "\\|"
    said = " ".join((shape.__doc__ or "").split())
    return f"| `{shape.__name__}` | {named.replace('|', bar)} | {said} |\n"


def _commands() -> str:
    rows = "".join(f"| `{entry.id}` | {entry.arguments} | {entry.does} |\n" for entry in COMMANDS)
    return "| command | arguments | what it does |\n|---|---|---|\n" + rows


def main() -> None:
    """Write every file."""
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
