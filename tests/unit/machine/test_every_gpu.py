# SPDX-License-Identifier: Apache-2.0
"""What is taken for granted about every GPU: each value once, with its source, and below what tables say."""

from __future__ import annotations

import pytest

from gpadvisor.errors import MachineModelError
from gpadvisor.machine import architectures, every_gpu
from gpadvisor.machine.every_gpu import read_every_gpu
from gpadvisor.machine.timing import timing_of

TABLE = """
[sources.mine]
status = "{status}"
text = "a test"

[values]
launch_ns = {{ value = 5, source = "mine" }}
launch_gap_ns = {{ value = 1, source = "mine" }}
l1_sectors_per_cycle = {{ value = 2, source = "{source}" }}
{third} = {{ value = 20, source = "mine" }}
blocks_per_cycle = {{ value = 1, source = "mine" }}
"""
SOUND = {"status": "measured", "source": "mine", "third": "least_dram_bytes_per_ns"}


def test_a_sound_table_is_read() -> None:
    found = read_every_gpu(TABLE.format(**SOUND))
    assert (found.launch_ns, found.l1_sectors_per_cycle, found.least_dram_bytes_per_ns) == (5, 2, 20)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"status": "guessed"}, "unknown status 'guessed'"),
        ({"source": "nobody"}, "names the source 'nobody'"),
        ({"third": "least_dram"}, "is missing or not known"),
    ],
)
def test_an_unsound_table_is_an_error(change: dict[str, str], complaint: str) -> None:
    with pytest.raises(MachineModelError, match=complaint):
        read_every_gpu(TABLE.format(**SOUND | change))


def test_every_dram_of_the_tables_is_faster_than_the_slowest() -> None:
    slowest = min(timing_of(arch)[1].dram_bytes_per_second for arch in architectures()) / 1e9
    assert every_gpu().least_dram_bytes_per_ns < slowest == pytest.approx(136.5)
