# SPDX-License-Identifier: Apache-2.0
"""Advice for readers of every kind: text, Markdown, JSON and SARIF, from the Advice value alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gpadvisor.report.jsonformat import ADVICE_SCHEMA, advice_schema, render_json
    from gpadvisor.report.markdown import render_markdown
    from gpadvisor.report.names import short_name
    from gpadvisor.report.sarif import RuleMetadata, SarifOptions, SarifSources, render_sarif
    from gpadvisor.report.style import Style
    from gpadvisor.report.tables import Column, Overflow, format_table
    from gpadvisor.report.text import render_text
    from gpadvisor.report.why import render_why

__all__ = [
    "ADVICE_SCHEMA",
    "Column",
    "Overflow",
    "RuleMetadata",
    "SarifOptions",
    "SarifSources",
    "Style",
    "advice_schema",
    "format_table",
    "render_json",
    "render_markdown",
    "render_sarif",
    "render_text",
    "render_why",
    "short_name",
]

_MODULES: Final = {
    "ADVICE_SCHEMA": "jsonformat",
    "Column": "tables",
    "Overflow": "tables",
    "RuleMetadata": "sarif",
    "SarifOptions": "sarif",
    "SarifSources": "sarif",
    "Style": "style",
    "advice_schema": "jsonformat",
    "format_table": "tables",
    "render_json": "jsonformat",
    "render_markdown": "markdown",
    "render_sarif": "sarif",
    "render_text": "text",
    "render_why": "why",
    "short_name": "names",
}


def __getattr__(name: str) -> Any:
    """Import a renderer when it is asked for: its words alone, for a sentence, need few of the others."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
