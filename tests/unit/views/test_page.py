# SPDX-License-Identifier: Apache-2.0
"""The HTML file: whatever a name holds, it is data; nothing but our script runs, and nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.views.page.html import embedded, page_script, page_style, render_page

HOSTILE = (
    "</script><script>stolen()</script>",
    "<!--<script>",
    "<img src=x onerror=stolen()>",
    "]]>&lt;&#60;\u2028\u2029\x00",
    "lone \ud800 surrogate",
    "javascript:stolen()",
)


class _Elements(HTMLParser):
    """The start tags of a page, and the texts of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"} and data.strip():
            self.texts.append((self.tags[-1][0], data))


def _parsed(page: str) -> _Elements:
    elements = _Elements()
    elements.feed(page)
    return elements


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_cannot_leave_the_data(name: str) -> None:
    page = render_page({"kernels": [name], name: 1}, "run <b>&</b>")
    elements = _parsed(page)
    assert [tag for tag, _ in elements.tags if tag in {"script", "img", "b", "iframe", "object"}] == [
        "script"
    ] * 2
    data = next(text for _, text in elements.texts if text.startswith("{"))
    assert json.loads(data) == {"kernels": [name], name: 1}


@given(st.text())
def test_embedded_json_is_ascii_without_markup(text: str) -> None:
    found = embedded({"name": text})
    assert found.isascii()
    assert not set("<>&") & set(found)
    assert json.loads(found) == {"name": text}


def test_the_policy_lets_our_script_and_style_run_and_nothing_else() -> None:
    elements = _parsed(render_page({}, "run"))
    policy = next(
        str(attributes["content"])
        for _, attributes in elements.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert allowed.pop("default-src") == "'none'"
    for name, content in (("script-src", page_script()), ("style-src", page_style())):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert allowed.pop(name) == f"'sha256-{digest}'"
        assert content in [text for _, text in elements.texts]
    assert set(allowed.values()) == {"'none'"}


def test_nothing_is_loaded_and_no_text_becomes_markup() -> None:
    elements = _parsed(render_page({}, "run"))
    attributes = {name for _, found in elements.tags for name in found}
    assert not {"src", "href", "style"} & attributes
    assert not [name for name in attributes if name.startswith("on")]
    script, style = page_script(), page_style()
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|"
        r"\beval\(|new Function|\bfetch\(|XMLHttp|import\("
    )
    assert not re.findall(forbidden, script)
    assert set(re.findall(r"https?://[^\"'\s]*", script)) <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in style
    assert "@import" not in style
