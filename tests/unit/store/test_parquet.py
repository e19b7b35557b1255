# SPDX-License-Identifier: Apache-2.0
"""Parquet through duckdb: an interrupt stays one."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_table_is_written_and_read_in_one_thread_however_many_processors_there_are() -> None:
    # Each thread takes address space, of which a child process has little: with 400 of them it crashed.
    program = """if True:
        import os
        import numpy as np
        from gpadvisor.store.snapshot import parquet
        before = len(os.listdir("/proc/self/task"))
        with parquet.session() as engine:
            schema = {"rows": "UBIGINT"}
            data = parquet.encode(engine, "a", {"rows": np.arange(300_000, dtype=np.uint64)}, schema)
            assert len(parquet.decode(engine, "b", data, schema)["rows"]) == 300_000
            print(len(os.listdir("/proc/self/task")) - before)
    """
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["0"]
