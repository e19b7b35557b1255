# SPDX-License-Identifier: Apache-2.0
"""A snapshot stays what it was, whatever happens afterwards, and says what the newest analyses say."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.editor_values import SOURCE, analysis, file_analysis, kernel

from gpadvisor.lsp.features.code_lenses import code_lenses
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.snapshot import Snapshot
from gpadvisor.lsp.state import State
from gpadvisor.lsp.views import make_view


def entry(key: str, *places: str) -> Entry:
    files = tuple(file_analysis(path=place, local=place) for place in places)
    return Entry(key=key, analysis=analysis(kernel(), files=files), is_profile=True, age=1.0)


def test_an_answer_is_made_of_one_state(tmp_path: Path) -> None:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    state = State()
    document = state.open(path.as_uri(), SOURCE, 1)
    assert document is not None
    here = (file_analysis(local=str(path)),)
    value = analysis(kernel(), files=here)
    state.put(Entry(key="profile:run", analysis=value, is_profile=True, age=1.0))
    then = state.now
    view = make_view(document.path, document.uri, 1, then.by_file[document.path], then.texts())
    assert view is not None
    lenses = code_lenses(then, view)
    assert lenses

    state.change(path.as_uri(), [], 2)
    state.remove("profile:run")
    state.failed(document.path, "it is cut off")
    state.begun(f"source:{document.path}")
    state.choose(document.path, "gather", "_Z6gatherILi4EEvv")
    state.toggle_annotations()
    state.close(path.as_uri())

    assert (then.documents[document.path].version, list(then.entries), then.busy) == (
        1,
        ["profile:run"],
        False,
    )
    assert (then.errors_of(document.path), then.chosen, then.annotations_off) == ([], {}, False)
    assert code_lenses(then, view) == lenses
    assert state.now.errors_of(document.path) == ["it is cut off"]
    assert not state.now.documents


def test_nobody_changes_a_snapshot() -> None:
    now: Any = Snapshot()
    with pytest.raises(FrozenInstanceError):
        now.trusted = True
    for name in ("folders", "documents", "entries", "by_file", "chosen", "errors", "complaints", "includes"):
        with pytest.raises(TypeError):
            getattr(now, name)["a"] = None


STEPS = st.lists(
    st.tuples(st.sampled_from(["profile:a", "profile:b", "source:c"]), st.sets(st.sampled_from("xyz")))
)


@given(STEPS)
def test_what_files_show_is_what_the_analyses_say(steps: list[tuple[str, set[str]]]) -> None:
    """However analyses come, go and are replaced; an analysis of no file stands for one that goes."""
    state = State()
    for key, names in steps:
        places = [f"/nowhere/{name}.cu" for name in sorted(names)]
        if places:
            state.put(entry(key, *places))
        else:
            state.remove(key)
    expected = Counter(
        (file.local, one.key) for one in state.now.entries.values() for file in one.analysis.files
    )
    shown = Counter((path, one.key) for path, pairs in state.now.by_file.items() for one, _ in pairs)
    assert shown == expected
    assert all(state.now.entries[one.key] is one for pairs in state.now.by_file.values() for one, _ in pairs)
