# SPDX-License-Identifier: Apache-2.0
"""Parquet through duckdb: an interrupt stays one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpadvisor.store.snapshot import parquet


class _Interrupted:
    """A value during whose conversion Ctrl-C is pressed."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_an_interrupt_while_columns_are_written_is_no_error() -> None:
    values: np.ndarray[Any, Any] = np.empty(1, object)
    values[0] = _Interrupted()
    with parquet.session() as engine, pytest.raises(KeyboardInterrupt):
        parquet.encode(engine, "rows", {"text": values}, {"text": "VARCHAR"})
