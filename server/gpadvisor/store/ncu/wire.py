# SPDX-License-Identifier: Apache-2.0
"""Protocol buffer wire format: a message's bytes to its fields, with every length checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

FieldValue: TypeAlias = int | bytes
Fields: TypeAlias = dict[int, list[FieldValue]]
Data = TypeVar("Data", bytes, memoryview)
"""Values of a view are views: of a large report nothing is copied."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MASK64 = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are no message: a length, a tag or a variable-length integer runs out of them."""


def read_varint(data: bytes | memoryview, index: int) -> tuple[int, int]:
    """Read one variable-length integer; return its value and the offset behind it."""
    result = shift = 0
    while shift < 70:
        if index >= len(data):
            raise WireError("a number runs past the end of its message")
        byte = data[index]
        index += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK64, index
        shift += 7
    raise WireError("a number has more than ten bytes")


def iterate(data: Data) -> Iterator[tuple[int, int | Data]]:
    """Yield field number and raw value (int for varints, bytes for all else) in file order."""
    index, end = 0, len(data)
    while index < end:
        key = data[index]
        if key < 0x80:
            index += 1
        else:
            key, index = read_varint(data, index)
        wire_type = key & 7
        if wire_type == _VARINT:
            value, index = read_varint(data, index)
            yield key >> 3, value
            continue
        if wire_type == _BYTES:
            length, index = read_varint(data, index)
        elif wire_type == _FIXED64:
            length = 8
        elif wire_type == _FIXED32:
            length = 4
        else:
            raise WireError(f"wire type {wire_type} does not exist in these messages")
        if length > end - index:
            raise WireError(f"a field of {length} bytes stands where {end - index} are left")
        yield key >> 3, data[index : index + length]
        index += length


def parse(data: Data) -> dict[int, list[int | Data]]:
    """Decode one message into field number -> values in file order."""
    fields: dict[int, list[int | Data]] = {}
    for number, value in iterate(data):
        occurrences = fields.get(number)
        if occurrences is None:
            fields[number] = [value]
        else:
            occurrences.append(value)
    return fields


def integer(fields: Fields, number: int) -> int | None:
    """The last value of an integer field, or None where it is absent or of another type."""
    for value in reversed(fields.get(number, ())):
        if isinstance(value, int):
            return value
    return None


def blob(fields: Fields, number: int) -> bytes | None:
    """The last value of a bytes field, or None."""
    for value in reversed(fields.get(number, ())):
        if isinstance(value, bytes):
            return value
    return None


def blobs(fields: Fields, number: int) -> list[bytes]:
    """All values of a repeated bytes or message field."""
    return [value for value in fields.get(number, ()) if isinstance(value, bytes)]


def text(fields: Fields, number: int) -> str | None:
    """The last value of a string field; bytes that are not UTF-8 become replacement characters."""
    value = blob(fields, number)
    return None if value is None else value.decode("utf-8", "replace")


def float64(value: bytes) -> float:
    """A fixed 64-bit field as a double."""
    if len(value) != 8:
        raise WireError(f"a double has 8 bytes, not {len(value)}")
    return float(struct.unpack("<d", value)[0])


def float32(value: bytes) -> float:
    """A fixed 32-bit field as a float."""
    if len(value) != 4:
        raise WireError(f"a float has 4 bytes, not {len(value)}")
    return float(struct.unpack("<f", value)[0])
