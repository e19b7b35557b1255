# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.kernels import ROOT

import gpadvisor
from gpadvisor.errors import UsageError

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_examples() -> None:
    code = "\nprint('=====')\n".join(EXAMPLES)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "fixtures", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, static, error = done.stdout.split("=====")
    assert re.search(r"^\d+\.\d\dx \(\d+\.\d\d-\d+\.\d\d\)$", first, re.MULTILINE)
    assert "before.cu" in static
    assert "absent.ncu-rep" in error


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match="regular expression"):
        gpadvisor.advise("x.cu", kernel="(")
