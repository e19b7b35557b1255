# SPDX-License-Identifier: Apache-2.0
"""docs/machine-models.md names every table, its parent and every status word, and its example loads."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path

from gpadvisor import machine
from gpadvisor.machine.schema import STATUSES

PAGE = (Path(__file__).parents[3] / "docs" / "machine-models.md").read_text(encoding="utf-8")


def test_every_table_stands_there_with_its_parent() -> None:
    rows = dict(re.findall(r"^\| `(sm_\d+)` \| `?(sm_\d+|-)`? \|", PAGE, flags=re.MULTILINE))
    folder = resources.files("gpadvisor.machine") / "data"
    for arch in machine.architectures():
        table = tomllib.loads((folder / f"{arch}.toml").read_text(encoding="utf-8"))
        assert rows.pop(arch) == table.get("inherits", "-")
    assert rows == {}


def test_every_status_word_is_explained() -> None:
    assert set(re.findall(r"^\| `([a-z ]+)` \| [a-zA-Z]", PAGE, flags=re.MULTILINE)) >= STATUSES


def test_the_example_loads() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert example is not None
    model = machine.load_file(example.group(1))
    row = model.latency("MUFU", ())
    assert row is not None
    assert row.max_cycles == 40
