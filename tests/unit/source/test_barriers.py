# SPDX-License-Identifier: Apache-2.0
"""A source without some of its barriers: what is left, and where none is taken."""

from __future__ import annotations

import pytest

from gpadvisor.source.barriers import without_barriers

_TEXT = "a = 1;\r\n__syncthreads (); b = 2;\n\tif (c) __syncthreads();\nBARRIER;\n"


def test_only_the_barriers_of_the_lines_go_and_no_line_moves() -> None:
    assert without_barriers(_TEXT, [3, 3]) == _TEXT.replace("if (c) __syncthreads();", "if (c) ;")
    assert without_barriers(_TEXT, [2, 3]) == "a = 1;\r\n; b = 2;\n\tif (c) ;\nBARRIER;\n"


@pytest.mark.parametrize("line", [0, 1, 4, 5])
def test_a_line_that_does_not_show_one_barrier_leaves_the_text_alone(line: int) -> None:
    assert without_barriers(_TEXT, [2, line]) is None
    assert without_barriers("__syncthreads(); __syncthreads();", [1]) is None
