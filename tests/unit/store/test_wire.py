# SPDX-License-Identifier: Apache-2.0
"""Protocol buffer wire format, against bytes written by hand."""

from __future__ import annotations

import pytest

from gpadvisor.store.ncu import wire


def test_fields_of_every_wire_type() -> None:
    data = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x19" + bytes(8) + b"\x25\x00\x00\x80\x3f" + b"\x08\x01"
    fields = wire.parse(data)
    assert fields == {1: [150, 1], 2: [b"abc"], 3: [bytes(8)], 4: [b"\x00\x00\x80\x3f"]}
    assert wire.integer(fields, 1) == 1
    assert wire.text(fields, 2) == "abc"
    assert wire.float32(b"\x00\x00\x80\x3f") == 1.0


def test_values_of_another_type_are_not_taken() -> None:
    fields = wire.parse(b"\x08\x01\x12\x01a")
    assert wire.integer(fields, 2) is None
    assert wire.blob(fields, 1) is None
    assert wire.blobs(fields, 1) == []


def test_numbers_wrap_at_64_bits() -> None:
    assert wire.read_varint(b"\xff" * 9 + b"\x01", 0) == ((1 << 64) - 1, 10)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "past the end"),
        (b"\x08\xff", "past the end"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than ten bytes"),
        (b"\x12\x05abc", "5 bytes stands where 3"),
        (b"\x19\x00", "8 bytes stands where 1"),
        (b"\x0b", "wire type 3"),
        (b"\x12\xff\xff\xff\xff\x0f", "stands where 0"),
    ],
)
def test_damage_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(wire.WireError, match=message):
        wire.parse(data)
