# SPDX-License-Identifier: Apache-2.0
"""Compare profiles field by field, arrays included, with a message that names what differs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpadvisor.model.profile import Profile


def assert_same_profile(left: Profile, right: Profile) -> None:
    """Raise AssertionError at the first difference, naming its place."""
    _same(left, right, "profile")


def _same(left: Any, right: Any, where: str) -> None:
    assert type(left) is type(right) or isinstance(left, Mapping), f"{where}: {type(left)} and {type(right)}"
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, f"{where}: {left.dtype} and {right.dtype}"
        assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), where
    elif dataclasses.is_dataclass(left) and not isinstance(left, type):
        for item in dataclasses.fields(left):
            _same(getattr(left, item.name), getattr(right, item.name), f"{where}.{item.name}")
    elif isinstance(left, Mapping):
        assert list(left) == list(right), f"{where}: {list(left)} and {list(right)}"
        for key in left:
            _same(left[key], right[key], f"{where}[{key!r}]")
    elif isinstance(left, tuple):
        assert len(left) == len(right), f"{where}: {len(left)} and {len(right)} entries"
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            _same(a, b, f"{where}[{index}]")
    elif isinstance(left, float) and math.isnan(left):
        assert math.isnan(right), where
    else:
        assert left == right, f"{where}: {left!r} and {right!r}"
