# SPDX-License-Identifier: Apache-2.0
"""One HTML file from a document: script, style and data, under a policy that lets nothing else run.

``page.js`` and ``page.css`` are bundled from ``vscode-client/page`` by ``npm run page`` there.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="gpadvisor">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page shows its data by the script that it holds; nothing is loaded from anywhere.</noscript>
<script type="application/json" id="gpadvisor-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page_script() -> str:
    """The bundled script."""
    return _part("page.js")


def page_style() -> str:
    """The style sheet."""
    return _part("page.css")


def render_page(document: Mapping[str, object], title: str) -> str:
    """The file; the same document gives the same bytes."""
    script, style = page_script(), page_style()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _PAGE.format(
        policy=policy, title=html.escape(title), style=style, data=embedded(document), script=script
    )


def embedded(document: object) -> str:
    """JSON that no name in it can end: ASCII, and without the characters that markup is made of."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
