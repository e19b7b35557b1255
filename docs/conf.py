# SPDX-License-Identifier: Apache-2.0
"""The site of these pages; a link to a page or a heading that is not there fails it."""

from __future__ import annotations

project = "gpadvisor"
author = "the gpadvisor authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "fixtures/README.md",
    "fixtures/capture/README.md",
]
exclude_patterns = [".venv", "build", "vscode-client"]
myst_heading_anchors = 4  # as GitHub makes them
html_theme = "alabaster"
html_title = "gpadvisor"
html_theme_options = {"page_width": "1100px", "fixed_sidebar": True}
html_show_sourcelink = False
html_copy_source = False
suppress_warnings = ["toc.not_included"]  # a page outside of the menu is no dead link
