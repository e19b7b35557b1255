# SPDX-License-Identifier: Apache-2.0
"""A small part of `make fuzz`: what was found before, and some hundred new inputs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from tests.fuzz.mutators import FORMATS
from tests.fuzz.targets import quick, seeds, wrong

_INPUTS = 40


@pytest.fixture(scope="module", autouse=True)
def in_memory() -> Iterator[None]:
    with quick():
        yield


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in FORMATS.values()}))
def test_seeds_and_what_was_found_before(kind: str) -> None:
    for data in seeds()[kind]:
        assert wrong(kind, data) is None


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_mutated_inputs_end_as_they_should(name: str) -> None:
    kind, mutated = FORMATS[name]
    rng = random.Random(1 if os.environ.get("CI") else None)
    for _ in range(_INPUTS):
        data = mutated(rng.choice(seeds()[kind]), rng)
        assert wrong(kind, data) is None, data.hex()


def test_something_wrong_is_found() -> None:
    """What must hold can fail."""
    assert wrong("cubin", None) is not None  # type: ignore[arg-type] # no bytes at all
