# SPDX-License-Identifier: Apache-2.0
"""Advice for readers of every kind: text, Markdown, JSON and SARIF, from the Advice value alone."""

from __future__ import annotations

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
