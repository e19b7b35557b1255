# SPDX-License-Identifier: Apache-2.0
"""The outer form of reports: blocks, compressed containers and bombs."""

from __future__ import annotations

import struct

import pytest
import zstandard
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.load import load_bytes
from gpadvisor.store.ncu import container

REPORT = write_report(
    [LaunchSpec(kernel="k", cubin=tiny_cubin({"k": []}), samples={("k", 16, "wait"): (5, 4)})]
)


def _total(data: bytes) -> int:
    return load_bytes(data).kernels[0].total_samples


def test_compressed_with_and_without_content_size() -> None:
    assert _total(zstandard.ZstdCompressor().compress(REPORT)) == 5
    assert _total(zstandard.ZstdCompressor(write_content_size=False).compress(REPORT)) == 5


def test_several_and_skippable_frames() -> None:
    pack = zstandard.ZstdCompressor().compress
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"about"
    assert _total(skippable + pack(REPORT[:100]) + skippable + pack(REPORT[100:])) == 5


def test_a_bomb_stops_at_the_limit() -> None:
    bomb = zstandard.ZstdCompressor().compress(container.MAGIC + bytes(50 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(ProfileFormatError, match="unpacks to far more"):
        container.decompress(bomb, limit=1 << 20)


def test_the_limit_follows_the_size_of_the_file() -> None:
    bomb = zstandard.ZstdCompressor().compress(container.MAGIC + bytes(80 << 20))
    with pytest.raises(ProfileFormatError, match="unpacks to far more"):
        load_bytes(bomb)


@pytest.mark.parametrize("cut", [5, 20, 100])
def test_a_cut_container_says_so(cut: int) -> None:
    data = zstandard.ZstdCompressor().compress(REPORT)
    with pytest.raises(ProfileFormatError, match="damaged or cut short"):
        load_bytes(data[:cut])


def test_rubbish_behind_a_frame() -> None:
    with pytest.raises(ProfileFormatError, match="something else than zstd"):
        load_bytes(zstandard.ZstdCompressor().compress(REPORT) + b"rubbish")


@pytest.mark.parametrize("cut", range(5, len(REPORT), 97))
def test_every_cut_is_an_error_or_fewer_launches(cut: int) -> None:
    message = None
    try:
        kernels = load_bytes(REPORT[:cut]).kernels
    except ProfileFormatError as error:
        message = str(error)
    if message is None:
        assert kernels == ()
    else:
        assert "damaged or cut short" in message
        assert "\n" not in message


def test_a_block_larger_than_the_file() -> None:
    header = b"\x08\x00\x10\x00\x28" + b"\xff\xff\xff\xff\x0f"
    data = container.MAGIC + struct.pack("<I", 2) + b"\x08\x07" + struct.pack("<I", len(header)) + header
    with pytest.raises(ProfileFormatError, match="4294967295 bytes starts where 0 are left"):
        load_bytes(data)


def test_announced_messages_that_are_not_there() -> None:
    header = b"\x08\x01\x10\x00\x28\x00"
    data = container.MAGIC + struct.pack("<I", 2) + b"\x08\x07" + struct.pack("<I", len(header)) + header
    with pytest.raises(ProfileFormatError, match="announces 1 messages and holds 0"):
        load_bytes(data)


def test_a_report_without_launches_says_how_to_get_one() -> None:
    profile = load_bytes(write_report([]))
    assert profile.kernels == ()
    assert "ncu --set full" in profile.problems[0].message
