# SPDX-License-Identifier: Apache-2.0
"""A small part of `make fuzz`: what was found before, and some hundred new inputs."""

from __future__ import annotations

import os
import random

import pytest
from tests.fuzz.mutators import MUTATORS
from tests.fuzz.targets import seeds, wrong

_INPUTS = 60


@pytest.mark.parametrize("kind", sorted(MUTATORS))
def test_seeds_and_what_was_found_before(kind: str) -> None:
    for data in seeds()[kind]:
        assert wrong(kind, data) is None


@pytest.mark.parametrize("kind", sorted(MUTATORS))
def test_mutated_inputs_end_as_they_should(kind: str) -> None:
    rng = random.Random(1 if os.environ.get("CI") else None)
    for _ in range(_INPUTS):
        data = MUTATORS[kind](rng.choice(seeds()[kind]), rng)
        assert wrong(kind, data) is None, data.hex()


def test_something_wrong_is_found() -> None:
    """What must hold can fail."""
    assert wrong("cubin", None) is not None  # type: ignore[arg-type] # no bytes at all
