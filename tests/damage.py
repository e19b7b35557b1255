# SPDX-License-Identifier: Apache-2.0
"""JSON documents with one value in them that is another one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from gpadvisor.sandbox.codec import to_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("GPA101"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def document_of(value: object) -> Any:
    """A value as JSON has it when it has crossed a border."""
    return json.loads(json.dumps(to_json(value)))


def damage(document: Any, *path: Any, to: object) -> Any:
    """The document, changed at a path: of keys and indices."""
    if not path:
        return to
    document[path[0]] = damage(document[path[0]] if path[1:] else None, *path[1:], to=to)
    return document


@st.composite
def damaged(draw: st.DrawFn, value: object) -> Any:
    """The document of a value with something else somewhere."""
    document = place = document_of(value)
    path: list[Any] = []
    while isinstance(place, dict | list) and place and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        path.append(key)
        place = place[key]
    return damage(document, *path, to=draw(JSON))
