# SPDX-License-Identifier: Apache-2.0
"""Every architecture that the installed nvdisasm names has a machine table and a simulated device."""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.oracle.operands.corpus import tool

from gpadvisor import machine
from gpadvisor.machine.timing import timing_of

OLDEST, NEWEST = 70, 121


@pytest.mark.nvdisasm
def test_no_architecture_of_nvdisasm_is_unknown() -> None:
    disassembler = tool("nvdisasm")
    if disassembler is None:
        pytest.skip("nvdisasm is not installed")
    text = subprocess.run(
        [str(disassembler), "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    named = {f"sm_{number}{suffix}" for number, suffix in re.findall(r"'SM(\d+)([af]?)'", text)}
    wanted = {name for name in named if OLDEST <= int(re.findall(r"\d+", name)[0]) <= NEWEST}
    assert {"sm_75", "sm_90a", "sm_120"} <= wanted
    for name in sorted(wanted):
        assert machine.load(name).arch == machine.base_architecture(name)
        assert timing_of(name)
