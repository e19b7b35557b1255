# SPDX-License-Identifier: Apache-2.0
"""Paths of line tables as the machine they come from writes them."""

from __future__ import annotations

import pytest

from gpadvisor.analyzer.places import is_library
from gpadvisor.cubin import unescaped_path


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"C:\\Users\\me\\repo\\src\/gemv.h", r"C:\Users\me\repo\src\gemv.h"),
        (r"D:\\a\\b/c.cu", r"D:\a\b\c.cu"),
        (r"C:\a\c.cu", r"C:\a\c.cu"),
        (r"C:\\Users\\J\303\266rg\\/c.cu", r"C:\Users\Jörg\c.cu"),
        (r"/home/j\303\266rg/a.cu", "/home/jörg/a.cu"),
        ("/home/me/a.cu", "/home/me/a.cu"),
    ],
)
def test_paths(written: str, meant: str) -> None:
    assert unescaped_path(written) == meant


def test_headers_of_a_toolkit_on_windows_are_no_sources_of_the_user() -> None:
    header = (
        r"C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.0\\include\/device_double_functions.hpp"
    )
    assert is_library(unescaped_path(header))
    assert is_library(unescaped_path(header.replace("device_double_functions", "math_functions")))
    assert not is_library(unescaped_path(r"C:\\Users\\me\\cuda\\src\/gemv.h"))
